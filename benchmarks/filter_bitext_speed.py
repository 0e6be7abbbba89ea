"""Speed of `filter-bitext` on one and two threads, and its peak memory on a bitext and on one of twice the size.

    python benchmarks/filter_bitext_speed.py MODEL SOURCE TARGET

MODEL is a classifier for the languages of the bitext SOURCE and TARGET.  Half of the pairs are made wrong, and the
bitext is repeated up to --pairs pairs.  The start-up time is measured on a bitext of one pair and subtracted.  Pairs
per CPU second are reported as well, for machines with other load.  Memory is constant if twice the pairs need hardly
more.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import random
from pathlib import Path

from measuring import COMMAND, WORK, report, usage

BAR = 1000


def lines_of(path: str) -> list[bytes]:
    """Read the lines of a file, compressed or not."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        return file.read().splitlines()


def write_pairs(sides: list[list[bytes]], count: int, name: str) -> list[Path]:
    """Write the first pairs of a bitext, repeated if it has fewer; return the paths of both sides."""
    paths = [WORK / f"{name}.{side}" for side in ("source", "target")]
    for path, lines in zip(paths, sides, strict=True):
        with open(path, "wb") as out:
            out.writelines(line + b"\n" for line in itertools.islice(itertools.cycle(lines), count))
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--pairs", type=int, default=60_000)
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    sources, targets = (lines_of(path) for path in (options.source, options.target))
    wrong = sorted(random.Random(1).sample(range(len(targets)), len(targets) // 2))
    moved = [targets[row] for row in wrong[1:] + wrong[:1]]
    for row, target in zip(wrong, moved, strict=True):
        targets[row] = target
    outputs = ["-o", WORK / "kept.source", WORK / "kept.target", "-q", "-m", options.model]
    figures: dict[str, object] = {"pairs": options.pairs, "bar": BAR}

    def measured(count: int, threads: int):
        files = write_pairs([sources, targets], count, "dirty")
        return usage([COMMAND, "filter-bitext", *files, *outputs, "--threads", str(threads)])

    for threads in (2, 1):
        start, whole = measured(1, threads), measured(options.pairs, threads)
        figures[f"threads_{threads}"] = {
            "pairs_a_second": round(options.pairs / (whole.wall - start.wall)),
            "pairs_a_cpu_second": round(options.pairs / (whole.cpu - start.cpu)),
            "start_seconds": round(start.wall, 1),
            "peak_mb": round(whole.peak / 1e6),
        }
    figures["peak_mb_of_twice_the_pairs"] = round(measured(2 * options.pairs, 2).peak / 1e6)
    report("filter_bitext_speed", figures)


if __name__ == "__main__":
    main()
