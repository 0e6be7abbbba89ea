"""Time to annotate and prune a table of 1.1 million entries, compared with decompressing and compressing it with gzip.

`zcat T | gzip -6` is the time of passing a table through any filter of a shell pipeline; `igzip | igzip -1` is the
lower bound for any program that reads and writes gzip.  phrasetool compresses at level 1, so `zcat T | gzip -1` is
measured as well, and the size of the annotated table by each compressor.

With one thread, reading and writing still use a second core; with one core, everything runs on it.

The start-up time of a command, measured on a table of a hundred entries, does not depend on threads; two threads can at
best halve the rest of its CPU time.  `least` is the resulting time without any waiting of threads.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice

from measuring import COMMAND, WORK, alternate, compile_kernels, model, reference, report, run, summary, usage

FEW = 100


def megabytes(annotated: str) -> dict[str, float]:
    """Return the size of the annotated table, and its size when compressed by gzip."""
    sizes = {"annotate": os.path.getsize(annotated)}
    for level in (1, 6):
        process = subprocess.run(
            f"zcat {annotated} | gzip -{level} | wc -c", shell=True, capture_output=True, check=True
        )
        sizes[f"gzip -{level}"] = int(process.stdout)
    return {name: round(size / 1e6, 1) for name, size in sizes.items()}


def beginning(table: str) -> str:
    """Write a table of the first entries; return its path."""
    path = WORK / "few.gz"
    with gzip.open(table, "rb") as file, gzip.open(path, "wb") as few:
        few.writelines(islice(file, FEW))
    return str(path)


def least(whole: Sequence[str], few: Sequence[str], threads: int, rounds: int) -> dict[str, float]:
    """Return the minimum seconds of a command: its start-up, and the other CPU time divided by the threads."""
    runs = [(usage(whole), usage(few)) for _ in range(rounds)]
    cpu, start, start_cpu = (
        statistics.median(values) for values in zip(*((a.cpu, b.wall, b.cpu) for a, b in runs), strict=True)
    )
    needed = start + (cpu - start_cpu) / threads
    return {"cpu": round(cpu, 3), "start": round(start, 3), "least": round(needed, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    compile_kernels()
    table, folder = str(reference() / "phrase-table.gz"), model()
    scores = str(WORK / "scores.parquet")
    threads, single_thread = ["--threads", str(options.threads), "-q"], ["--threads", "1", "-q"]
    pruned, annotated = WORK / "pruned.gz", WORK / "annotated.gz"
    prune = [COMMAND, "prune", table, "--threshold", "0.7", "-o", str(pruned), *threads]
    annotate = [COMMAND, "annotate", table, "-m", folder, "-o", str(annotated)]
    core = str(min(os.sched_getaffinity(0)))
    run([*prune, "-m", folder, "--similarities", scores])
    igzip = f"{sys.executable} -m isal.igzip"
    commands: dict[str, list[str] | str] = {
        "zcat | gzip -6": f"zcat {table} | gzip -6 > /dev/null",
        "zcat | gzip -1": f"zcat {table} | gzip -1 > /dev/null",
        "igzip | igzip -1": f"{igzip} -cd {table} | {igzip} -c -1 > /dev/null",
        "annotate": [*annotate, *threads],
        "annotate, one thread": [*annotate, *single_thread],
        "annotate, one core": ["taskset", "-c", core, *annotate, *single_thread],
        "prune": [*prune, "-m", folder],
        "prune --scores": [*prune, "--similarities", scores],
    }
    times = alternate(commands, options.rounds, [pruned, annotated])
    run(commands["annotate"])
    few, few_scores, out = beginning(table), str(WORK / "few.parquet"), str(WORK / "few-out.gz")
    few_prune = [COMMAND, "prune", few, "--threshold", "0.7", "-o", out, *threads, "--similarities", few_scores]
    run([*few_prune, "-m", folder])
    bounds = {
        name: least(commands[name], short, options.threads, options.rounds)
        for name, short in (
            ("annotate", [COMMAND, "annotate", few, "-m", folder, "-o", out, *threads]),
            ("prune --scores", few_prune),
        )
    }
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
            **{
                f"annotate: {fewer} to two": summary(
                    [a / b for a, b in zip(times[f"annotate, {fewer}"], times["annotate"], strict=True)]
                )
                for fewer in ("one thread", "one core")
            },
            "least seconds": bounds,
            "least ratio": {name: round(bound["least"] / statistics.median(base), 3) for name, bound in bounds.items()},
            "megabytes of the annotated table": megabytes(str(annotated)),
            "bars": {"annotate": 0.55, "prune": 0.45, "prune --scores": 0.18, "one thread to two": 1.8},
        },
    )


if __name__ == "__main__":
    main()
