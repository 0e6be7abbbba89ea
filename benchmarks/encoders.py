"""Comparison of the two encoders: accuracy on held-out pairs at equal dimensions, speed of training and annotating.

Accuracy and training speed are measured as in objectives.py, on Multi30k German-English, with the in-batch loss and
the defaults of `phrasetool train` except for the settings below; mean-max is also measured with trained layers.
Annotating speed is measured on the reference table of 1.1 million entries, on both cores, with all models in turn.
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
# For mean-max: 25 hidden units are not divisible by four heads, the default.
HEADS = {50: 5}
# Without these settings, training the layers ends at a lower accuracy or fails.
TRAINED = {"layers": "trained", "learning_rate": 0.001, "vectors": "word2vec", "vector_scale": 0.1}
# The model that the time of `annotate` is compared with, and the largest acceptable ratio.
YARDSTICK, BAR = "rae, n = 50", 10.0


def ways(dimensions: list[int]) -> dict[str, dict[str, Any]]:
    """Return the settings of each encoder that differ from the defaults, by name."""
    results: dict[str, dict[str, Any]] = {}
    for n in dimensions:
        heads = {"heads": HEADS[n]} if n in HEADS else {}
        results[f"rae, n = {n}"] = {"encoder": "rae", "dimension": n}
        results[f"mean-max, n = {n}"] = {"encoder": "mean-max", "dimension": n, **heads}
        results[f"mean-max, layers trained, n = {n}"] = {"encoder": "mean-max", "dimension": n, **heads, **TRAINED}
    return results


def flags(changes: dict[str, Any]) -> list[str]:
    """Return settings as command-line options."""
    return [part for name, value in changes.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def annotating(models: dict[str, str], rounds: int) -> dict[str, Any]:
    """Return the seconds to annotate the reference table with each model, and ratios to `YARDSTICK` by round."""
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
    chosen = {name: settings for name, settings in ways(options.dimensions).items() if name.startswith(options.only)}
    if options.rounds and YARDSTICK not in chosen:
        parser.error(f"annotate is compared with {YARDSTICK}, which is not among the rows; give --rounds 0")
    results: dict[str, dict[str, Any]] = {name: {} for name in chosen}
    trial = ["--epochs", str(options.epochs)] if options.epochs else []
    models = {}
    for name, changes in chosen.items():
        models[name] = str(WORK / f"encoders-{name.replace(', ', '-').replace(' ', '')}")
        if not options.seeds:
            # Only the model's speed is needed, which does not depend on the number of epochs.
            accuracy(train, held_out, models[name], [*flags(changes), "--epochs", "1"])
            continue
        results[name] = accuracies(train, held_out, models[name], [*flags(changes), *trial], options.seeds)
        print(name, results[name], flush=True)
    with Input(train) as source:
        pairs = read_training_pairs(source)
    if options.rounds:
        for name, seconds in training_seconds(pairs, chosen, options.rounds).items():
            results[name]["pairs_per_second"] = round(len(pairs) / statistics.median(seconds))
        # Trained layers are as fast as fixed ones when annotating.
        timed_models = {name: model for name, model in models.items() if "layers" not in chosen[name]}
        for name, row in annotating(timed_models, options.rounds).items():
            results[name]["annotate"] = row
    if options.epochs:
        print(json.dumps(results, indent=2))
        return
    # Earlier measurements are kept unless repeated.
    kept = json.loads(RESULTS.read_text())["encoders"] if RESULTS.is_file() else {}
    for name, row in results.items():
        kept.setdefault(name, {}).update(row)
    report("encoders", {"pairs": len(pairs), "encoders": kept, "bars": {"ratio of mean-max, n = 512": BAR}})


if __name__ == "__main__":
    main()
