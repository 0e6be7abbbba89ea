"""How probable the decoder finds sequences of parts of speech, without torch.

Batches depend on the texts and the sequences alone, as those of `SyntaxVectors` do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.kernels.lstm_states import LstmWeights, lstm_step
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.syntax.syntax_shape import END, SyntaxShape
from phrasetool.syntax.syntax_vectors import SyntaxVectors, in_order
from phrasetool.unique_phrases import number_distinct

_TOGETHER = 256


class TagLikelihood:
    """Scores parts of speech, given a text.

    Args:
        arrays: of `SyntaxNetwork.arrays`.
        shape: the dimensions.
        vectors: of the same arrays.
    """

    def __init__(self, arrays: Mapping[str, FloatArray], shape: SyntaxShape, vectors: SyntaxVectors) -> None:
        self._shape, self._vectors = shape, vectors
        self._arrays = arrays
        weights = LstmWeights.of(arrays, "decoder.{}_l0")
        own = shape.tag_units
        # What a tag brings to the gates is the same wherever it is read.
        self._tags: FloatArray = arrays["tags.weight"] @ weights.inputs[:own]
        self._rest = LstmWeights(weights.inputs[own:], weights.recurrent, weights.bias)

    def __call__(self, texts: Phrases, tags: Phrases, language: int) -> FloatArray:
        """The mean logarithm of the probabilities of the tags and of the end of N sequences, float32, shape (N,).

        Args:
            texts: N of them, none without pieces, in numbers of pieces.
            tags: of each, none without tags.
            language: number of that of the tags.
        """
        numbers, firsts = number_distinct(texts)
        distinct = texts.select(firsts)
        vectors, begins = self._encoded(distinct, language)
        # One sequence after one text is scored once.
        keyed = Phrases(tags.offsets + np.arange(len(tags) + 1), _with_first(tags, numbers))
        rows, places = number_distinct(keyed)
        found = np.zeros(len(places), np.float32)
        chosen, of = tags.select(places), numbers[places]
        order = in_order(keyed.select(places))
        for first in range(0, len(order), _TOGETHER):
            part = order[first : first + _TOGETHER][::-1]
            found[part] = self._batch(vectors[of[part]], begins[of[part]], chosen.select(part))
        result: FloatArray = found[rows]
        return result

    def _encoded(self, texts: Phrases, language: int) -> tuple[FloatArray, FloatArray]:
        """Of N distinct texts: what they bring to the gates at each step, and the first state and cell."""
        deep = self._shape.decoder_units
        products = np.zeros((len(texts), 4 * deep), np.float32)
        begins = np.zeros((len(texts), 2 * deep), np.float32)
        spoken = self._arrays["languages.weight"][language]
        order = in_order(texts)
        for first in range(0, len(order), _TOGETHER):
            rows = order[first : first + _TOGETHER]
            batch, last = texts.select(rows), list[FloatArray]()
            vectors = np.maximum.reduceat(self._vectors.outputs(batch, last), batch.offsets[:-1])
            read = np.concatenate([np.tile(spoken, (len(rows), 1)), vectors], axis=1)
            products[rows] = self._rest.products(read)
            start = np.concatenate(last, axis=1) @ self._arrays["start.weight"].T
            begins[rows] = start + self._arrays["start.bias"]
        return products, begins

    def _batch(self, products: FloatArray, begins: FloatArray, tags: Phrases) -> FloatArray:
        """Of N pairs, the longest sequence of tags first."""
        deep = self._shape.decoder_units
        state, cell = np.ascontiguousarray(begins[:, :deep]), np.ascontiguousarray(begins[:, deep:])
        lengths: Int64Array = tags.lengths
        wanted = tags.padded(int(lengths[0]) + 1, END)
        total = np.zeros(len(tags), np.float32)
        before = np.full(len(tags), END, np.int32)
        for time in range(int(lengths[0]) + 1):
            active = int(np.searchsorted(-lengths, -time, "right"))
            gates = products[:active] + self._tags[before[:active]] + state[:active] @ self._rest.recurrent
            state, cell = lstm_step(gates, cell[:active])
            logits: FloatArray = state @ self._arrays["output.weight"].T + self._arrays["output.bias"]
            logits -= logits.max(1, keepdims=True)
            before = wanted[:active, time]
            total[:active] += logits[np.arange(active), before] - np.log(np.exp(logits).sum(1))
        return np.asarray(total / (lengths + 1), np.float32)


def _with_first(phrases: Phrases, numbers: Int64Array) -> Int32Array:
    """The words of all phrases, each phrase behind its number."""
    found = np.empty(len(phrases.words) + len(phrases), np.int32)
    heads = phrases.offsets[:-1] + np.arange(len(phrases))
    inside = np.ones(len(found), np.bool_)
    inside[heads] = False
    found[heads], found[inside] = numbers, phrases.words
    return found
