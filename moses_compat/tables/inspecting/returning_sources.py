"""Which sources of a table come back after other sources: nine bytes a group."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Int64Array

_LARGEST = 255


class SourceGroups:
    """All source groups: a hash and, in a byte, the size of each."""

    def __init__(self) -> None:
        self._hashes: list[Int64Array] = []
        self._sizes: list[npt.NDArray[np.uint8]] = []
        self._large: dict[int, int] = {}
        self._count = 0

    def add(self, hashes: Int64Array, sizes: Int64Array) -> None:
        """Add the groups of a block, shape (G,) each."""
        self._hashes.append(hashes.copy())
        self._sizes.append(np.minimum(sizes, _LARGEST).astype(np.uint8))
        for group in np.flatnonzero(sizes > _LARGEST).tolist():
            self._large[self._count + group] = int(sizes[group]) - _LARGEST
        self._count += len(hashes)

    def returning(self) -> tuple[int, int]:
        """How many groups have a source that had a group before; the first line of the first of them, from 1."""
        if not self._count:
            return 0, 0
        hashes = np.concatenate(self._hashes)
        self._hashes.clear()
        ordered = np.sort(hashes)
        repeated = np.unique(ordered[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)])
        if not len(repeated):
            return 0, 0
        places = np.flatnonzero(np.isin(hashes, repeated))
        _, first = np.unique(hashes[places], return_index=True)
        again = np.delete(places, first)
        group = int(again[0])
        before = sum(int(size) for size in np.concatenate(self._sizes)[:group].astype(np.int64).tolist())
        before += sum(more for large, more in self._large.items() if large < group)
        return len(again), before + 1
