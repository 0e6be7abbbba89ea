"""Hyper-parameter search for BRAE (Zhang et al. 2014, section 4.1): alpha and the three L2 weights.

The paper tries alpha from 0.05 to 0.5 and each weight from 1e-6 to 1e-2, and chooses by the overall error of the
model.  That error contains alpha itself and so cannot compare its values; here the criterion is the AUC of held-out
pairs against the targets of other pairs.  The search starts from the paper's values and chooses one hyper-parameter
after the other, alpha first, with the others at the best values so far.  Pairs of Multi30k German-English are held
out: values are chosen on the first half, after few iterations and with one seed; the chosen values and the paper's are
compared on the second half, after all iterations, with three seeds each.

Runs that are stored in benchmarks/work/brae-grid/ are not repeated.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch
from learning_curves import read_split, trainer_of, word_vectors
from measuring import WORK, report

from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.scoring import BilingualScorer
from phrasetool.phrase_encoder.settings import TrainingSettings

FOLDER = WORK / "brae-grid"
PAPER = {"alpha": 0.15, "lambda_words": 1e-2, "lambda_rec": 1e-3, "lambda_sem": 1e-3}
WEIGHTS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
GRID: dict[str, tuple[float, ...]] = {
    "alpha": tuple(round(0.05 * step, 2) for step in range(1, 11)),
    "lambda_words": WEIGHTS, "lambda_rec": WEIGHTS, "lambda_sem": WEIGHTS,
}  # fmt: skip
SEEDS = (1, 2, 3)


class Search:
    """Training and evaluation with given hyper-parameters."""

    def __init__(self) -> None:
        self._pairs, held = read_split()
        self._known = word_vectors(self._pairs)
        half = len(held) // 2
        self._halves = {
            "development": held.select(np.arange(half)), "test": held.select(np.arange(half, len(held))),
        }  # fmt: skip

    def measured(self, values: dict[str, float], seed: int, iterations: int) -> dict[str, dict[str, float]]:
        """Return AUC and accuracy@1 on both halves; train unless the result is stored."""
        name = "-".join(f"{value:g}" for value in values.values())
        path = FOLDER / f"{iterations}-{name}-{seed}.json"
        if not path.is_file():
            path.write_text(json.dumps(self._trained(values, seed, iterations)), "utf-8")
        measured: dict[str, dict[str, float]] = json.loads(path.read_text("utf-8"))
        print(values, seed, measured, flush=True)
        return measured

    def _trained(self, values: dict[str, float], seed: int, iterations: int) -> dict[str, dict[str, float]]:
        settings = TrainingSettings.for_loss("max-margin", iterations=iterations, seed=seed, **values)
        trainer = trainer_of(self._pairs, settings, self._known, seed)
        for _ in trainer.run():
            pass
        scorer = BilingualScorer(*map(settings.kind.pack, trainer.parameters()))
        words = len(self._pairs.target_vocabulary)
        qualities = {}
        for name, pairs in self._halves.items():
            quality = evaluate_pairs(scorer, pairs.sources, pairs.targets, words)
            qualities[name] = {"auc": quality.auc_other_targets, "accuracy_at_1": quality.accuracy_at_1}
        return qualities


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=10, help="of the search")
    parser.add_argument("--compared", type=int, default=25, help="iterations of the comparison")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    search = Search()
    best, grid = dict(PAPER), {}
    for name, candidates in GRID.items():
        tried = {value: search.measured({**best, name: value}, 1, options.iterations) for value in candidates}
        grid[name] = [{"value": value, **halves["development"]} for value, halves in tried.items()]
        best[name] = max(tried, key=lambda value: tried[value]["development"]["auc"])
    compared: dict[str, Any] = {}
    for name, values in (("paper", PAPER), ("chosen", best)):
        runs = [search.measured(values, seed, options.compared)["test"] for seed in SEEDS]
        compared[name] = {"values": values, **{key: [run[key] for run in runs] for key in runs[0]}}
    report("brae_grid", {"iterations": [options.iterations, options.compared], "grid": grid, **compared})


if __name__ == "__main__":
    main()
