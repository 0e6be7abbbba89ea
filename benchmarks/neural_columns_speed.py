"""Seconds and memory of `annotate` with a translator, for both readings, or with a classifier of sentence pairs, on the
whole table and on half of it.

    python benchmarks/neural_columns_speed.py MODEL

MODEL is a translator or a classifier of the reference run's languages; the result of a classifier is
`parallel_columns_speed`.  Memory is flat if the whole table takes hardly more than half.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
from pathlib import Path

from measuring import COMMAND, WORK, reference, report, usage

BARS = {"continuous": {"density": 150, "normalised": 480}, "parallel": {"probability": 300}}
RESULTS = {"continuous": "neural_columns_speed", "parallel": "parallel_columns_speed"}


def half_of(table: Path, out: Path) -> int:
    """Write every line of the first half of a table; how many lines the table has."""
    with gzip.open(table, "rb") as source:
        lines = sum(1 for _ in source)
    with gzip.open(table, "rb") as source, gzip.open(out, "wb", 1) as destination:
        destination.writelines(itertools.islice(source, lines // 2))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", default="2")
    given = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    table, half, out = reference() / "phrase-table.gz", WORK / "half.gz", WORK / "neural.gz"
    figures: dict[str, object] = {"entries": half_of(table, half), "threads": int(given.threads)}
    kind = json.loads((Path(given.model) / "config.json").read_text())["model"]
    for reading, bar in BARS[kind].items():
        command = ["-m", given.model, "-o", out, "-q", "--threads", given.threads]
        command += ["--reading", reading] if kind == "continuous" else []
        whole, part = (usage([COMMAND, "annotate", path, *command]) for path in (table, half))
        figures[reading] = {
            "seconds": round(whole.wall, 1),
            "cpu_seconds": round(whole.cpu, 1),
            "bar": bar,
            "peak_mb": round(whole.peak / 1e6),
            "peak_mb_of_half": round(part.peak / 1e6),
        }
    report(RESULTS[kind], figures)


if __name__ == "__main__":
    main()
