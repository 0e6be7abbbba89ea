"""The search for the hyper-parameters of BRAE (Zhang et al. 2014, section 4.1): alpha and the three weights of L2.

The paper tries alpha from 0.05 to 0.5 and each weight from 1e-6 to 1e-2, and is guided by the overall error of the
model.  That error contains alpha itself and cannot compare its values; here the criterion is the AUC of held-out pairs
against the targets of other pairs.  One value after the other is chosen, alpha first, the others staying at the best
so far, from the paper's values on.  2,000 pairs of Multi30k German-English are held out: on the first half values are
chosen, on the second the choice and the paper's values are compared, with three seeds each.

Goes on by files: what is in benchmarks/work/brae-grid/ is not trained again.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch
from held_out import split
from measuring import WORK, report

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.streams import Input
from phrasetool.embeddings.training import initial_vectors, phrase_sentences, train_word2vec
from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.scoring import BilingualScorer
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.trainer import PhraseTrainer
from phrasetool.training.data import PhrasePairs

FOLDER = WORK / "brae-grid"
PAPER = {"alpha": 0.15, "lambda_words": 1e-2, "lambda_rec": 1e-3, "lambda_sem": 1e-3}
WEIGHTS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
GRID: dict[str, tuple[float, ...]] = {
    "alpha": tuple(round(0.05 * step, 2) for step in range(1, 11)),
    "lambda_words": WEIGHTS, "lambda_rec": WEIGHTS, "lambda_sem": WEIGHTS,
}  # fmt: skip
SEEDS = (1, 2, 3)
HALVES = ("development", "test")


class Search:
    """Trains with some values, and measures."""

    def __init__(self) -> None:
        train, held_out = split(0)
        with Input(train) as source:
            self._pairs = read_training_pairs(source)
        vocabularies = self._pairs.source_vocabulary, self._pairs.target_vocabulary
        with Input(held_out) as source:
            held = read_training_pairs(source, vocabularies=vocabularies)
        half = len(held) // 2
        self._halves: dict[str, PhrasePairs] = {
            "development": held.select(np.arange(half)), "test": held.select(np.arange(half, len(held))),
        }  # fmt: skip
        sides = (self._pairs.sources, self._pairs.targets)
        self._known = [
            train_word2vec(phrase_sentences(phrases, vocabulary), 50, 1)
            for phrases, vocabulary in zip(sides, vocabularies, strict=True)
        ]

    def measured(self, values: dict[str, float], seed: int, iterations: int) -> dict[str, dict[str, float]]:
        """AUC and accuracy@1 of both halves, after a training that is done once."""
        name = "-".join(f"{value:g}" for value in values.values())
        path = FOLDER / f"{iterations}-{name}-{seed}.json"
        if not path.is_file():
            path.write_text(json.dumps(self._trained(values, seed, iterations)), "utf-8")
        measured: dict[str, dict[str, float]] = json.loads(path.read_text("utf-8"))
        print(values, seed, measured, flush=True)
        return measured

    def _trained(self, values: dict[str, float], seed: int, iterations: int) -> dict[str, dict[str, float]]:
        settings = TrainingSettings.for_loss("max-margin", iterations=iterations, seed=seed, **values)
        trainer = PhraseTrainer(self._pairs, settings, *(self._initial(settings, seed, side) for side in range(2)))
        for _ in trainer.run():
            pass
        scorer = BilingualScorer(*map(settings.kind.pack, trainer.parameters()))
        words = len(self._pairs.target_vocabulary)
        found = {}
        for name, pairs in self._halves.items():
            quality = evaluate_pairs(scorer, pairs.sources, pairs.targets, words)
            found[name] = {"auc": quality.auc_other_targets, "accuracy_at_1": quality.accuracy_at_1}
        return found

    def _initial(self, settings: TrainingSettings, seed: int, side: int) -> Any:
        vocabulary = (self._pairs.source_vocabulary, self._pairs.target_vocabulary)[side]
        rng = np.random.default_rng([seed, side])
        vectors = initial_vectors(vocabulary, self._known[side], 50, settings.vector_scale, rng)
        return settings.kind.initial(vectors, settings.dimension, settings.start, rng)


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
        found = {value: search.measured({**best, name: value}, 1, options.iterations) for value in candidates}
        grid[name] = [{"value": value, **halves["development"]} for value, halves in found.items()]
        best[name] = max(found, key=lambda value: found[value]["development"]["auc"])
    compared: dict[str, Any] = {}
    for name, values in (("paper", PAPER), ("chosen", best)):
        runs = [search.measured(values, seed, options.compared)["test"] for seed in SEEDS]
        compared[name] = {"values": values, **{key: [run[key] for run in runs] for key in runs[0]}}
    report("brae_grid", {"iterations": [options.iterations, options.compared], "grid": grid, **compared})


if __name__ == "__main__":
    main()
