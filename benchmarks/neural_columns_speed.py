"""Seconds and memory of `annotate` with a neural model, on the whole reference table and on half of it.

    python benchmarks/neural_columns_speed.py MODEL

MODEL is for the reference run's languages: a translator (measured with both scores; result `neural_columns_speed`), a
sentence-pair classifier (`parallel_columns_speed`), or a syntax encoder (its cosine alone and all its columns;
`syntax_columns_speed`), which requires running `tagger.py` first.  Memory is constant if the whole table needs hardly
more than half of it.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
from pathlib import Path

from measuring import COMMAND, WORK, reference, report, usage
from syntax_texts import TAGGER

# Kind of model -> name of its result, and appended columns -> the options for them, and the maximum seconds.
COLUMNS: dict[str, tuple[str, dict[str, tuple[list[str], int]]]] = {
    "continuous": (
        "neural_columns_speed",
        {
            "density": (["--translator-score", "unnormalised"], 150),
            "normalised": (["--translator-score", "softmax"], 480),
        },
    ),
    "parallel": ("parallel_columns_speed", {"probability": ([], 300)}),
    "syntax": (
        "syntax_columns_speed",
        {
            "cosine": ([], 300),
            "all": (["--syntax-columns", "all", "--tagger", str(TAGGER), "--languages", "de,en"], 300),
        },
    ),
}


def half_of(table: Path, out: Path) -> int:
    """Write the first half of a table; return the number of lines of the whole table."""
    with gzip.open(table, "rb") as source:
        lines = sum(1 for _ in source)
    with gzip.open(table, "rb") as source, gzip.open(out, "wb", 1) as destination:
        destination.writelines(itertools.islice(source, lines // 2))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", default="2")
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    table, half, out = reference() / "phrase-table.gz", WORK / "half.gz", WORK / "neural.gz"
    figures: dict[str, object] = {"entries": half_of(table, half), "threads": int(options.threads)}
    kind = json.loads((Path(options.model) / "config.json").read_text())["model"]
    result, columns = COLUMNS[kind]
    for name, (column_options, bar) in columns.items():
        command = ["-m", options.model, "-o", out, "-q", "--threads", options.threads, *column_options]
        whole, part = (usage([COMMAND, "annotate", path, *command]) for path in (table, half))
        figures[name] = {
            "seconds": round(whole.wall, 1),
            "cpu_seconds": round(whole.cpu, 1),
            "bar": bar,
            "peak_mb": round(whole.peak / 1e6),
            "peak_mb_of_half": round(part.peak / 1e6),
        }
    report(result, figures)


if __name__ == "__main__":
    main()
