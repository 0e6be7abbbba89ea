"""The two encoders beside each other: accuracy on held-out pairs at equal dimensions, speed of training, of annotating.

Accuracy and training as in objectives.py, on Multi30k German-English, with the loss in-batch and the defaults of
`phrasetool train` but for what is said here.  Annotating: the reference table of 1.1 million entries, both cores, all
models in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

import torch
from measuring import COMMAND, ROOT, WORK, alternate, reference, report, summary
from objectives import accuracies, accuracy, split, training_seconds

from moses_compat.pairs import read_pairs
from moses_compat.streams import Input
from phrasetool.encoders import ENCODERS

RESULTS = ROOT / "benchmarks" / "results" / "encoders.json"
PAIRS = "multi30k-de-en"
# Of mean-max: four heads, its default, cannot share 25 hidden units.
HEADS = {50: 5}
# What `annotate` is compared with, and how many times its time may be taken.
YARDSTICK, BAR = "rae, n = 50", 10.0


def changes(encoder: str, dimension: int) -> dict[str, Any]:
    """Settings that are not the defaults."""
    heads = {"heads": HEADS[dimension]} if encoder == "mean-max" and dimension in HEADS else {}
    return {"encoder": encoder, "dimension": dimension, **heads}


def flags(encoder: str, dimension: int) -> list[str]:
    """The same for the command line."""
    return [part for name, value in changes(encoder, dimension).items() for part in (f"--{name}", str(value))]


def annotating(models: dict[str, str], rounds: int) -> dict[str, Any]:
    """Seconds to annotate the reference table with each model, and ratios to the yardstick of the same round."""
    table, out = str(reference() / "phrase-table.gz"), str(WORK / "annotated.gz")
    times = alternate(
        {name: [COMMAND, "annotate", table, "-m", model, "-o", out, "-q"] for name, model in models.items()}, rounds
    )
    return {
        name: {
            "seconds": summary(values),
            "ratio": summary([a / b for a, b in zip(values, times[YARDSTICK], strict=True)]),
        }
        for name, values in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimensions", nargs="+", type=int, default=[50, 200, 512])
    parser.add_argument("--seeds", type=int, default=2, help="1 .. N; 0: accuracy stays as it was measured before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, help="for a trial; then nothing is kept")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    train, held_out = split(PAIRS)
    ways = {f"{name}, n = {n}": (name, n) for n in options.dimensions for name in ENCODERS}
    found: dict[str, dict[str, Any]] = {}
    if RESULTS.is_file() and not options.iterations:
        found = json.loads(RESULTS.read_text())["encoders"]
    trial = ["--iterations", str(options.iterations)] if options.iterations else []
    models = {}
    for way, which in ways.items():
        models[way] = str(WORK / f"encoders-{which[0]}-{which[1]}")
        if not options.seeds:
            # A model is wanted for its speed alone, which does not depend on how long it was trained.
            accuracy(train, held_out, models[way], [*flags(*which), "--iterations", "1"])
            continue
        measured = accuracies(train, held_out, models[way], [*flags(*which), *trial], options.seeds)
        found.setdefault(way, {}).update(measured)
        print(way, found[way], flush=True)
    with Input(train) as source:
        pairs = read_pairs(source)
    for way, seconds in training_seconds(pairs, {w: changes(*ways[w]) for w in ways}, options.rounds).items():
        found.setdefault(way, {})["pairs_per_second"] = round(len(pairs) / statistics.median(seconds))
    for way, row in annotating(models, options.rounds).items():
        found[way]["annotate"] = row
    figures = {"pairs": len(pairs), "encoders": found, "bars": {"ratio of mean-max, n = 512": BAR}}
    if options.iterations:
        print(json.dumps(figures, indent=2))
    else:
        report("encoders", figures)


if __name__ == "__main__":
    main()
