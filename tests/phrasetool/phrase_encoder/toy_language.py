"""A toy language pair, with settings and initial parameters for training on it."""

import numpy as np
import pytest

from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.phrase_encoder.parameters import RaeParameters
from phrasetool.phrase_encoder.scoring import BilingualScorer
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.training.data import PhrasePairs
from phrasetool.vocabulary import Vocabulary

WORDS = 30
LOSSES = tuple(OBJECTIVES)
COMBINATIONS = [(loss, encoder) for encoder in ENCODERS for loss in LOSSES]
combinations = pytest.mark.parametrize(("loss", "encoder"), COMBINATIONS)


def vocabulary(prefix):
    words = [b"<unk>"] + [b"%s%d" % (prefix, i) for i in range(WORDS)]
    return Vocabulary(words, [0] + [5] * (WORDS - 2) + [1, 1])


def settings(loss, encoder="rae", **changes):
    base = {"dimension": 16, "iterations": 4, "batch_size": 32, "vector_scale": 0.1}
    more = {"rae": {"pretrain_iterations": 2}, "mean-max": {"word_units": 10, "heads": 2}}.get(encoder, {})
    if (loss, encoder) == ("max-margin", "rae"):
        more["batch_size"] = 1
    if changes.get("freeze_encoders"):
        more = {name: value for name, value in more.items() if name != "pretrain_iterations"}
    return TrainingSettings.for_loss(loss, encoder, **{**base, **more, **changes})


def start(n=16):
    rng = np.random.default_rng(3)
    return tuple(RaeParameters.random(rng.normal(0, 0.1, (WORDS + 1, n)).astype(np.float32), rng) for _ in range(2))


def start_of(chosen):
    """Return initial parameters for the encoder of the settings."""
    rng = np.random.default_rng(3)
    shape = WORDS + 1, chosen.kind.word_dimension(chosen.dimension)
    vectors = [rng.normal(0, 0.1, shape).astype(np.float32) for _ in range(2)]
    return tuple(chosen.kind.initial(side, chosen.dimension, "normal", rng) for side in vectors)


def some_of(pairs, index):
    return PhrasePairs(
        pairs.sources.select(index), pairs.targets.select(index), pairs.counts[index],
        pairs.source_vocabulary, pairs.target_vocabulary,
    )  # fmt: skip


def scorer_of(trainer):
    return BilingualScorer(*map(trainer.settings.kind.pack, trainer.parameters()))
