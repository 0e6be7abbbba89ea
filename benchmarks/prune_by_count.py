"""Comparison of `prune --method count` with polars on the same task: CPU, time and memory.

    python benchmarks/prune_by_count.py

Both read the gzipped table of the reference run, keep the best 30 % by the count of the pair, and always keep ten
entries of every one-word source.  polars writes uncompressed text; phrasetool writes gzip.  polars is installed into a
separate environment; kernels have to be compiled beforehand (`phrasetool compile`).
"""

from __future__ import annotations

import gzip
import statistics
import subprocess
import sys

from measuring import COMMAND, WORK, Usage, reference, report, usage

ROUNDS = 7
SHARE = 0.3
PEER = """\
import sys, polars as pl
source_file, out, share = sys.argv[1], sys.argv[2], float(sys.argv[3])
table = pl.read_csv(source_file, separator="|", has_header=False, quote_char=None, infer_schema=False)
source, counts = table.columns[0], table.columns[12]
count = pl.col(counts).str.extract(r"(\\\\S+)\\\\s*$").cast(pl.Float32)
entries = table.lazy().select(pl.col(source), count=count).with_row_index("row").collect()
words = entries.filter(pl.col(source).str.count_matches(" ", literal=True) == 1)
best = words.sort("count", descending=True, maintain_order=True).group_by(source, maintain_order=True).head(10)["row"]
others = entries.filter(~pl.col("row").is_in(best.implode())).top_k(int(table.height * share) - len(best), by="count")
keep = pl.concat([best, others["row"]]).sort()
lines = table[keep].select(pl.concat_str(pl.all().fill_null(""), separator="|"))
lines.write_csv(out, include_header=False, quote_style="never")
""".replace("\\\\\\\\", "\\\\")


def peer() -> list[str]:
    """Return the command that runs polars, installed if it is missing."""
    folder = WORK / "polars"
    python = folder / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "polars"], check=True)
    (WORK / "by_count.py").write_text(PEER)
    return [str(python), str(WORK / "by_count.py")]


def figures(uses: list[Usage]) -> dict[str, float]:
    """Return the medians of CPU, time and memory."""
    return {
        "CPU, s": round(statistics.median(use.cpu for use in uses), 2),
        "time, s": round(statistics.median(use.wall for use in uses), 2),
        "memory, MB": round(statistics.median(use.peak for use in uses) / 1e6),
    }


def main() -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    table, our_output, polars_output = str(reference() / "phrase-table.gz"), WORK / "by_count.gz", WORK / "by_count.txt"
    commands = {
        "phrasetool": [
            COMMAND, "prune", "--method", "count", "--target-size", str(SHARE), table, "-o", str(our_output), "-q",
        ],
        "polars": [*peer(), table, str(polars_output), str(SHARE)],
    }  # fmt: skip
    usages: dict[str, list[Usage]] = {name: [] for name in commands}
    for number in range(ROUNDS + 1):
        for name, command in commands.items():
            measured = usage(command)
            if number:
                usages[name].append(measured)
    version = subprocess.run([commands["polars"][0], "-c", "import polars; print(polars.__version__)"],
                             capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    with gzip.open(our_output) as our_lines, open(polars_output, "rb") as polars_lines:
        kept = {"phrasetool": sum(1 for _ in our_lines), "polars": sum(1 for _ in polars_lines)}
    ratios = [a.cpu / b.cpu for a, b in zip(usages["phrasetool"], usages["polars"], strict=True)]
    report(
        "prune_by_count",
        {
            "version of polars": version,
            "entries kept": kept,
            **{name: figures(measured) for name, measured in usages.items()},
            "CPU beside polars": round(statistics.median(ratios), 2),
            "bar": 1.0,
        },
    )


if __name__ == "__main__":
    main()
