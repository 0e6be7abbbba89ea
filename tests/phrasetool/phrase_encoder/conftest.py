"""Phrase pairs for tests of the trainers."""

import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.training.data import PhrasePairs
from tests.phrasetool.phrase_encoder.toy_language import WORDS, vocabulary


@pytest.fixture(scope="session")
def pairs():
    """Return pairs of a toy language pair: word i translates word i, and the word order is reversed."""
    rng = np.random.default_rng(0)
    sources = {tuple((1 + rng.integers(0, WORDS, length)).tolist()) for length in rng.integers(1, 5, 700)}
    sources = sorted(sources)
    return PhrasePairs(
        Phrases.from_lists(sources),
        Phrases.from_lists([phrase[::-1] for phrase in sources]),
        np.ones(len(sources), np.int64),
        vocabulary(b"f"),
        vocabulary(b"e"),
    )
