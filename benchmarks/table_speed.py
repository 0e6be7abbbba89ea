"""Annotate and prune a real table of 1.1 million entries, against decompressing and compressing it with gzip.

`zcat T | gzip -6` is what a table costs to pass through any filter of a shell pipeline; igzip to igzip -1 is the floor
for any program that reads and writes gzip.  phrasetool compresses at level 1: `zcat T | gzip -1` stands beside it, and
how large the annotated table is by all of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from measuring import COMMAND, WORK, alternate, compile_kernels, model, reference, report, run, summary


def megabytes(annotated: str) -> dict[str, float]:
    """How large the annotated table is, and how large gzip would make it."""
    found = {"annotate": os.path.getsize(annotated)}
    for level in (1, 6):
        done = subprocess.run(f"zcat {annotated} | gzip -{level} | wc -c", shell=True, capture_output=True, check=True)
        found[f"gzip -{level}"] = int(done.stdout)
    return {name: round(size / 1e6, 1) for name, size in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    compile_kernels()
    table, folder = str(reference() / "phrase-table.gz"), model()
    scores = str(WORK / "scores.parquet")
    threads, one = ["--threads", str(options.threads), "-q"], ["--threads", "1", "-q"]
    prune = [COMMAND, "prune", table, "--threshold", "0.7", "-o", str(WORK / "pruned.gz"), *threads]
    annotate = [COMMAND, "annotate", table, "-m", folder, "-o", str(WORK / "annotated.gz")]
    run([*prune, "-m", folder, "--scores", scores])
    igzip = f"{sys.executable} -m isal.igzip"
    commands: dict[str, list[str] | str] = {
        "zcat | gzip -6": f"zcat {table} | gzip -6 > /dev/null",
        "zcat | gzip -1": f"zcat {table} | gzip -1 > /dev/null",
        "igzip | igzip -1": f"{igzip} -cd {table} | {igzip} -c -1 > /dev/null",
        "annotate": [*annotate, *threads],
        "annotate, one thread": [*annotate, *one],
        "prune": [*prune, "-m", folder],
        "prune --scores": [*prune, "--scores", scores],
    }
    times = alternate(commands, options.rounds)
    base = times["zcat | gzip -6"]
    ratios = {
        name: summary([a / b for a, b in zip(values, base, strict=True)])
        for name, values in times.items()
        if name in ("annotate", "prune", "prune --scores", "zcat | gzip -1")
    }
    report(
        "table_speed",
        {
            "seconds": {name: summary(values) for name, values in times.items()},
            "ratio to zcat | gzip -6": ratios,
            "annotate: one thread to two": summary(
                [a / b for a, b in zip(times["annotate, one thread"], times["annotate"], strict=True)]
            ),
            "megabytes of the annotated table": megabytes(str(WORK / "annotated.gz")),
            "bars": {"annotate": 0.55, "prune": 0.45, "prune --scores": 0.18, "one thread to two": 1.8},
        },
    )


if __name__ == "__main__":
    main()
