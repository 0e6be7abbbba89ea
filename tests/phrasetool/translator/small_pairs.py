"""A language of ten words, its translation word by word in reverse order, and vectors of its words."""

import numpy as np

from phrasetool.phrases import Phrases
from phrasetool.training.data import TextPairs
from phrasetool.translator.network import target_table
from phrasetool.translator.settings import TranslatorSettings

DIMENSION = 12
OPTIONS = {"dimension": DIMENSION, "units": 32, "word_units": 16, "min_count": 1, "learning_rate": 0.01, "epochs": 3}
OPTIONS["batch_size"] = 16


def texts(count, seed=1, longest=4):
    rng = np.random.default_rng(seed)
    sources = [rng.integers(0, 10, rng.integers(1, longest + 1)).tolist() for _ in range(count)]
    words = [b"s%d" % i for i in range(10)], [b"t%d" % i for i in range(10)]
    return TextPairs(Phrases.from_lists(sources), Phrases.from_lists([s[::-1] for s in sources]), *words)


def vectors(seed=1):
    rng = np.random.default_rng(seed)
    return {b"t%d" % i: rng.normal(size=DIMENSION).astype(np.float32) for i in range(12)}


def prepared(count=200, held=30, **options):
    """Return pairs, a development set, the target table and settings."""
    loss = options.pop("loss", "syn-projection")
    settings = TranslatorSettings.from_options({**OPTIONS, **options}, loss=loss)
    both = texts(count), texts(held, 2)
    source, target = both[0].source_vocabulary(1, 0), both[0].target_vocabulary(1, 0)
    pairs, development = (part.in_ids(source, target) for part in both)
    return pairs, development, target_table(target, vectors(), "plain", "mean", 1), settings
