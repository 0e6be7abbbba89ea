"""A minimal classifier of sentence pairs: sums of word vectors, and a probability from their cosine and lengths."""

import numpy as np

from tests.text_encoder_folders import MEANINGS, WORDS


class WordsInCommon:
    """Classifier for sentences of `WORDS`: a pair is parallel if its vectors are similar and its lengths are equal."""

    dimension, search_dimension, identity = MEANINGS.shape[1], MEANINGS.shape[1], "0badcafe"

    def __init__(self, with_length=True):
        self.with_length = with_length
        self.encoded = []

    def encode(self, sentences, side):
        self.encoded += [(side, sentence) for sentence in sentences]
        rows = [[MEANINGS[WORDS.index(word) // 2] for word in text.split() if word in WORDS] for text in sentences]
        return np.array([np.sum(row, 0) if row else np.zeros(self.dimension) for row in rows], np.float32)

    def search_vectors(self, sentences, side):
        return self.encode(sentences, side)

    def classify(self, sources, source_lengths, targets, target_lengths):
        norms = np.linalg.norm(sources, axis=1) * np.linalg.norm(targets, axis=1)
        near = np.einsum("ij,ij->i", sources, targets) / np.maximum(norms, 1e-9)
        difference = np.abs(source_lengths - target_lengths) if self.with_length else 0
        return 1 / (1 + np.exp(8 - 10.0 * near + 2.0 * difference))

    def over_long(self, sentences):
        return sum(len(text.split()) > 6 for text in sentences)
