"""Short texts of few words, and settings of an autoencoder that learns them at once."""

import numpy as np

from phrasetool.phrases import Phrases
from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings
from phrasetool.vocabulary import Vocabulary

WORDS = 15
VOCABULARY = Vocabulary([b"<unk>", *(b"w%d" % i for i in range(1, WORDS))])


def random_texts():
    rng = np.random.default_rng(0)
    return Phrases.from_lists([rng.integers(0, WORDS, n).tolist() for n in rng.integers(1, 6, 60)])


def settings(**changes):
    base = {"word_units": 8, "hidden": 16, "heads": 2, "batch_size": 16, "epochs": 3}
    return AutoencoderSettings(**{**base, **changes})
