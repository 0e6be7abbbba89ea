"""The vectors of texts without torch.

The last bits of a product of matrices depend on its size, so batches depend on the texts alone: distinct ones, sorted
by length and pieces.  One thread computes a batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.kernels.lstm_states import LstmWeights, lstm_states
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.syntax.syntax_shape import SyntaxShape
from phrasetool.unique_phrases import distinct_phrases

# Texts of a batch: as many as keep their states in the cache.
_TOGETHER = 256
# Pieces whose products with the first layer are made together.
_ROWS = 4096


class SyntaxVectors:
    """Makes vectors.

    Args:
        arrays: of `SyntaxNetwork.arrays`.
        shape: the dimensions.
    """

    def __init__(self, arrays: Mapping[str, FloatArray], shape: SyntaxShape) -> None:
        self._layers = [
            [LstmWeights.of(arrays, f"encoder.{layer}.{{}}_l0{end}") for end in ("", "_reverse")]
            for layer in range(shape.layers)
        ]
        table = arrays["pieces.weight"]
        # What the first layer makes of a piece is made once, in parts of one size, for all texts.
        self._first = [
            np.concatenate([weights.products(table[i : i + _ROWS]) for i in range(0, len(table), _ROWS)])
            for weights in self._layers[0]
        ]
        self._dimension = shape.dimension

    def __call__(self, texts: Phrases) -> FloatArray:
        """The vectors of N texts, float32, shape (N, 2 units); of one without pieces, zeros.

        Args:
            texts: in numbers of pieces.
        """
        numbers, distinct = distinct_phrases(texts)
        found = np.zeros((len(distinct), self._dimension), np.float32)
        order = in_order(distinct)
        order = order[distinct.lengths[order] > 0]
        for first in range(0, len(order), _TOGETHER):
            rows = order[first : first + _TOGETHER]
            batch = distinct.select(rows)
            found[rows] = np.maximum.reduceat(self.outputs(batch), batch.offsets[:-1])
        result: FloatArray = found[numbers]
        return result

    def outputs(self, texts: Phrases, last: list[FloatArray] | None = None) -> FloatArray:
        """The outputs of the last layer at each piece, as one batch, float32, shape (pieces, 2 units).

        Args:
            texts: N of them, none without pieces.
            last: gets the last states, then the last cells, of each layer and direction, shape (N, units).
        """
        numbers = texts.words
        found = np.zeros((0, self._dimension), np.float32)
        states: list[FloatArray] = []
        cells: list[FloatArray] = []
        for layer, weights in enumerate(self._layers):
            products = [w.products(found) for w in weights] if layer else self._first
            ends = [np.zeros((len(texts), len(w.recurrent)), np.float32) for w in weights]
            sides = [
                lstm_states(made, numbers, w.recurrent, texts, back, end if last is not None else None)
                for made, w, back, end in zip(products, weights, (False, True), ends, strict=True)
            ]
            states += [sides[0][texts.offsets[1:] - 1], sides[1][texts.offsets[:-1]]]
            cells += ends
            found, numbers = np.concatenate(sides, axis=1), np.arange(len(texts.words), dtype=np.int32)
        if last is not None:
            last += [*states, *cells]
        return found


def in_order(texts: Phrases) -> Int64Array:
    """Where each text stands when they are sorted by length, then by pieces, int64, shape (N,)."""
    matrix = texts.padded(int(texts.lengths.max(initial=0)), -1)
    return np.lexsort((*matrix.T[::-1], texts.lengths))
