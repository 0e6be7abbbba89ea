"""Time and memory of building a pivot table: German-Czech through English, from two tables of Multi30k.

The German-English table is the reference run's; the English-Czech table is extracted here.  Wall time, CPU time and
peak memory of whole processes are measured: with defaults, with a twentieth of the memory, on one thread, with all
entries, and with all columns and the reordering table.  Outputs that must be equal are compared byte for byte.
`zcat A-B B-C | gzip -6` is measured in the same run.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

from engines import CORPORA, command
from measuring import COMMAND, WORK, Usage, reference, report, usage

from moses_compat.files.streams import Input

REORDERING = "reordering-table.wbe-msd-bidirectional-fe.gz"
_READ_BYTES = 1 << 24


def legs(work: Path) -> list[Path]:
    """Return the German-English and English-Czech tables and their reordering tables; extract the latter if missing."""
    czech, english = CORPORA["multi30k-cs-en"].train
    aligned, table, reordering = (work / name for name in ("aligned.gz", "en-cs.gz", "en-cs.reordering.gz"))
    if not table.exists():
        command("align", english, czech, "-o", aligned)
        command("extract", english, czech, aligned, "-o", table, "--reordering-table", reordering)
    return [reference() / "phrase-table.gz", table, reference() / REORDERING, reordering]


def content(path: Path) -> tuple[int, str]:
    """Return the number of lines of a file, and a checksum of its text."""
    lines, digest = 0, hashlib.sha256()
    with Input(str(path)) as source:
        while piece := source.read(_READ_BYTES):
            lines += piece.count(b"\n")
            digest.update(piece)
    return lines, digest.hexdigest()


def figures_of(runs: list[Usage]) -> dict[str, float]:
    """Return the times of the fastest run and the largest peak memory."""
    best = min(runs, key=lambda run: run.wall)
    return {
        "seconds": round(best.wall, 1),
        "cpu_seconds": round(best.cpu, 1),
        "peak_mb": round(max(run.peak for run in runs) / 2**20),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK / "pivot-speed")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    first, second, *reordering = map(str, legs(options.work))
    out, reordering_out = options.work / "de-cs.gz", options.work / "de-cs.reordering.gz"
    plain = [COMMAND, "pivot", first, second, "-q", "-o", str(out)]
    # The content of the columns does not matter, so probabilities are used as similarities.
    more = ["--extra-columns", "paths,agreement", "--similarity-columns", "1,3", "--scale", "probability",
            "--reordering-tables", *reordering, "--reordering-out", str(reordering_out)]  # fmt: skip
    runs = {
        "as a rule": plain,
        "a twentieth of the memory": [*plain, "--memory", "100M"],
        "one thread": [*plain, "--threads", "1"],
        "all entries": [*plain, "--keep-best", "0"],
        "all columns": [*plain, *more],
    }
    figures: dict[str, Any] = {
        "entries": {"first": content(Path(first))[0], "second": content(Path(second))[0]},
        "runs": {},
    }
    texts = {}
    for name, arguments in runs.items():
        usage(arguments)
        measured = figures_of([usage(arguments) for _ in range(options.rounds)])
        lines, texts[name] = content(out)
        figures["runs"][name] = {**measured, "entries": lines}
    same = [texts[name] for name in ("as a rule", "a twentieth of the memory", "one thread")]
    figures["same_bytes"] = len(set(same)) == 1
    passing = [usage(f"zcat {first} {second} | gzip -6 > /dev/null") for _ in range(options.rounds)]
    figures["passing"] = figures_of(passing)
    report("pivot_speed", figures)


if __name__ == "__main__":
    main()
