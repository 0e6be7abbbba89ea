"""Small translators: untrained, or trained to memorise a dictionary."""

import numpy as np

from phrasetool.training.run import TrainingRun
from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.network import TranslatorNetwork
from phrasetool.translator.settings import TranslatorArchitecture
from phrasetool.vocabulary import Vocabulary

ARCHITECTURE = TranslatorArchitecture("gru", 8, 8, 1, False, 2, 8, 6, "softmax")


def random_translator(source_words, target_words, seed=1, architecture=ARCHITECTURE):
    """Return a network with parameters large enough for scores to differ."""
    rng = np.random.default_rng(seed)
    targets = rng.normal(size=(target_words + 1, architecture.dimension)).astype(np.float32)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    network = TranslatorNetwork(architecture, source_words, targets, seed)
    for parameter in network.parameters():
        parameter.data *= 8
    return network.eval()


def random_model(source_words, target_words, seed=1):
    """Return an untrained model with vocabularies of the words and `<unk>`."""
    vocabularies = [Vocabulary([b"<unk>", *words]) for words in (source_words, target_words)]
    network = random_translator(*map(len, vocabularies), seed)
    return TranslatorModel(*vocabularies, ARCHITECTURE, network.arrays(), 1.0, {"loss": "cross-entropy"})


def learnt_model(source_words, target_words, sentences, folder):
    """Train a model that translates word i of one language as word i of the other.

    Args:
        source_words, target_words: W words each.
        sentences: lists of word indices, from 0 to W - 1.
        folder: folder of the model.
    """
    from phrasetool.phrases import Phrases
    from phrasetool.training.data import PhrasePairs
    from phrasetool.translator.network import target_table
    from phrasetool.translator.settings import TranslatorSettings
    from phrasetool.translator.training import train_translator

    vocabularies = [Vocabulary([b"<unk>", *words]) for words in (source_words, target_words)]
    ids = Phrases.from_lists([[word + 1 for word in sentence] for sentence in sentences])
    pairs = PhrasePairs(ids, ids, np.ones(len(ids), np.int64), *vocabularies)
    settings = TranslatorSettings(
        loss="cross-entropy", dimension=32, units=32, word_units=32, epochs=12, batch_size=16, learning_rate=0.01
    )
    rng = np.random.default_rng(1)
    known = {word: rng.normal(size=32).astype(np.float32) for word in target_words}
    return train_translator(
        pairs, None, target_table(vocabularies[1], known, "random", "mean", 1), settings, TrainingRun(folder)
    )
