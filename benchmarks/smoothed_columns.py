"""Columns that need no model, on the reference table: smoothed ones against extraction, and how long each kind takes.

The table of the real Moses run is annotated from its counts alone; for comparison, the bitext of that run is extracted
again, with smoothing.  Pairs and probabilities of the two are compared as text, line by line.  Probabilities of forced
decoding are only timed here.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from pathlib import Path

from isal import igzip
from measuring import COMMAND, alternate, reference, report, run, summary

METHODS = ("kneser-ney", "good-turing")
# p(e|f) and p(f|e) among the scores of an extracted and of an annotated entry.
EXTRACTED, ANNOTATED = (2, 0), (4, 5)


def equal_lines(extracted: Path, annotated: Path) -> tuple[int, int]:
    """How many lines have the same pair and the same two numbers; how many there are."""
    equal = lines = 0
    with igzip.open(extracted) as one, igzip.open(annotated) as other:
        for pair in zip(one, other, strict=True):
            (*ours, first), (*theirs, second) = (line.split(b" ||| ", 3)[:3] for line in pair)
            scores = first.split(), second.split()
            equal += ours == theirs and all(
                scores[0][a] == scores[1][b] for a, b in zip(EXTRACTED, ANNOTATED, strict=True)
            )
            lines += 1
    return equal, lines


def timed(command: list[str], table: str, rounds: int) -> dict[str, object]:
    """Seconds, compared with those of gzip."""
    times = alternate({"annotate": command, "gzip": f"zcat {table} | gzip -6 > /dev/null"}, rounds)
    ratios = [a / b for a, b in zip(times["annotate"], times["gzip"], strict=True)]
    return {"seconds": summary(times["annotate"]), "ratio to zcat | gzip -6": summary(ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    folder = reference()
    table = str(folder / "phrase-table.gz")
    corpus = [str(folder.parent / f"train.{language}.gz") for language in ("de", "en")]
    threads = ["--threads", str(options.threads), "-q"]
    figures: dict[str, object] = {"threads": options.threads}
    with tempfile.TemporaryDirectory() as work:
        points, extracted, annotated = (Path(work) / name for name in ("aligned", "extracted.gz", "annotated.gz"))
        points.write_bytes(gzip.decompress((folder / "aligned.grow-diag-final-and.gz").read_bytes()))
        for method in METHODS:
            smoothing = ["--smoothing", method, *threads]
            annotate = [COMMAND, "annotate", table, *smoothing, "-o", str(annotated)]
            run([COMMAND, "extract", *corpus, str(points), *smoothing, "-o", str(extracted)])
            _, peak = run(annotate)
            equal, lines = equal_lines(extracted, annotated)
            figures[method] = {
                "entries": lines,
                "equal to extraction, digit by digit": equal,
                **timed(annotate, table, options.rounds),
                "peak_mb": round(peak / 2**20),
            }
        pairs = str(folder / "forced-pairs.gz")
        forced = [
            COMMAND,
            "annotate",
            table,
            "--forced-pairs",
            pairs,
            "--smoothing",
            "none",
            *threads,
            "-o",
            str(annotated),
        ]
        figures["forced pairs"] = timed(forced, table, options.rounds)
    report("smoothed_columns", figures)


if __name__ == "__main__":
    main()
