"""Which targets are known as translations of which sources: none of these may serve as a wrong one."""

from __future__ import annotations

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array, Mask, Phrases
from phrasetool.unique_phrases import number_distinct


class KnownTranslations:
    """The distinct pairs of some texts.

    Args:
        sources, targets: N pairs, in numbers of distinct words.

    Attributes:
        source_numbers, target_numbers: which distinct text each is, int64, shape (N,).
    """

    def __init__(self, sources: Phrases, targets: Phrases) -> None:
        self.source_numbers, _ = number_distinct(sources)
        self.target_numbers, firsts = number_distinct(targets)
        self._targets = len(firsts)
        self._pairs = np.unique(self._key(self.source_numbers, self.target_numbers))
        self._by_words = {targets[first].tobytes(): number for number, first in enumerate(firsts.tolist())}

    def _key(self, sources: Int64Array, targets: Int64Array) -> Int64Array:
        return np.asarray(sources * self._targets + targets)

    def among(self, batch: Int64Array) -> Mask:
        """Which targets of a batch of pairs are translations of which of its sources; bool, shape (B, B).

        Args:
            batch: numbers of pairs, shape (B,).
        """
        return self.translates(batch[:, None], batch[None])

    def translates(self, sources: Int64Array, targets: Int64Array) -> Mask:
        """Whether targets are translations of sources; bool, of their common shape.

        Args:
            sources, targets: numbers of the pairs that they are of.
        """
        keys = self._key(self.source_numbers[sources], self.target_numbers[targets])
        places = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        return np.asarray(self._pairs[places] == keys)

    def has(self, pair: int, target: Int32Array) -> bool:
        """Whether a text is a translation of the source of a pair.

        Args:
            pair: its number.
            target: words of the text.
        """
        number = self._by_words.get(np.ascontiguousarray(target, np.int32).tobytes())
        if number is None:
            return False
        key = int(self.source_numbers[pair]) * self._targets + number
        place = int(np.searchsorted(self._pairs, key))
        return place < len(self._pairs) and int(self._pairs[place]) == key
