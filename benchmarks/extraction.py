"""Alignment, symmetrisation, extraction and scoring against a real Moses run on Multi30k German-English.

Every line of both tables is compared, and every sentence of the alignment.  CPU seconds are those of whole processes;
`zcat T | gzip -6` is measured in the same run because the reference has it, too: its steps 4-6 took 34 s where that
took 4.5 s.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import numpy as np
from measuring import COMMAND, WORK, reference, report

TABLES = {"phrase-table": "phrase-table", "reordering-table": "reordering-table.wbe-msd-bidirectional-fe"}
METHODS = ["grow-diag-final-and", "grow-diag-final", "grow-diag", "grow", "intersection", "union"]
TOLERANCE = 1e-5
REFERENCE_RATIO = 34 / 4.5


def cpu_run(command: list[str] | str) -> dict[str, float]:
    """Run a process; CPU seconds of it and its children, and its peak memory in MB."""
    process = subprocess.Popen(command, shell=isinstance(command, str), stdout=subprocess.DEVNULL)
    before = os.times()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    after = os.times()
    if process.returncode:
        sys.exit(f"{command} failed")
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return {"cpu_seconds": round(seconds, 2), "peak_mb": round(usage.ru_maxrss / 1024)}


def lines(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()


def compare_tables(made: Path, expected: Path) -> dict[str, object]:
    """Pairs, numbers, and the other fields, entry by entry."""
    ours, theirs = ({tuple(line.split(b" ||| ")[:2]): line for line in lines(path)} for path in (made, expected))
    ordered = lines(made), lines(expected)
    shared = [(ours[pair].split(b" ||| "), line.split(b" ||| ")) for pair, line in theirs.items() if pair in ours]
    scores = [
        np.array([b" ".join(f[2].split()[:6]).split() for f in side], float) for side in zip(*shared, strict=True)
    ]
    close = (np.abs(scores[0] - scores[1]) <= TOLERANCE * np.abs(scores[1])).all(axis=1)
    figures: dict[str, object] = {
        "entries": len(ours),
        "entries_of_reference": len(theirs),
        "shared_pairs": len(shared),
        "same_pairs": ours.keys() == theirs.keys(),
        "entries_with_all_scores_within_1e-5": int(close.sum()),
        "largest_relative_difference": float((np.abs(scores[0] - scores[1]) / np.abs(scores[1])).max()),
        "byte_identical_lines": sum(a == b for a, b in zip_longest(*ordered)),
        "same_order": [line.split(b" ||| ")[:2] for line in ordered[0]]
        == [line.split(b" ||| ")[:2] for line in ordered[1]],
    }
    if len(shared[0][0]) > 3:
        figures["equal_alignments"] = sum(a[3] == b[3] for a, b in shared)
        figures["equal_counts"] = sum(a[4] == b[4] for a, b in shared)
    return figures


def compare_symmetrisation(folder: Path) -> dict[str, int]:
    """Sentences on which each heuristic gives the alignment of the reference."""
    expected = [set(line.split()) for line in lines(folder / "aligned.grow-diag-final-and.gz")]
    directions = [str(folder / f"{name}.align.gz") for name in ("forward", "reverse")]
    equal = {"sentences": len(expected)}
    for method in METHODS:
        command = [COMMAND, "align", *directions, "--only-symmetrise", "--symmetrise", method, "-q"]
        made = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()
        equal[method] = sum(set(line.split()) == points for line, points in zip(made, expected, strict=True))
    return equal


def align(folder: Path, corpus: list[str]) -> dict[str, object]:
    """eflomal twice: cost, whether the second run is the first, and agreement with the reference's run."""
    costs, texts = [], []
    for number in (1, 2):
        kept = [WORK / f"{name}.{number}" for name in ("forward", "reverse", "both")]
        names = ["--forward", str(kept[0]), "--reverse", str(kept[1]), "-o", str(kept[2])]
        costs.append(cpu_run([COMMAND, "align", *corpus, *names, "-q"]))
        texts.append([path.read_bytes() for path in kept])
    agreement = {}
    for name in ("forward", "reverse"):
        ours = [set(line.split()) for line in lines(WORK / f"{name}.1")]
        theirs = [set(line.split()) for line in lines(folder / f"{name}.align.gz")]
        both = sum(len(a & b) for a, b in zip(ours, theirs, strict=True))
        agreement[name] = round(2 * both / (sum(map(len, ours)) + sum(map(len, theirs))), 4)
    return {**costs[0], "second_run_is_the_first": texts[0] == texts[1], "agreement_f1": agreement}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-alignment", action="store_true", help="leave out eflomal (a minute)")
    options = parser.parse_args()
    folder = reference()
    WORK.mkdir(parents=True, exist_ok=True)
    corpus = [str(folder.parent / f"train.{language}.gz") for language in ("de", "en")]
    made = {name: WORK / f"extracted.{name}.gz" for name in TABLES}
    extract = [
        COMMAND, "extract", *corpus, str(folder / "aligned.grow-diag-final-and.gz"), "-q",
        "-o", str(made["phrase-table"]), "--reordering-out", str(made["reordering-table"]),
        "--lexical", str(WORK / "lex"),
    ]  # fmt: skip
    table = folder / "phrase-table.gz"
    # The first round compiles the kernels and is not counted.
    cpu_run(extract)
    runs = [(cpu_run(extract), cpu_run(f"zcat {table} | gzip -6 > /dev/null")) for _ in range(options.rounds)]
    seconds = min(run["cpu_seconds"] for run, _ in runs)
    passing = min(run["cpu_seconds"] for _, run in runs)
    little = cpu_run([*extract[:-6], "-o", str(WORK / "little.gz"), "--memory", "20M"])
    figures: dict[str, object] = {
        "extract": {
            "cpu_seconds": seconds,
            "zcat_gzip_cpu_seconds": passing,
            "ratio": round(seconds / passing, 2),
            "ratio_of_moses_steps_4_to_6": round(REFERENCE_RATIO, 2),
            "peak_mb": max(run["peak_mb"] for run, _ in runs),
        }
    }
    # A process inherits the peak memory of this one, so comparisons, which hold whole tables, come last.
    if not options.no_alignment:
        figures["align"] = align(folder, corpus)
    figures["symmetrisation_equal_to_reference"] = compare_symmetrisation(folder)
    figures |= {name: compare_tables(made[name], folder / f"{file}.gz") for name, file in TABLES.items()}
    figures["lexical_tables_same_lines"] = {
        name: sorted(lines(WORK / f"lex.{name}")) == sorted(lines(folder / f"lex.{name}.gz")) for name in ("f2e", "e2f")
    }
    figures["memory_20M"] = {**little, "same_table": lines(WORK / "little.gz") == lines(made["phrase-table"])}
    report("extraction", figures)


if __name__ == "__main__":
    main()
