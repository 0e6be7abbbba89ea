"""Accuracy on held-out pairs after every iteration: the default objective, the paper's, and what changes the latter."""

from __future__ import annotations

import argparse

import numpy as np
import torch
from held_out import split
from measuring import WORK, report

from moses_compat.pairs import read_pairs
from moses_compat.streams import Input
from phrasetool.embeddings.initial import initial_vectors
from phrasetool.embeddings.word2vec import phrase_sentences, train_word2vec
from phrasetool.evaluation import evaluate_pairs
from phrasetool.scoring.scorer import BilingualScorer
from phrasetool.training.settings import TrainingSettings, initial_parameters
from phrasetool.training.trainer import Trainer

RUNS = {
    "in-batch (default)": ("in-batch", {}),
    "max-margin, the paper's values": ("max-margin", {}),
    "max-margin, same equations, larger steps, weaker L2": (
        "max-margin",
        {
            "learning_rate": 0.64,
            "schedule": "linear",
            "pretrain_iterations": 0,
            "lambda_words": 1e-5,
            "lambda_rec": 1e-6,
            "lambda_sem": 1e-6,
        },
    ),
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    train, held_out = split(0)
    with Input(train) as source:
        pairs = read_pairs(source)
    with Input(held_out) as source:
        test = read_pairs(source, vocabularies=(pairs.source_vocabulary, pairs.target_vocabulary))
    known = [
        train_word2vec(phrase_sentences(phrases, vocabulary), 50, 1)
        for phrases, vocabulary in (
            (pairs.sources, pairs.source_vocabulary),
            (pairs.targets, pairs.target_vocabulary),
        )
    ]
    curves = {}
    for name, (loss, changes) in RUNS.items():
        settings = TrainingSettings.for_loss(loss, **changes)
        initial = []
        for which, vocabulary in enumerate((pairs.source_vocabulary, pairs.target_vocabulary)):
            rng = np.random.default_rng([1, which])
            vectors = initial_vectors(vocabulary, known[which], 50, settings.vector_scale, rng)
            initial.append(initial_parameters(vectors, settings.start, rng))
        trainer = Trainer(pairs, settings, initial[0], initial[1])
        curves[name] = []
        for step in trainer.run():
            if step.phase == "train":
                scorer = BilingualScorer(*trainer.parameters())
                quality = evaluate_pairs(scorer, test.sources, test.targets, len(pairs.target_vocabulary))
                curves[name].append(round(quality.accuracy_at_1, 4))
    report("learning_curves", {"curves": curves})


if __name__ == "__main__":
    main()
