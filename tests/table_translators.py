"""Small translators with random parameters."""

import numpy as np
import pytest

from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.settings import TranslatorArchitecture
from phrasetool.vocabulary import Vocabulary
from tests.conftest import SOURCE_WORDS, TARGET_WORDS


def translator(source_words=SOURCE_WORDS, target_words=TARGET_WORDS, cell="gru", output="vectors", seed=1):
    """Return a translator between the words of the tests' tables."""
    network = pytest.importorskip("phrasetool.translator.network")
    architecture = TranslatorArchitecture(cell, 6, 8, 1, False, 2, 7, 5, output)
    rng = np.random.default_rng(seed)
    targets = rng.normal(size=(len(target_words) + 1, 5)).astype(np.float32)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    arrays = network.TranslatorNetwork(architecture, len(source_words), targets, seed).arrays()
    arrays = {name: array if name == "targets" else array * 4 for name, array in arrays.items()}
    return TranslatorModel(Vocabulary(source_words), Vocabulary(target_words), architecture, arrays, 0.2)


def backward_translator(**options):
    """Return a translator from the target language into the source language."""
    return translator(TARGET_WORDS, SOURCE_WORDS, **options)


def naive_score(model, source, target, reading="normalised"):
    """Return the score of one pair of id lists, predicted without a batch; NaN if its lengths are unsupported."""
    import torch

    from phrasetool.phrases import Phrases
    from phrasetool.translator.network import padded_targets

    if not 1 <= len(source) <= 511 or not 1 <= len(target) <= 511:
        return np.nan
    network, tau = model.network, model.temperature
    with torch.no_grad():
        words = padded_targets(Phrases.from_lists([target]), network.end)
        predicted = network.predict(network.encode(Phrases.from_lists([source])), words).double().numpy()
    table = network.targets.detach().double().numpy()
    if model.architecture.continuous:
        predicted /= np.linalg.norm(predicted, axis=1, keepdims=True)
    logits = predicted @ table.T
    if network.bias is not None:
        logits += network.bias.detach().numpy()
    right = logits[np.arange(len(logits)), [*target, network.end]]
    if reading == "density":
        return ((right - 1) / tau).sum()
    return (right / tau - np.log(np.exp(logits / tau).sum(1))).sum()
