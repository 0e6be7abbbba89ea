"""Choice of the bounds and exponents of `composition+semantic+usage`: BLEU on development sets of all six pairs.

The score of an entry is count^a * min(max(loss, least), most) * similarity^g * p(target | source)^b * uses^u, where the
loss of an entry without a composition is `most`, and uses is (uses in leave-one-out forced decoding + r) / (count + 1),
with r the uses of all entries divided by their counts.  For each variant, the table is pruned to 10 % and 5 % of the
entries (protecting as many of the best entries of one-word sources as fit), and the development set is translated with
the weights of the full table.

Decoders and models (default loss, seed 1) are those of `pruning_study.py`.  Test sets are not read.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np
from measuring import ROOT, report
from pruning_study import CONFIGS, PAIRS, WORK
from study import DEFAULT_LOSS, DEV, RESULTS, Results
from trial import NEEDS, Trial

from moses_compat.experiments.config import read_experiment_config
from phrasetool.pruning.criteria import Usage
from phrasetool.pruning.decision import OfSize, Ranking, decide
from phrasetool.pruning.measures import COUNTS, LOSSES, PROBABILITIES, SIGNIFICANCE, SIMILARITIES, Measures
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import KeepBestWithinBudget
from phrasetool.smt.evaluation.metrics import evaluate

SIZES = (0.1, 0.05)
STORED, BLEU = ROOT / "benchmarks" / "results" / "ranking_on_dev.json", "bleu of development sets"
# least, most, a, g, b, u (0 if omitted)
VARIANTS = {
    "count alone": (1, 1, 1, 0, 0),
    "loss 0..3, similarity^2": (0, 3, 1, 2, 0),
    "loss 0..1, similarity": (0, 1, 1, 1, 0),
    "loss 0.3..1": (0.3, 1, 1, 0, 0),
    "loss 0.3..1, similarity": (0.3, 1, 1, 1, 0),
    "loss 0.3..1, similarity^2": (0.3, 1, 1, 2, 0),
    "loss 0.3..3, similarity": (0.3, 3, 1, 1, 0),
    "loss 0.1..1, similarity": (0.1, 1, 1, 1, 0),
    "loss 0.6..1, similarity": (0.6, 1, 1, 1, 0),
    "count^1.5, loss 0.3..1, similarity": (0.3, 1, 1.5, 1, 0),
    "loss 0.3..1, similarity, p^0.3": (0.3, 1, 1, 1, 0.3),
    "loss 0.3..1, uses": (0.3, 1, 1, 0, 0, 1),
    "loss 0.3..1, similarity, uses": (0.3, 1, 1, 1, 0, 1),
    "loss 0.3..1, similarity, uses^0.5": (0.3, 1, 1, 1, 0, 0.5),
    "similarity, uses": (1, 1, 1, 1, 0, 1),
}


def entry_scores(
    measures: Measures, least: float, most: float, a: float, g: float, b: float, u: float = 0
) -> np.ndarray:
    """Return the score of each entry: float32, shape (N,)."""
    loss = np.clip(measures[LOSSES], max(least, 1e-3), most)
    similarity = np.clip(measures[SIMILARITIES].mean(axis=1), 0.02, 1)
    probability = np.maximum(measures[PROBABILITIES], 1e-7)
    uses = Usage().factor(measures)
    return (measures[COUNTS] ** a * loss * similarity**g * probability**b * uses**u).astype(np.float32)


def dev_bleu(trial: Trial, keep: np.ndarray | None) -> float:
    """Return BLEU on the development set with the kept entries, or with all entries if None."""
    loaded = trial.loaded
    translations = loaded.translate(loaded.translator(keep))[DEV]
    references = [trial.texts.references[DEV]]
    return round(evaluate([translations], references, metrics=["bleu"], samples=10)[0].systems[0].score, 2)


def measure(name: str, threads: int) -> dict[str, dict[str, float]]:
    """Return BLEU on a language pair by variant and size; `full` is the whole table."""
    config = replace(read_experiment_config(str(CONFIGS / f"{name}.toml")), tests={})
    trial = Trial(config, WORK / name, Results(RESULTS, name), threads, NEEDS - {SIGNIFICANCE})
    measures = trial.similarities(DEFAULT_LOSS, 1)
    unprotected = np.zeros(len(measures), np.bool_)
    bleu = {"full": {"1": dev_bleu(trial, None)}}
    for label, values in VARIANTS.items():
        scores = entry_scores(measures, *values)
        ranking = Ranking(parse_method("count"), measures, scores, scores.astype(np.float64), unprotected)
        bleu[label] = {}
        for size in SIZES:
            best = KeepBestWithinBudget.of(measures, "words").best(int(size * len(measures)))
            bleu[label][f"{size:g}"] = dev_bleu(trial, decide(ranking, OfSize(size), best).keep)
    print(name, bleu, flush=True)
    return bleu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="PAIR")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for name in options.pairs:
        # Results are stored after every pair; other pairs keep their earlier results.
        measured = measure(name, options.threads)
        report("ranking_on_dev", {BLEU: {**json.loads(STORED.read_text())[BLEU], name: measured}})


if __name__ == "__main__":
    main()
