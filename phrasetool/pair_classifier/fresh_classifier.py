"""A classifier before it is trained: its vocabularies, and the vectors that it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phrasetool.embeddings.initial import initial_vectors
from phrasetool.embeddings.word2vec import train_word2vec
from phrasetool.pair_classifier.architecture import SiameseArchitecture
from phrasetool.pair_classifier.classifier import SiameseClassifier
from phrasetool.pair_classifier.folder_inputs import FolderInputs
from phrasetool.pair_classifier.lexicon import known_parts
from phrasetool.pair_classifier.network import SiameseNetwork
from phrasetool.pair_classifier.settings import WORD2VEC, ParallelSettings
from phrasetool.pair_classifier.token_inputs import WordSides
from phrasetool.pair_classifier.word_inputs import random_vectors
from phrasetool.phrases import FloatArray, Phrases
from phrasetool.text_encoders.text_encoder import SIDES
from phrasetool.train.text_pairs import TextPairs, source_vocabulary, target_vocabulary
from phrasetool.vocabulary import Vocabulary

# Size of the components of word2vec's vectors, as that of random ones.
_SCALE = 0.1


@dataclass(frozen=True)
class FreshClassifier:
    """What training starts from.

    Attributes:
        vocabularies: words of source and target, parts of words of source and target; none with an encoder.
        encoder: that reads pieces; None for words.
        architecture: which classifier.
        classifier: with initial values.
    """

    vocabularies: list[Vocabulary]
    encoder: FolderInputs | None
    architecture: SiameseArchitecture
    classifier: SiameseClassifier


def fresh_classifier(pairs: TextPairs, settings: ParallelSettings) -> FreshClassifier:
    """A classifier for the words, or with the encoder, that the settings name.

    Args:
        pairs: whose words and parts of words it is to know.
        settings: how it is trained.

    Raises:
        ModelError: the encoder's folder is refused; it says why.
    """
    encoder: FolderInputs | None = None
    vocabularies: list[Vocabulary] = []
    inputs: Any
    if settings.folder is not None:
        inputs = encoder = FolderInputs(Path(settings.folder), settings.layer, settings.tuned, settings.precision)
        architecture = settings.architecture(encoder.width)
    else:
        architecture = settings.architecture()
        limits = settings.min_count, settings.vocabulary_size
        words = source_vocabulary(pairs, *limits), target_vocabulary(pairs, *limits)
        seen = (pairs.sources, pairs.source_words), (pairs.targets, pairs.target_words)
        parts = [known_parts(_used(*side), settings.characters, settings.parts) for side in seen]
        vocabularies = [*words, *parts]
        arrays = _start(pairs, settings, vocabularies)
        inputs = WordSides(words, (parts[0], parts[1]), settings.characters, arrays, settings.hidden_words)
    network = SiameseNetwork(architecture, settings.seed, settings.dropout, settings.output_dropout)
    return FreshClassifier(vocabularies, encoder, architecture, SiameseClassifier(inputs, network))


def _used(texts: Phrases, words: Any) -> list[bytes]:
    """The words that occur."""
    return [words[i] for i in np.unique(texts.words)]


def _start(pairs: TextPairs, settings: ParallelSettings, vocabularies: list[Vocabulary]) -> dict[str, FloatArray]:
    """Vectors of words and parts to start from."""
    rng = np.random.default_rng([settings.seed, 5])
    units = settings.sizes["word_units"]
    found = {}
    names = [f"{side}.{what}" for what in ("words", "parts") for side in SIDES]
    for name, vocabulary in zip(names, vocabularies, strict=True):
        found[name] = random_vectors(rng, len(vocabulary), units)
    if settings.encoder == WORD2VEC:
        sides = (pairs.sources, pairs.source_words), (pairs.targets, pairs.target_words)
        for name, vocabulary, (texts, words) in zip(names, vocabularies, sides, strict=False):
            known = train_word2vec(([words[i] for i in text] for text in texts), units, settings.seed)
            found[name] = initial_vectors(vocabulary, known, units, _SCALE, rng)
    return found
