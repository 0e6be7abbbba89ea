"""Mining large corpora: time and memory of exact search, and accuracy of approximate search.

Vectors are clustered like those of sentences: topics of about fifty sentences, and a translation near each sentence.

* Exact: 100,000 x 100,000 x 256, both directions; at most 3 minutes and 1.5 GB on two idle cores.
* Approximate: 300,000 x 300,000 x 256, source to target; the nearest neighbour must be correct for at least 98 %, on a
  different sample from the one that the search itself measures.

Each runs in a separate process.  The load of the machine is reported, because times on a busy machine are too long.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import WORK, report, usage

FOLDER = WORK / "mining-size"
DIMENSION, TOPIC, NEIGHBOURS = 256, 50, 4
BAR = {"seconds": 180.0, "bytes": 1.5e9, "agreement": 0.98}
CHECKED = 2000


def vectors(count: int) -> tuple[Path, Path]:
    """Return files of float16 unit vectors, written once."""
    paths = FOLDER / f"{count}.source", FOLDER / f"{count}.target"
    if all(path.is_file() and path.stat().st_size == 2 * count * DIMENSION for path in paths):
        return paths
    FOLDER.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    topics = rng.standard_normal((count // TOPIC, DIMENSION), np.float32)
    with open(paths[0], "wb") as first, open(paths[1], "wb") as second:
        for begin in range(0, count, 10_000):
            size = min(10_000, count - begin)
            rows = topics[rng.integers(0, len(topics), size)] + rng.standard_normal((size, DIMENSION), np.float32)
            near = rows + 0.7 * rng.standard_normal((size, DIMENSION), np.float32)
            for file, part in ((first, rows), (second, near)):
                file.write((part / np.linalg.norm(part, axis=1, keepdims=True)).astype(np.float16).tobytes())
    return paths


def mapped(count: int) -> list[Any]:
    return [np.memmap(path, np.float16, "r", shape=(count, DIMENSION)) for path in vectors(count)]


def exact(count: int, threads: int) -> None:
    """Search exactly, in the measured process, and write the shares of correct nearest neighbours."""
    from phrasetool.bitext.nearest import nearest_both_ways

    sources, targets = mapped(count)
    forward, backward = nearest_both_ways(sources, targets, NEIGHBOURS, threads)
    correct_shares = [float((neighbours.rows[:, 0] == np.arange(count)).mean()) for neighbours in (forward, backward)]
    (FOLDER / "found.txt").write_text(" ".join(map(str, correct_shares)))


def approximate(count: int, threads: int) -> None:
    """Search approximately, in the measured process, and write the agreement with exact search."""
    from phrasetool.bitext.nearest import approximately_nearest, exact_rows

    sources, targets = mapped(count)
    neighbours, agreement = approximately_nearest(sources, targets, NEIGHBOURS, threads)
    began = time.perf_counter()
    sample = np.sort(np.random.default_rng(99).choice(count, CHECKED, replace=False))
    exact_neighbours = exact_rows(np.ascontiguousarray(sources[sample]), targets, NEIGHBOURS, threads)[0]
    checking = time.perf_counter() - began
    first = float((neighbours.rows[sample, 0] == exact_neighbours[:, 0]).mean())
    shared = (
        float(np.mean([len(set(a) & set(b)) for a, b in zip(neighbours.rows[sample], exact_neighbours, strict=True)]))
        / NEIGHBOURS
    )
    figures = agreement.share, first, shared, agreement.probed, agreement.cells, checking
    (FOLDER / "found.txt").write_text(" ".join(map(str, figures)))


def measured(what: str, count: int, threads: int) -> tuple[dict[str, Any], list[float]]:
    vectors(count)
    before = os.getloadavg()[0]
    process = usage([sys.executable, __file__, "--only", what, "--count", str(count), "--threads", str(threads)])
    report = {
        "count": count, "dimension": DIMENSION, "threads": threads, "seconds": round(process.wall, 1),
        "cpu_seconds": round(process.cpu, 1), "peak_bytes": process.peak, "load_before": round(before, 2),
    }  # fmt: skip
    # Printed immediately, because the second part takes long.
    print(report, file=sys.stderr, flush=True)
    return report, [float(value) for value in (FOLDER / "found.txt").read_text().split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--exact", type=int, default=100_000, help="sentences a side for exact search")
    parser.add_argument("--approximate", type=int, default=300_000, help="sentences a side for approximate search")
    parser.add_argument("--only", choices=["exact", "approximate"], help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        {"exact": exact, "approximate": approximate}[options.only](options.count, options.threads)
        return
    first, correct_shares = measured("exact", options.exact, options.threads)
    first |= {"true_pair_nearest": correct_shares, "cpu_bound": round(first["cpu_seconds"] / options.threads, 1)}
    first["passed"] = first["cpu_bound"] <= BAR["seconds"] and first["peak_bytes"] <= BAR["bytes"]
    second, measurements = measured("approximate", options.approximate, options.threads)
    names = ("agreement_told", "agreement_checked", "neighbours_shared", "probed", "cells", "checking_seconds")
    second |= dict(zip(names, measurements, strict=True))
    second["passed"] = second["agreement_checked"] >= BAR["agreement"]
    report("mining_size", {"bar": BAR, "exact": first, "approximate": second})


if __name__ == "__main__":
    main()
