"""The sentences nearest to a sentence (section 5.4 of Zhang, Wu, Li and Zhang): by the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from phrasetool.errors import PhraseToolError
from phrasetool.models.autoencoder import AutoencoderModel
from phrasetool.nn.positions import LONGEST
from phrasetool.phrase_encoder.neighbours import Neighbour
from phrasetool.phrases import FloatArray, Phrases
from phrasetool.reconstruction import encode_texts
from phrasetool.text_splitting import split_words
from phrasetool.train.data import in_vocabulary
from phrasetool.vocabulary import unescape


class NearestSentences:
    """Sentences with their vectors, 4 n bytes each.

    Args:
        model: encodes them.
        sentences: in ids of `words`; one that is there twice is found twice.
        words: distinct, unescaped.
        device: where to encode; CPU by default.
        tick: called with the number of sentences just encoded.

    Raises:
        ValueError: a sentence has more than `phrasetool.phrase_encoder.parameters.LONGEST` words.
    """

    def __init__(
        self,
        model: AutoencoderModel,
        sentences: Phrases,
        words: Sequence[bytes],
        device: torch.device | None = None,
        tick: Callable[[int], None] = lambda sentences: None,
    ) -> None:
        self._model = model
        self._words = words
        self._device = device
        self._sentences = sentences
        self._vectors = self._encoded(sentences, words, tick)

    def nearest(self, sentence: Sequence[bytes], count: int) -> list[Neighbour]:
        """The nearest sentences, the sentence itself left out, the nearest first; equally near ones in their order.

        Args:
            sentence: its words, unescaped.
            count: how many at most.

        Raises:
            ValueError: as above.
        """
        wanted = list(sentence)
        vector = self._encoded(Phrases.from_lists([range(len(wanted))]), wanted)[0]
        similarities = np.clip(self._vectors @ vector, -1, 1)
        found: list[Neighbour] = []
        for i in np.argsort(-similarities, kind="stable"):
            words = [self._words[word] for word in self._sentences[i]]
            if words != wanted:
                found.append(Neighbour(b" ".join(words), float(similarities[i])))
            if len(found) == count:
                break
        return found

    def _encoded(
        self, texts: Phrases, words: Sequence[bytes], tick: Callable[[int], None] = lambda texts: None
    ) -> FloatArray:
        """Vectors of length one (or zero)."""
        known = in_vocabulary(texts, words, self._model.vocabulary)
        vectors = encode_texts(self._model, known, self._device, tick)
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.maximum(norms, np.finfo(np.float32).tiny)[:, None]
        return vectors


def sentence_words(model: AutoencoderModel, text: bytes) -> list[bytes]:
    """The words of a sentence that a model can encode, Moses' escapes undone.

    Raises:
        PhraseToolError: the model knows none of them, or there are too many.
    """
    words = split_words(unescape(text))
    if not set(words) & set(model.vocabulary.words[1:]):
        raise PhraseToolError(f"the model knows no word of {text.decode('utf-8', 'replace')!r}")
    if len(words) > LONGEST:
        raise PhraseToolError(f"the sentence has {len(words)} words; an autoencoder encodes at most {LONGEST}")
    return words
