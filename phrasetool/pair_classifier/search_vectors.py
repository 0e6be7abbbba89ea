"""Vectors of sentences that the nearest are searched for by: sums over the units of a sentence.

A classifier is no metric, and what it must know of a sentence (order, length) is not what finds its translation among
a hundred thousand others.  A sum over words and parts of words does that better and in a hundredth of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from phrasetool.pair_classifier.sentence_units import lexicon_units, sentence_units
from phrasetool.phrases import FloatArray, Phrases

# Sentences at a time.
_BATCH = 4096


class SearchVectors:
    """A vector for each unit of both languages.

    Args:
        table: float16, shape (B, d), B a power of two.

    Raises:
        ValueError: it has another shape.
    """

    def __init__(self, table: npt.NDArray[np.float16]) -> None:
        if table.ndim != 2 or not len(table) or len(table) & (len(table) - 1):
            raise ValueError(f"the vectors of units have shape {table.shape}, expected a power of two of them")
        self._table = torch.from_numpy(table.astype(np.float32))

    @property
    def dimension(self) -> int:
        """d, size of a vector."""
        return self._table.shape[1]

    def encode(self, texts: Phrases, words: Sequence[bytes]) -> FloatArray:
        """The vectors of N sentences, float32, shape (N, d), of length 1; zeros for a sentence without words.

        Args:
            texts: in numbers of the words.
            words: distinct, unescaped.
        """
        lexicon = lexicon_units(words, len(self._table))
        parts = [np.zeros((0, self.dimension), np.float32)]
        for first in range(0, len(texts), _BATCH):
            part = texts.part(first, min(first + _BATCH, len(texts)))
            parts.append(summed(sentence_units(part, lexicon), self._table).numpy())
        return np.concatenate(parts)


def summed(units: Phrases, table: Tensor, sparse: bool = False) -> Tensor:
    """The sum of the vectors of each sentence's units, divided by its length; float32, shape (N, d).

    Args:
        units: of N sentences.
        table: a vector for each unit, shape (B, d).
        sparse: its gradient is sparse.
    """
    numbers = torch.from_numpy(units.words.astype(np.int64)).to(table.device)
    offsets = torch.from_numpy(units.offsets[:-1].copy()).to(table.device)
    return functional.normalize(functional.embedding_bag(numbers, table, offsets, mode="sum", sparse=sparse), dim=1)
