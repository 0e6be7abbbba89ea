"""Tiny translators of every kind, with random weights."""

import numpy as np
import torch

from phrasetool.phrases import Phrases
from phrasetool.translator.network import TranslatorNetwork
from phrasetool.translator.settings import TranslatorArchitecture

SIZES = {"word_units": 4, "units": 6, "heads": 2, "feed_forward": 5, "dimension": 7}
KINDS = {
    "lstm": {"cell": "lstm", "layers": 2, "input_feeding": True},
    "gru": {"cell": "gru", "layers": 1, "input_feeding": False},
    "transformer": {"cell": "transformer", "layers": 1, "input_feeding": False},
    "softmax": {"cell": "gru", "layers": 2, "input_feeding": False, "output": "softmax"},
    "softmax-tied": {"cell": "gru", "layers": 1, "input_feeding": True, "output": "softmax-tied"},
}


# Sizes for which the row of a matrix product does not depend on its position.
EVEN = {"word_units": 8, "units": 16, "heads": 2, "feed_forward": 8, "dimension": 8}


def architecture(kind, sizes=SIZES):
    return TranslatorArchitecture(**{**sizes, **KINDS[kind]})


def unit_rows(rows, dimension, seed):
    table = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def small(kind, source_words=8, target_words=6, seed=1, scale=5.0, sizes=SIZES):
    """Return a translator in evaluation mode, whose weights are large enough to make a difference."""
    table = unit_rows(target_words + 1, sizes["dimension"], seed)
    module = TranslatorNetwork(architecture(kind, sizes), source_words, table, seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "block" not in name:
                parameter.mul_(scale)
    return module.eval()


def sentences(count, words, longest, seed=2, shortest=1):
    rng = np.random.default_rng(seed)
    return Phrases.from_lists(
        [rng.integers(0, words, rng.integers(shortest, longest + 1)).tolist() for _ in range(count)]
    )
