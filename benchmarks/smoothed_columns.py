"""Columns without a model on the reference table: equality of smoothed ones with extraction, and time of each kind.

The table of the real Moses run is annotated from its counts alone; for comparison, the bitext of that run is extracted
again with smoothing.  Pairs and probabilities of both are compared as text, line by line.  Probabilities of forced
decoding are only timed.
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
    """Return the number of lines with the same pair and the same two numbers, and the number of all lines."""
    equal = lines = 0
    with igzip.open(extracted) as extracted_lines, igzip.open(annotated) as annotated_lines:
        for pair in zip(extracted_lines, annotated_lines, strict=True):
            (*extracted_pair, first), (*annotated_pair, second) = (line.split(b" ||| ", 3)[:3] for line in pair)
            scores = first.split(), second.split()
            equal += extracted_pair == annotated_pair and all(
                scores[0][a] == scores[1][b] for a, b in zip(EXTRACTED, ANNOTATED, strict=True)
            )
            lines += 1
    return equal, lines


def timed(command: list[str], table: str, rounds: int) -> dict[str, object]:
    """Return the seconds of a command, and ratios to those of gzip."""
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
