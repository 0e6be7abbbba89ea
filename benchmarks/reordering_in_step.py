"""Time to prune a phrase table and its reordering table together, compared with pruning the phrase table alone.

Both tables have 1.1 million lines.  Ratios are of consecutive runs of one round, with similarities from a model and
from a file that an earlier run wrote.  `in step` checks that both outputs contain the same pairs.
"""

from __future__ import annotations

import argparse
import gzip
from itertools import zip_longest

from measuring import COMMAND, WORK, alternate, model, reference, report, run, summary

BAR = 1.6


def pairs(path: str):
    """Yield source and target of each line."""
    with gzip.open(path) as file:
        for line in file:
            yield line.split(b" ||| ")[:2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--protect", default="all", help="all leaves almost everything, words some 60 %%")
    options = parser.parse_args()
    table, folder = str(reference() / "phrase-table.gz"), model()
    reordering = str(reference() / "reordering-table.wbe-msd-bidirectional-fe.gz")
    scores, small, small_reordering = (str(WORK / f"step.{name}") for name in ("parquet", "gz", "reordering.gz"))
    prune = [COMMAND, "prune", table, "--threshold", "0.7", "--protect", options.protect, "-o", small]
    prune += ["--threads", str(options.threads), "-q"]
    both = ["--reordering-table", reordering, "--reordering-out", small_reordering]
    run([*prune, "-m", folder, "--similarities", scores, *both])
    in_step = all(
        pair == reordering_pair for pair, reordering_pair in zip_longest(pairs(small), pairs(small_reordering))
    )
    orphans = [COMMAND, "remove-orphans", small, "--reordering-table", reordering, "-o", small_reordering, "-q"]
    commands: dict[str, list[str] | str] = {
        "prune": [*prune, "-m", folder],
        "prune both": [*prune, "-m", folder, *both],
        "prune --scores": [*prune, "--similarities", scores],
        "prune both --scores": [*prune, "--similarities", scores, *both],
        "remove-orphans": [*orphans, "--threads", str(options.threads)],
    }
    times = alternate(commands, options.rounds)
    ratios = {
        name: summary([a / b for a, b in zip(times[f"prune both{name}"], times[f"prune{name}"], strict=True)])
        for name in ("", " --scores")
    }
    name = "reordering_in_step" if options.protect == "all" else f"reordering_in_step.{options.protect}"
    report(
        name,
        {
            "protect": options.protect,
            "in step": in_step,
            "seconds": {name: summary(values) for name, values in times.items()},
            "ratio of both to one": {"model": ratios[""], "scores": ratios[" --scores"]},
            "bar": BAR,
        },
    )


if __name__ == "__main__":
    main()
