"""Accuracy@1 and AUC on held-out pairs after each iteration: the default loss, and BRAE's with two corruptions."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

import numpy as np
import torch
from held_out import split
from measuring import ROOT, WORK, report

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.streams import Input
from phrasetool.embeddings.training import initial_vectors, phrase_sentences, train_word2vec
from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.scoring import BilingualScorer
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.trainer import PhraseTrainer
from phrasetool.phrases import FloatArray
from phrasetool.training.data import PhrasePairs

# Name -> loss, whether word vectors start from word2vec (trained on the pairs) or at random, other settings.
RUNS: dict[str, tuple[str, bool, dict]] = {
    "in-batch (default)": ("in-batch", True, {}),
    "max-margin, the paper's values": ("max-margin", True, {}),
    "max-margin, random words drawn uniformly": ("max-margin", True, {"corruption": "uniform"}),
}
# Accuracy@1, AUC against other targets, and seconds including evaluation.
KEYS = ("curves", "auc", "seconds")


def read_split() -> tuple[PhrasePairs, PhrasePairs]:
    """Return the training pairs, and the held-out pairs in the same vocabularies."""
    train, held_out = split(0)
    with Input(train) as source:
        pairs = read_training_pairs(source)
    with Input(held_out) as source:
        return pairs, read_training_pairs(source, vocabularies=(pairs.source_vocabulary, pairs.target_vocabulary))


def word_vectors(pairs: PhrasePairs) -> list[dict[bytes, FloatArray]]:
    """Return word vectors of both sides, trained on the pairs."""
    sides = (pairs.sources, pairs.source_vocabulary), (pairs.targets, pairs.target_vocabulary)
    return [train_word2vec(phrase_sentences(phrases, vocabulary), 50, 1) for phrases, vocabulary in sides]


def trainer_of(
    pairs: PhrasePairs, settings: TrainingSettings, known: Sequence[dict[bytes, FloatArray]], seed: int
) -> PhraseTrainer:
    """Return a trainer that starts from word vectors, at random for words without one."""
    initial = []
    for which, vocabulary in enumerate((pairs.source_vocabulary, pairs.target_vocabulary)):
        rng = np.random.default_rng([seed, which])
        vectors = initial_vectors(vocabulary, known[which], 50, settings.vector_scale, rng)
        initial.append(settings.kind.initial(vectors, settings.dimension, settings.start, rng))
    return PhraseTrainer(pairs, settings, initial[0], initial[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="runs whose name holds this; the others keep their last figures")
    only = parser.parse_args().only
    WORK.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    pairs, test = read_split()
    known = word_vectors(pairs)
    path = ROOT / "benchmarks" / "results" / "learning_curves.json"
    kept = json.loads(path.read_text()) if only else {}
    curves, aucs, seconds = ({n: v for n, v in kept.get(key, {}).items() if n in RUNS} for key in KEYS)
    for name, (loss, word2vec, changes) in RUNS.items():
        if only not in name:
            continue
        settings = TrainingSettings.for_loss(loss, **changes)
        trainer = trainer_of(pairs, settings, known if word2vec else ({}, {}), seed=1)
        curves[name], aucs[name] = [], []
        began = time.monotonic()
        for step in trainer.run():
            if step.phase == "train":
                scorer = BilingualScorer(*map(settings.kind.pack, trainer.parameters()))
                quality = evaluate_pairs(scorer, test.sources, test.targets, len(pairs.target_vocabulary))
                curves[name].append(round(quality.accuracy_at_1, 4))
                aucs[name].append(round(quality.auc_other_targets, 4))
        seconds[name] = round(time.monotonic() - began, 1)
    report("learning_curves", dict(zip(KEYS, (curves, aucs, seconds), strict=True)))


if __name__ == "__main__":
    main()
