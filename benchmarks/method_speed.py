"""Time of `prune` with methods that need the whole table: the reference table is pruned to a tenth.

Similarities are computed beforehand.  `zcat | gzip -6` of the same table is measured in turn with the methods.
"""

from __future__ import annotations

import argparse

from measuring import COMMAND, WORK, alternate, model, reference, report, run, summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    moses = reference()
    table, scores = str(moses / "phrase-table.gz"), str(WORK / "scores.parquet")
    run([COMMAND, "prune", table, "-m", model(), "--similarities", scores, "--sweep", "0.7:0.7:0.1", "-q"])
    stored = ["--similarities", scores]
    rule = ["--target-size", "0.1", "-o", str(WORK / "by-method.gz"), "-q"]
    weights = ["--moses-ini", str(moses / "moses.ini")]
    corpus = ["--bitext", str(moses.parent / "train.de.gz"), str(moses.parent / "train.en.gz")]
    methods = {
        "composition+semantic": [*weights, *stored],
        "composition+semantic+usage": [*weights, *stored, "--forced-pairs", str(moses / "forced-pairs.gz")],
        "composition+semantic+significance": [*weights, *corpus, *stored],
        "count+semantic": stored,
        "significance": corpus,
    }
    commands: dict[str, list[str] | str] = {
        name: [COMMAND, "prune", table, "--method", name, *needs, *rule] for name, needs in methods.items()
    }
    memory = {name: round(run(command)[1] / 1e6) for name, command in commands.items()}
    commands["zcat | gzip -6"] = f"zcat {table} | gzip -6 > {WORK / 'recompressed.gz'}"
    times = {name: summary(values) for name, values in alternate(commands, rounds).items()}
    report("method_speed", {"seconds": times, "peak memory MB": memory})


if __name__ == "__main__":
    main()
