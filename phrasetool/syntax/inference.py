"""Vectors of texts and log-probabilities of tag sequences, computed without torch.

The last bits of a matrix product depend on its size, so batches depend on the texts alone: distinct ones, sorted by
length and content.  One thread computes a batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.kernels.lstm_states import LstmWeights, lstm_states, lstm_step
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.syntax.settings import END, SyntaxShape
from phrasetool.unique_phrases import distinct_phrases, number_distinct

# Texts per batch: as many as keep their states in the processor's cache.
_TOGETHER = 256
# Pieces whose products with the first layer are computed together.
_ROWS = 4096


class SyntaxVectors:
    """The encoder.

    Args:
        arrays: parameters by name, see `SyntaxNetwork.arrays`.
        shape: dimensions of the encoder.
    """

    def __init__(self, arrays: Mapping[str, FloatArray], shape: SyntaxShape) -> None:
        self._layers = [
            [LstmWeights.of(arrays, f"encoder.{layer}.{{}}_l0{end}") for end in ("", "_reverse")]
            for layer in range(shape.layers)
        ]
        table = arrays["pieces.weight"]
        # The products of pieces with the first layer are computed once for all texts, in blocks of a fixed size.
        self._first = [
            np.concatenate([weights.products(table[i : i + _ROWS]) for i in range(0, len(table), _ROWS)])
            for weights in self._layers[0]
        ]
        self._dimension = shape.dimension

    def __call__(self, texts: Phrases) -> FloatArray:
        """Return the vectors of N texts, float32, shape (N, 2 units); zeros for a text without pieces.

        Args:
            texts: texts as piece ids.
        """
        numbers, distinct = distinct_phrases(texts)
        vectors = np.zeros((len(distinct), self._dimension), np.float32)
        order = in_order(distinct)
        order = order[distinct.lengths[order] > 0]
        for first in range(0, len(order), _TOGETHER):
            rows = order[first : first + _TOGETHER]
            batch = distinct.select(rows)
            vectors[rows] = np.maximum.reduceat(self.outputs(batch), batch.offsets[:-1])
        result: FloatArray = vectors[numbers]
        return result

    def outputs(self, texts: Phrases, last: list[FloatArray] | None = None) -> FloatArray:
        """Return the outputs of the last layer at each piece, computed as one batch, float32, shape (pieces, 2 units).

        Args:
            texts: N texts, none without pieces.
            last: if given, the last states, then the last cells, of each layer and direction are appended to it, each
                of shape (N, units).
        """
        ids = texts.words
        inputs = np.zeros((0, self._dimension), np.float32)
        states: list[FloatArray] = []
        cells: list[FloatArray] = []
        for layer, weights in enumerate(self._layers):
            products = [w.products(inputs) for w in weights] if layer else self._first
            ends = [np.zeros((len(texts), len(w.recurrent)), np.float32) for w in weights]
            sides = [
                lstm_states(product, ids, w.recurrent, texts, backward, end if last is not None else None)
                for product, w, backward, end in zip(products, weights, (False, True), ends, strict=True)
            ]
            states += [sides[0][texts.offsets[1:] - 1], sides[1][texts.offsets[:-1]]]
            cells += ends
            inputs, ids = np.concatenate(sides, axis=1), np.arange(len(texts.words), dtype=np.int32)
        if last is not None:
            last += [*states, *cells]
        return inputs


def in_order(texts: Phrases) -> Int64Array:
    """Return the order of texts sorted by length, then by pieces, int64, shape (N,)."""
    matrix = texts.padded(int(texts.lengths.max(initial=0)), -1)
    return np.lexsort((*matrix.T[::-1], texts.lengths))


_TOGETHER = 256


class TagLikelihood:
    """The decoder: scores sequences of parts of speech, given a text.

    Args:
        arrays: parameters by name, see `SyntaxNetwork.arrays`.
        shape: dimensions of encoder and decoder.
        vectors: encoder with the same arrays.
    """

    def __init__(self, arrays: Mapping[str, FloatArray], shape: SyntaxShape, vectors: SyntaxVectors) -> None:
        self._shape, self._vectors = shape, vectors
        self._arrays = arrays
        weights = LstmWeights.of(arrays, "decoder.{}_l0")
        own = shape.tag_units
        # The products of a tag with the gates are the same at every step.
        self._tags: FloatArray = arrays["tags.weight"] @ weights.inputs[:own]
        self._rest = LstmWeights(weights.inputs[own:], weights.recurrent, weights.bias)

    def __call__(self, texts: Phrases, tags: Phrases, language: int) -> FloatArray:
        """Return the mean log-probability of the tags and of the end of N sequences, float32, shape (N,).

        Args:
            texts: N texts as piece ids, none without pieces.
            tags: sequence of tags for each text, none empty.
            language: number of the language of the tags.
        """
        numbers, firsts = number_distinct(texts)
        distinct = texts.select(firsts)
        vectors, begins = self._encoded(distinct, language)
        # Each distinct combination of a text and a sequence is scored once.
        keyed = Phrases(tags.offsets + np.arange(len(tags) + 1), _with_first(tags, numbers))
        rows, places = number_distinct(keyed)
        scores = np.zeros(len(places), np.float32)
        distinct_tags, text_of = tags.select(places), numbers[places]
        order = in_order(keyed.select(places))
        for first in range(0, len(order), _TOGETHER):
            part = order[first : first + _TOGETHER][::-1]
            scores[part] = self._batch(vectors[text_of[part]], begins[text_of[part]], distinct_tags.select(part))
        result: FloatArray = scores[rows]
        return result

    def _encoded(self, texts: Phrases, language: int) -> tuple[FloatArray, FloatArray]:
        """Return the products of N distinct texts with the gates, and the decoder's initial states and cells."""
        deep = self._shape.decoder_units
        products = np.zeros((len(texts), 4 * deep), np.float32)
        begins = np.zeros((len(texts), 2 * deep), np.float32)
        language_vector = self._arrays["languages.weight"][language]
        order = in_order(texts)
        for first in range(0, len(order), _TOGETHER):
            rows = order[first : first + _TOGETHER]
            batch, last = texts.select(rows), list[FloatArray]()
            vectors = np.maximum.reduceat(self._vectors.outputs(batch, last), batch.offsets[:-1])
            inputs = np.concatenate([np.tile(language_vector, (len(rows), 1)), vectors], axis=1)
            products[rows] = self._rest.products(inputs)
            start = np.concatenate(last, axis=1) @ self._arrays["start.weight"].T
            begins[rows] = start + self._arrays["start.bias"]
        return products, begins

    def _batch(self, products: FloatArray, begins: FloatArray, tags: Phrases) -> FloatArray:
        """Score N pairs of a text and a sequence of tags, the longest sequence first."""
        deep = self._shape.decoder_units
        state, cell = np.ascontiguousarray(begins[:, :deep]), np.ascontiguousarray(begins[:, deep:])
        lengths: Int64Array = tags.lengths
        targets = tags.padded(int(lengths[0]) + 1, END)
        total = np.zeros(len(tags), np.float32)
        before = np.full(len(tags), END, np.int32)
        for time in range(int(lengths[0]) + 1):
            active = int(np.searchsorted(-lengths, -time, "right"))
            gates = products[:active] + self._tags[before[:active]] + state[:active] @ self._rest.recurrent
            state, cell = lstm_step(gates, cell[:active])
            logits: FloatArray = state @ self._arrays["output.weight"].T + self._arrays["output.bias"]
            logits -= logits.max(1, keepdims=True)
            before = targets[:active, time]
            total[:active] += logits[np.arange(active), before] - np.log(np.exp(logits).sum(1))
        return np.asarray(total / (lengths + 1), np.float32)


def _with_first(phrases: Phrases, numbers: Int64Array) -> Int32Array:
    """Return the words of all phrases, with its number prepended to each phrase."""
    words = np.empty(len(phrases.words) + len(phrases), np.int32)
    heads = phrases.offsets[:-1] + np.arange(len(phrases))
    inside = np.ones(len(words), np.bool_)
    inside[heads] = False
    words[heads], words[inside] = numbers, phrases.words
    return words


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """Scale vectors, shape (N, n), to length 1; zero vectors stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit
