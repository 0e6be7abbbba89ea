"""Comparison of alignment, symmetrisation, extraction and scoring with a real Moses run on Multi30k German-English.

Every line of both tables and every sentence of the alignment are compared.  CPU seconds are those of whole processes;
`zcat T | gzip -6` is measured in the same run because it was also measured for the reference run, where it took 4.5 s
and steps 4-6 took 34 s.
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
    """Run a process; return the CPU seconds of it and its children, and its peak memory in MB."""
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
    """Compare the pairs, scores and other fields of two tables, entry by entry."""
    our_entries, moses_entries = (
        {tuple(line.split(b" ||| ")[:2]): line for line in lines(path)} for path in (made, expected)
    )
    ordered = lines(made), lines(expected)
    shared = [
        (our_entries[pair].split(b" ||| "), line.split(b" ||| "))
        for pair, line in moses_entries.items()
        if pair in our_entries
    ]
    scores = [
        np.array([b" ".join(f[2].split()[:6]).split() for f in side], float) for side in zip(*shared, strict=True)
    ]
    close = (np.abs(scores[0] - scores[1]) <= TOLERANCE * np.abs(scores[1])).all(axis=1)
    figures: dict[str, object] = {
        "entries": len(our_entries),
        "entries_of_reference": len(moses_entries),
        "shared_pairs": len(shared),
        "same_pairs": our_entries.keys() == moses_entries.keys(),
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
    """Return the number of sentences for which each heuristic gives the alignment of the reference."""
    expected = [set(line.split()) for line in lines(folder / "aligned.grow-diag-final-and.gz")]
    directions = [str(folder / f"{name}.align.gz") for name in ("forward", "reverse")]
    equal = {"sentences": len(expected)}
    for method in METHODS:
        command = [COMMAND, "align", *directions, "--only-symmetrise", "--symmetrise", method, "-q"]
        output_lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()
        equal[method] = sum(set(line.split()) == points for line, points in zip(output_lines, expected, strict=True))
    return equal


def align(folder: Path, corpus: list[str]) -> dict[str, object]:
    """Run eflomal twice; return its cost, whether both runs are equal, and the agreement with the reference run."""
    costs, texts = [], []
    for number in (1, 2):
        outputs = [WORK / f"{name}.{number}" for name in ("forward", "reverse", "both")]
        names = ["--forward", str(outputs[0]), "--reverse", str(outputs[1]), "-o", str(outputs[2])]
        costs.append(cpu_run([COMMAND, "align", *corpus, *names, "-q"]))
        texts.append([path.read_bytes() for path in outputs])
    agreement = {}
    for name in ("forward", "reverse"):
        our_points = [set(line.split()) for line in lines(WORK / f"{name}.1")]
        moses_points = [set(line.split()) for line in lines(folder / f"{name}.align.gz")]
        both = sum(len(a & b) for a, b in zip(our_points, moses_points, strict=True))
        agreement[name] = round(2 * both / (sum(map(len, our_points)) + sum(map(len, moses_points))), 4)
    return {**costs[0], "second_run_is_the_first": texts[0] == texts[1], "agreement_f1": agreement}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-alignment", action="store_true", help="leave out eflomal (a minute)")
    options = parser.parse_args()
    folder = reference()
    WORK.mkdir(parents=True, exist_ok=True)
    corpus = [str(folder.parent / f"train.{language}.gz") for language in ("de", "en")]
    outputs = {name: WORK / f"extracted.{name}.gz" for name in TABLES}
    extract = [
        COMMAND, "extract", *corpus, str(folder / "aligned.grow-diag-final-and.gz"), "-q",
        "-o", str(outputs["phrase-table"]), "--reordering-out", str(outputs["reordering-table"]),
        "--lexical", str(WORK / "lex"),
    ]  # fmt: skip
    table = folder / "phrase-table.gz"
    # The first round compiles the kernels and is not counted.
    cpu_run(extract)
    runs = [(cpu_run(extract), cpu_run(f"zcat {table} | gzip -6 > /dev/null")) for _ in range(options.rounds)]
    seconds = min(run["cpu_seconds"] for run, _ in runs)
    passing = min(run["cpu_seconds"] for _, run in runs)
    low_memory = cpu_run([*extract[:-6], "-o", str(WORK / "little.gz"), "--memory", "20M"])
    figures: dict[str, object] = {
        "extract": {
            "cpu_seconds": seconds,
            "zcat_gzip_cpu_seconds": passing,
            "ratio": round(seconds / passing, 2),
            "ratio_of_moses_steps_4_to_6": round(REFERENCE_RATIO, 2),
            "peak_mb": max(run["peak_mb"] for run, _ in runs),
        }
    }
    # Child processes inherit the peak memory of this process, so comparisons, which load whole tables, are last.
    if not options.no_alignment:
        figures["align"] = align(folder, corpus)
    figures["symmetrisation_equal_to_reference"] = compare_symmetrisation(folder)
    figures |= {name: compare_tables(outputs[name], folder / f"{file}.gz") for name, file in TABLES.items()}
    figures["lexical_tables_same_lines"] = {
        name: sorted(lines(WORK / f"lex.{name}")) == sorted(lines(folder / f"lex.{name}.gz")) for name in ("f2e", "e2f")
    }
    figures["memory_20M"] = {**low_memory, "same_table": lines(WORK / "little.gz") == lines(outputs["phrase-table"])}
    report("extraction", figures)


if __name__ == "__main__":
    main()
