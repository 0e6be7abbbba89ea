"""Comparison of the two encoders: accuracy on held-out pairs at equal dimensions, speed of training, of annotating.

Accuracy and training as in objectives.py, on Multi30k German-English, with the loss in-batch and the defaults of
`phrasetool train` but for what is said here; mean-max besides with layers that learn.  Annotating: the reference table
of 1.1 million entries, both cores, all models in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

import torch
from measuring import COMMAND, ROOT, WORK, alternate, reference, report, summary
from objectives import accuracies, accuracy, split, training_seconds

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.streams import Input

RESULTS = ROOT / "benchmarks" / "results" / "encoders.json"
PAIRS = "multi30k-de-en"
# Of mean-max: four heads, its default, cannot share 25 hidden units.
HEADS = {50: 5}
# Without these, layers that learn end lower or not at all.
TRAINED = {"layers": "trained", "learning_rate": 0.001, "vectors": "word2vec", "vector_scale": 0.1}
# What `annotate` is compared with, and how many times its time may be taken.
YARDSTICK, BAR = "rae, n = 50", 10.0


def ways(dimensions: list[int]) -> dict[str, dict[str, Any]]:
    """Name -> settings that are not the defaults."""
    results: dict[str, dict[str, Any]] = {}
    for n in dimensions:
        heads = {"heads": HEADS[n]} if n in HEADS else {}
        results[f"rae, n = {n}"] = {"encoder": "rae", "dimension": n}
        results[f"mean-max, n = {n}"] = {"encoder": "mean-max", "dimension": n, **heads}
        results[f"mean-max, layers trained, n = {n}"] = {"encoder": "mean-max", "dimension": n, **heads, **TRAINED}
    return results


def flags(changes: dict[str, Any]) -> list[str]:
    """The same for the command line."""
    return [part for name, value in changes.items() for part in (f"--{name.replace('_', '-')}", str(value))]


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
    parser.add_argument("--only", default="", help="rows whose names begin like this: rae")
    parser.add_argument("--seeds", type=int, default=2, help="1 .. N; 0: accuracy stays as it was measured before")
    parser.add_argument("--rounds", type=int, default=3, help="of timing; 0: speeds stay as they were measured before")
    parser.add_argument("--epochs", type=int, help="for a trial; then nothing is kept")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    train, held_out = split(PAIRS)
    chosen = {way: how for way, how in ways(options.dimensions).items() if way.startswith(options.only)}
    if options.rounds and YARDSTICK not in chosen:
        parser.error(f"annotate is compared with {YARDSTICK}, which is not among the rows; give --rounds 0")
    results: dict[str, dict[str, Any]] = {way: {} for way in chosen}
    trial = ["--epochs", str(options.epochs)] if options.epochs else []
    models = {}
    for way, changes in chosen.items():
        models[way] = str(WORK / f"encoders-{way.replace(', ', '-').replace(' ', '')}")
        if not options.seeds:
            # Only the speed of the model matters here, which does not depend on the length of training.
            accuracy(train, held_out, models[way], [*flags(changes), "--epochs", "1"])
            continue
        results[way] = accuracies(train, held_out, models[way], [*flags(changes), *trial], options.seeds)
        print(way, results[way], flush=True)
    with Input(train) as source:
        pairs = read_training_pairs(source)
    if options.rounds:
        for way, seconds in training_seconds(pairs, chosen, options.rounds).items():
            results[way]["pairs_per_second"] = round(len(pairs) / statistics.median(seconds))
        # To annotate, layers are layers.
        alike = {way: model for way, model in models.items() if "layers" not in chosen[way]}
        for way, row in annotating(alike, options.rounds).items():
            results[way]["annotate"] = row
    if options.epochs:
        print(json.dumps(results, indent=2))
        return
    # Earlier measurements are kept unless they were repeated.
    kept = json.loads(RESULTS.read_text())["encoders"] if RESULTS.is_file() else {}
    for way, row in results.items():
        kept.setdefault(way, {}).update(row)
    report("encoders", {"pairs": len(pairs), "encoders": kept, "bars": {"ratio of mean-max, n = 512": BAR}})


if __name__ == "__main__":
    main()
