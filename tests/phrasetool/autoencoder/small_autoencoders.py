"""Small autoencoders of every architecture, and texts that they learn quickly."""

import numpy as np
import pytest

from phrasetool.autoencoder.settings import ARCHITECTURES, AutoencoderSettings, TextArchitecture
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import Vocabulary

V = 12
every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


def architecture(name, m=8):
    return TextArchitecture(name, 6, m, 2, 5)


def arrays_of(name, seed=0):
    """Return initial arrays plus noise, with large output weights so that greedy texts differ and end."""
    rng = np.random.default_rng(seed)
    arrays = architecture(name).initial(V, rng)
    arrays = {key: a + rng.normal(0, 0.3, a.shape).astype(np.float32) for key, a in arrays.items()}
    arrays["output"] *= 3
    return arrays


def some_texts(count=12, longest=7, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, V, length).tolist() for length in rng.integers(1, longest, count)]


WORDS = 15
VOCABULARY = Vocabulary([b"<unk>", *(b"w%d" % i for i in range(1, WORDS))])


def random_texts():
    rng = np.random.default_rng(0)
    return Phrases.from_lists([rng.integers(0, WORDS, n).tolist() for n in rng.integers(1, 6, 60)])


def settings(**changes):
    base = {"word_units": 8, "hidden": 16, "heads": 2, "batch_size": 16, "epochs": 3}
    return AutoencoderSettings(**{**base, **changes})
