"""Composition criterion: the loss of model score without an entry (Zens, Stanton and Xu 2012; Ling et al. 2012).

An entry is redundant if the decoder can compose it from two shorter entries of the table; only the difference of the
model scores is lost.  The loss of an entry is its weighted score minus that of its best composition.  The score of a
part is its own score or that of its best composition, whichever is better, so a composition may have as many parts as
the phrase has words, as long as every intermediate phrase pair is an entry.

The score consists of the features that depend on the entry alone: the weighted sum of its log scores, and the phrase
penalty.  Language model, word penalty and lexical reordering are left out because they are equal for an entry and its
composition or depend on the sentence.

Parts have shorter sources than the whole.  Entries are therefore written to one file per source length and processed
from the shortest to the longest; memory holds a hash of the pair and the best score of each processed entry.  Hashes
have 64 bits: in a table of 10^8 entries, the probability that any two pairs collide is 1 in 3,700, and a collision
changes a handful of losses at most.  They are polynomial rolling hashes (Karp and Rabin 1987) of the word numbers,
modulo 2^64 and with an odd base, so the hashes of all prefixes and suffixes of a phrase take a single pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from phrasetool.disk.columns import DiskColumn
from phrasetool.kernels.hashing import NO_KEY, find_key, mix
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, gathered_runs
from phrasetool.pipeline import run

HashArray = npt.NDArray[np.uint64]
# Sources of at least this many words share a file, which is read once for each length.
LONG = 16
_BASE = np.uint64(0xD1342543DE82EF95)
_SMALLEST = np.uint64(1)
_HEADER = 5


@dataclass(frozen=True)
class HashedPhrases:
    """N phrases whose words are numbers spread over 64 bits.

    Attributes:
        offsets: int64, shape (N + 1,), ascending, `offsets[0] == 0`.
        words: uint64, shape (offsets[N],).
    """

    offsets: Int64Array
    words: HashArray

    @property
    def lengths(self) -> Int64Array:
        """Number of words per phrase, int64, shape (N,)."""
        return np.diff(self.offsets)

    def select(self, rows: Int64Array) -> HashArray:
        """Return the concatenated words of the phrases in the given rows."""
        _, indices = gathered_runs(self.offsets[:-1][rows], self.lengths[rows])
        return self.words[indices]


@dataclass(frozen=True)
class EntriesBySourceLength:
    """M entries, grouped by the length of their source.

    Attributes:
        levels: uint8, shape (M,), number of words of each entry's source, at most `LONG`.
        frames: for each level present, its entries in the format of `_frame`.
        counts: number of entries for each source length.
    """

    levels: npt.NDArray[np.uint8]
    frames: dict[int, HashArray] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, sources: HashedPhrases, sizes: Int64Array, targets: HashedPhrases, scores: FloatArray
    ) -> EntriesBySourceLength:
        """Group entries by the length of their source.

        Args:
            sources: source phrases of G groups.
            sizes: int64, shape (G,), number of entries of each group.
            targets: target phrases of the M entries.
            scores: float32, shape (M,), finite.

        Raises:
            ValueError: the arrays do not match.
        """
        lengths, entries = sources.lengths, len(targets.offsets) - 1
        if scores.shape != (entries,) or scores.dtype != np.float32:
            raise ValueError(f"scores are {scores.dtype} of shape {scores.shape}, expected float32 of ({entries},)")
        if len(lengths) != len(sizes) or int(sizes.sum()) != entries:
            raise ValueError(f"{len(sizes)} groups of {int(sizes.sum())} entries, {len(lengths)} sources, {entries}")
        levels = np.minimum(lengths, LONG).astype(np.uint8)
        of_entries = np.repeat(levels, sizes)
        frames = {}
        for level in np.unique(levels).tolist():
            groups, rows = np.flatnonzero(levels == level), np.flatnonzero(of_entries == level)
            frames[level] = _frame(
                sources.select(groups), targets.select(rows), lengths[groups], sizes[groups], targets.lengths[rows],
                scores[rows],
            )  # fmt: skip
        different, numbers = np.unique(np.repeat(lengths, sizes), return_counts=True)
        return cls(of_entries, frames, dict(zip(different.tolist(), numbers.tolist(), strict=True)))


def _frame(
    source_words: HashArray, target_words: HashArray, lengths: Int64Array, sizes: Int64Array, targets: Int64Array,
    scores: FloatArray,
) -> HashArray:  # fmt: skip
    """Serialise entries into one array: its length, the numbers of items, and the fields of `_Frame`."""
    small = np.concatenate([lengths, sizes, targets]).astype(np.int32).tobytes() + scores.tobytes()
    rest = np.frombuffer(small + bytes(-len(small) % 8), np.uint64)
    counts = len(lengths), len(targets), len(source_words), len(target_words)
    size = _HEADER + len(source_words) + len(target_words) + len(rest)
    return np.concatenate([np.array([size, *counts], np.uint64), source_words, target_words, rest])


@dataclass(frozen=True)
class _Frame:
    """G groups of M entries: words of sources and targets, their lengths, entries per group, scores."""

    first: int
    source_words: HashArray
    target_words: HashArray
    lengths: Int32Array
    sizes: Int32Array
    targets: Int32Array
    scores: FloatArray

    @classmethod
    def read(cls, first: int, data: HashArray) -> _Frame:
        """Read the result of `_frame`, whose first entry is number `first` of the file."""
        groups, entries, sources, targets = data[1:_HEADER].tolist()
        words, rest = data[_HEADER : _HEADER + sources + targets], data[_HEADER + sources + targets :].view(np.int32)
        lengths, sizes, ends, scores = np.split(rest, np.cumsum([groups, groups, entries]))
        return cls(first, words[:sources], words[sources:], lengths, sizes, ends, scores[:entries].view(np.float32))


@inner_kernel
def _pair_key(source: int, target: int) -> int:
    """Return the key of a pair: `mix` of the hashes of its source and target, but never 0."""
    return max(mix(source, target), _SMALLEST)


@borrowing_kernel
def _hash_affixes(
    words: HashArray, start: int, size: int, powers: HashArray, beginnings: HashArray, ends: HashArray
) -> None:
    """Set `beginnings[i]` to the hash of the first i words and `ends[i]` to the hash of the remaining words."""
    beginnings[0] = np.uint64(0)
    for i in range(size):
        beginnings[i + 1] = beginnings[i] * _BASE + words[start + i]
    for i in range(size + 1):
        ends[i] = beginnings[size] - beginnings[i] * powers[size - i]


@exact_kernel
def _compose(
    source_words: HashArray,
    target_words: HashArray,
    lengths: Int32Array,
    sizes: Int32Array,
    targets: Int32Array,
    length: int,
    slots: HashArray,
    best: FloatArray,
    swap: float,
    keys: HashArray,
    composed: FloatArray,
) -> None:
    """Compute the keys of entries and the scores of their best compositions from two parts, in order or swapped.

    Only entries whose source has `length` words are processed; the keys of all others are set to `NO_KEY`.
    """
    room = 2
    for i in range(len(lengths)):
        room = max(room, lengths[i] + 1)
    for i in range(len(targets)):
        room = max(room, targets[i] + 1)
    lefts, rights, powers = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint64)
    beginnings, ends = np.empty(room, np.uint64), np.empty(room, np.uint64)
    powers[0] = np.uint64(1)
    for i in range(1, room):
        powers[i] = powers[i - 1] * _BASE
    entry, source, target = 0, 0, 0
    for group in range(len(lengths)):
        size = np.int64(lengths[group])
        selected = size == length
        if selected:
            _hash_affixes(source_words, source, size, powers, lefts, rights)
            whole = mix(np.uint64(size), lefts[size])
            for i in range(1, size):
                lefts[i] = mix(np.uint64(i), lefts[i])
                rights[i] = mix(np.uint64(size - i), rights[i])
        source += size
        jump = np.float32(swap * size)
        for _ in range(sizes[group]):
            words = np.int64(targets[entry])
            top = np.float32(-np.inf)
            keys[entry] = NO_KEY
            if selected:
                _hash_affixes(target_words, target, words, powers, beginnings, ends)
                keys[entry] = _pair_key(whole, beginnings[words])
                for i in range(1, size):
                    for k in range(1, words):
                        x = find_key(slots, _pair_key(lefts[i], beginnings[k]))
                        if slots[x] != NO_KEY:
                            y = find_key(slots, _pair_key(rights[i], ends[k]))
                            if slots[y] != NO_KEY:
                                top = max(top, best[x] + best[y])
                        x = find_key(slots, _pair_key(lefts[i], ends[k]))
                        if slots[x] != NO_KEY:
                            y = find_key(slots, _pair_key(rights[i], beginnings[k]))
                            if slots[y] != NO_KEY:
                                top = max(top, best[x] + best[y] - jump)
            composed[entry] = top
            target += words
            entry += 1


@exact_kernel
def _enter(keys: HashArray, scores: FloatArray, composed: FloatArray, slots: HashArray, best: FloatArray) -> None:
    """Enter the better of the two scores of each entry that has a key; of equal pairs, the best score is kept."""
    for entry in range(len(keys)):
        if keys[entry] != NO_KEY:
            score = max(scores[entry], composed[entry])
            slot = find_key(slots, keys[entry])
            if slots[slot] == NO_KEY:
                slots[slot] = keys[entry]
                best[slot] = score
            else:
                best[slot] = max(best[slot], score)


class Compositions:
    """Computes how much the model score of each entry of a table exceeds that of its best composition.

    On disk, an entry takes up to 21 bytes and 8 for each word of its target; each word of a source takes 8 bytes, once
    for all consecutive entries.  Memory holds 18 bytes per entry, except for those with the longest sources.

    Args:
        folder: directory of the files; None for the system's temporary directory.

    Raises:
        PhraseToolError: the files cannot be created.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._levels = DiskColumn(folder, np.uint8)
        self._files: dict[int, DiskColumn] = {}
        self._counts: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._levels)

    @staticmethod
    def bytes_on_disk(entries: int, words: int) -> int:
        """Return the maximum number of bytes that entries take.

        Args:
            entries: number of entries.
            words: number of words of their sources and targets.
        """
        return 21 * entries + 8 * words

    def add(self, entries: EntriesBySourceLength) -> None:
        """Write the next entries.

        Raises:
            PhraseToolError: they cannot be written.
        """
        self._levels.append(entries.levels)
        for level, frame in entries.frames.items():
            if level not in self._files:
                self._files[level] = DiskColumn(self._folder, np.uint64)
            self._files[level].append(frame)
        self._counts.update(entries.counts)

    def losses(self, distortion_weight: float = 0.0, threads: int = 1) -> Losses:
        """Compose all entries; nothing can be added afterwards.

        Args:
            distortion_weight: weight of Moses' Distortion feature.  Swapping two parts costs jumps over twice the words
                of the source phrase in total: to the second part, back to the first, and past the second again.
            threads: number of worker threads; does not change the result.

        Raises:
            PhraseToolError: files cannot be written or read.
        """
        longest = max(self._counts, default=0)
        parts = sum(count for length, count in self._counts.items() if length < longest)
        table = np.zeros(parts + parts // 2 + 1, np.uint64), np.zeros(parts + parts // 2 + 1, np.float32)
        swap = np.float32(2 * distortion_weight)
        columns = {}
        for level in sorted(self._files):
            column = columns[level] = DiskColumn(self._folder, np.float32)
            lengths = sorted(length for length in self._counts if min(length, LONG) == level)
            # Losses of entries in a shared file are collected until all lengths in it are processed.
            waiting = np.empty(sum(self._counts[length] for length in lengths) if len(lengths) > 1 else 0, np.float32)
            for length in lengths:
                work = partial(_composed, length, table, swap)
                for frame, keys, composed in run(_frames(self._files[level]), work, threads):
                    if length < longest:
                        _enter(keys, frame.scores, composed, *table)
                    if len(waiting):
                        here = keys != NO_KEY
                        waiting[frame.first : frame.first + len(keys)][here] = (frame.scores - composed)[here]
                    else:
                        column.append(frame.scores - composed)
            column.append(waiting)
            del self._files[level]
        return Losses(self._levels, columns)


def _composed(
    length: int, table: tuple[HashArray, FloatArray], swap: np.float32, frame: _Frame
) -> tuple[_Frame, HashArray, FloatArray]:
    keys, composed = np.empty(len(frame.targets), np.uint64), np.empty(len(frame.targets), np.float32)
    _compose(
        frame.source_words, frame.target_words, frame.lengths, frame.sizes, frame.targets, length, *table, swap, keys,
        composed,
    )  # fmt: skip
    return frame, keys, composed


def _frames(file: DiskColumn) -> Iterator[_Frame]:
    offset, first = 0, 0
    while offset < len(file):
        size = int(file.read(offset, offset + 1)[0])
        frame = _Frame.read(first, file.read(offset, offset + size))
        yield frame
        offset, first = offset + size, first + len(frame.targets)


class Losses:
    """Losses of entries in the order in which they were added; created by `Compositions`."""

    def __init__(self, levels: DiskColumn, files: dict[int, DiskColumn]) -> None:
        self._levels, self._files = levels, files
        self._done, self._taken = 0, dict.fromkeys(files, 0)

    def take(self, count: int) -> FloatArray:
        """Return the next `count` losses.

        Returns:
            float32, shape (count,): infinite where an entry has no composition; zero or less where nothing is lost.
        """
        levels = self._levels.read(self._done, self._done + count)
        losses = np.empty(len(levels), np.float32)
        for level in np.unique(levels).tolist():
            here, first = levels == level, self._taken[level]
            self._taken[level] = first + int(np.count_nonzero(here))
            losses[here] = self._files[level].read(first, self._taken[level])
        self._done += len(levels)
        return losses
