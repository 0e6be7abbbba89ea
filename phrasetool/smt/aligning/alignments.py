"""Word alignments of many sentence pairs in flat arrays, their symmetrisation, and word-aligned bitexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols

INTERSECTION, UNION, GROW, GROW_DIAG, GROW_DIAG_FINAL, GROW_DIAG_FINAL_AND = range(6)
METHODS = {
    "grow-diag-final-and": GROW_DIAG_FINAL_AND,
    "grow-diag-final": GROW_DIAG_FINAL,
    "grow-diag": GROW_DIAG,
    "grow": GROW,
    "intersection": INTERSECTION,
    "union": UNION,
}

# Values of a cell in the alignment matrix of a sentence pair.
_FORWARD = np.uint8(1)
_REVERSE = np.uint8(2)
_BOTH = np.uint8(3)
_CHOSEN = np.uint8(4)

# The order in which symal visits the neighbours of a point, as (target, source) steps; the first four share a side.
_TARGET_STEPS = np.array([-1, 0, 1, 0, -1, -1, 1, 1], np.int64)
_SOURCE_STEPS = np.array([0, -1, 0, 1, -1, 1, -1, 1], np.int64)
# Separator of the fields of a table; a word that equals it cannot be distinguished from it.
SEPARATOR = b"|||"


@dataclass(frozen=True)
class Alignments:
    """The alignments of N sentence pairs.

    Attributes:
        offsets: int64, shape (N + 1,), where the points of each sentence pair begin.
        source, target: int32, shape (offsets[N],), the positions; within a sentence pair the points are distinct and
            ascend by source position, then by target position.
    """

    offsets: Int64Array
    source: Int32Array
    target: Int32Array

    @classmethod
    def from_points(
        cls, offsets: Int64Array, source: npt.NDArray[np.integer], target: npt.NDArray[np.integer]
    ) -> Alignments:
        """Build from points in any order; duplicate points are counted once."""
        offsets = np.array(offsets, np.int64)
        source_positions, target_positions = np.array(source, np.int32), np.array(target, np.int32)
        size = _put_in_order(offsets, source_positions, target_positions)
        return cls(offsets, source_positions[:size], target_positions[:size])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> list[tuple[int, int]]:
        part = slice(self.offsets[index], self.offsets[index + 1])
        return list(zip(self.source[part].tolist(), self.target[part].tolist(), strict=True))

    def first_outside(self, source_lengths: Int64Array, target_lengths: Int64Array) -> int:
        """Return the first sentence pair with a point outside its sentences, else -1; lengths are int64, shape (N,)."""
        pair = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        wrong = (self.source >= source_lengths[pair]) | (self.target >= target_lengths[pair])
        wrong |= (self.source < 0) | (self.target < 0)
        return int(pair[np.argmax(wrong)]) if wrong.any() else -1


@exact_kernel
def _put_in_order(offsets: Int64Array, source: Int32Array, target: Int32Array) -> int:
    """Sort the points of each sentence pair, drop duplicates, close the gaps; return the number of points left."""
    size = 0
    start = 0
    for pair in range(len(offsets) - 1):
        end = offsets[pair + 1]
        first = size
        for p in range(start, end):
            s, t = source[p], target[p]
            # Points arrive almost sorted: insert from the back.
            k = size
            while k > first and (source[k - 1] > s or (source[k - 1] == s and target[k - 1] > t)):
                k -= 1
            if k > first and source[k - 1] == s and target[k - 1] == t:
                continue
            for m in range(size, k, -1):
                source[m], target[m] = source[m - 1], target[m - 1]
            source[k], target[k] = s, t
            size += 1
        start = end
        offsets[pair + 1] = size
    return size


@exact_kernel
def _grow(
    cells: npt.NDArray[np.uint8],
    has_source: npt.NDArray[np.bool_],
    has_target: npt.NDArray[np.bool_],
    neighbours: int,
) -> None:
    """Add points of the union that neighbour a chosen point and cover an uncovered word, until none is left."""
    added = True
    while added:
        added = False
        # symal iterates over a set ordered by target, then source, while it grows.
        for t in range(len(has_target)):
            for s in range(len(has_source)):
                if cells[t, s] < _CHOSEN:
                    continue
                for k in range(neighbours):
                    u, v = t + _TARGET_STEPS[k], s + _SOURCE_STEPS[k]
                    if u < 0 or v < 0 or u >= len(has_target) or v >= len(has_source):
                        continue
                    if 0 < cells[u, v] < _CHOSEN and not (has_target[u] and has_source[v]):
                        cells[u, v] |= _CHOSEN
                        has_target[u] = has_source[v] = True
                        added = True


@exact_kernel
def _finish(
    cells: npt.NDArray[np.uint8],
    has_source: npt.NDArray[np.bool_],
    has_target: npt.NDArray[np.bool_],
    direction: int,
    both: bool,
) -> None:
    """Add points of one direction only that have an uncovered word (with `both`: two uncovered words)."""
    for t in range(len(has_target)):
        for s in range(len(has_source)):
            if cells[t, s] != direction:
                continue
            if (not has_target[t] and not has_source[s]) if both else not (has_target[t] and has_source[s]):
                cells[t, s] |= _CHOSEN
                has_target[t] = has_source[s] = True


@exact_kernel
def _symmetrise(
    offsets: Int64Array,
    source: Int32Array,
    target: Int32Array,
    reverse_offsets: Int64Array,
    reverse_source: Int32Array,
    reverse_target: Int32Array,
    method: int,
    out_offsets: Int64Array,
    out_source: Int32Array,
    out_target: Int32Array,
) -> None:
    size = 0
    for pair in range(len(offsets) - 1):
        width, height = 0, 0
        for p in range(offsets[pair], offsets[pair + 1]):
            width, height = max(width, source[p] + 1), max(height, target[p] + 1)
        for p in range(reverse_offsets[pair], reverse_offsets[pair + 1]):
            width, height = max(width, reverse_source[p] + 1), max(height, reverse_target[p] + 1)
        cells = np.zeros((height, width), np.uint8)
        has_source, has_target = np.zeros(width, np.bool_), np.zeros(height, np.bool_)
        for p in range(offsets[pair], offsets[pair + 1]):
            cells[target[p], source[p]] = _FORWARD
        for p in range(reverse_offsets[pair], reverse_offsets[pair + 1]):
            cells[reverse_target[p], reverse_source[p]] |= _REVERSE
        for t in range(height):
            for s in range(width):
                if cells[t, s] == _BOTH or (method == UNION and cells[t, s] > 0):
                    cells[t, s] |= _CHOSEN
                    has_target[t] = has_source[s] = True
        if method >= GROW:
            _grow(cells, has_source, has_target, 4 if method == GROW else 8)
        if method >= GROW_DIAG_FINAL:
            _finish(cells, has_source, has_target, _FORWARD, method == GROW_DIAG_FINAL_AND)
            _finish(cells, has_source, has_target, _REVERSE, method == GROW_DIAG_FINAL_AND)
        for s in range(width):
            for t in range(height):
                if cells[t, s] >= _CHOSEN:
                    out_source[size], out_target[size] = s, t
                    size += 1
        out_offsets[pair + 1] = size


def symmetrise(forward: Alignments, reverse: Alignments, method: str = "grow-diag-final-and") -> Alignments:
    """Combine the two directional alignments of each sentence pair into one.

    Points are added one by one in the order of Moses' symal; the order matters, because an added point covers words.
    (atools of fast_align collects the points to add in a different order, and so differs on about one sentence in a
    hundred.)  In the `final` step the points of `forward` come first.

    Args:
        forward: one direction; symal's inverse alignment, in which a target word has at most one source word.
        reverse: the other direction.
        method: a key of `METHODS`.

    Raises:
        ValueError: the alignments have different numbers of sentence pairs, or the method is unknown.
    """
    if len(forward) != len(reverse):
        raise ValueError(f"{len(forward)} forward and {len(reverse)} reverse alignments")
    if method not in METHODS:
        raise ValueError(f"unknown symmetrisation method {method}; expected one of {', '.join(METHODS)}")
    limit = len(forward.source) + len(reverse.source)
    offsets = np.zeros(len(forward) + 1, np.int64)
    source, target = np.empty(limit, np.int32), np.empty(limit, np.int32)
    _symmetrise(
        forward.offsets, forward.source, forward.target, reverse.offsets, reverse.source, reverse.target,
        METHODS[method], offsets, source, target,
    )  # fmt: skip
    return Alignments(offsets, source[: offsets[-1]].copy(), target[: offsets[-1]].copy())


@dataclass(frozen=True)
class Bitext:
    """Sentence pairs with their word alignments.

    Attributes:
        sources, targets: N sentences each, as ids of the symbols.
        alignments: their N alignments.
        source_symbols, target_symbols: the words.

    Raises:
        ValueError: the numbers of sentences and alignments differ, a sentence is empty, an alignment has a point
            outside its sentences, or a word is `|||`.
    """

    sources: Phrases
    targets: Phrases
    alignments: Alignments
    source_symbols: Symbols
    target_symbols: Symbols

    def __post_init__(self) -> None:
        if not len(self.sources) == len(self.targets) == len(self.alignments):
            raise ValueError(
                f"{len(self.sources)} source sentences, {len(self.targets)} target sentences,"
                f" {len(self.alignments)} alignments"
            )
        for name, sentences in (("source", self.sources), ("target", self.targets)):
            if len(sentences) and not sentences.lengths.all():
                raise ValueError(f"{name} sentence {int((sentences.lengths == 0).argmax())} is empty")
        outside = self.alignments.first_outside(self.sources.lengths, self.targets.lengths)
        if outside >= 0:
            raise ValueError(f"alignment {outside} has a point outside its sentences")
        for symbols in (self.source_symbols, self.target_symbols):
            if symbols.id(SEPARATOR) >= 0:
                raise ValueError("the word ||| is reserved as the field separator of tables")

    def __len__(self) -> int:
        return len(self.sources)
