"""Composition criterion: the loss of model score without an entry (Zens, Stanton and Xu 2012; Ling et al. 2012).

An entry is redundant if the decoder can compose it from two shorter entries of the table; only the difference of the
model scores is lost.  The loss of an entry is its weighted score minus that of its best composition; of a
part, its own score or that of its own best composition counts, whichever is better, so a composition may have as many
parts as the phrase has words, as long as every step of it is an entry.

The score has what an entry alone knows: its logarithms times the weights, and the phrase penalty.  Language model,
word penalty and lexical reordering are left out, for they are the same for both or depend on the sentence.

Parts have shorter sources than the whole.  So entries go to a file for each length of the source, and come back from
the shortest to the longest; memory holds of each entry that was there a hash of its pair and its best score.  A hash
has 64 bits: that two pairs of a table of 10^8 share one is as likely as 1 to 3,700, and then at most a handful of
losses are other ones.  Hashes are sums, in 64 bits, of numbers of words times powers of an odd number, so those of all
beginnings and ends of a phrase are known at once (Karp and Rabin 1987).
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
# Sources of this many words and more share a file, which is read once for each length.
LONG = 16
_BASE = np.uint64(0xD1342543DE82EF95)
_SMALLEST = np.uint64(1)
_HEADER = 5


@dataclass(frozen=True)
class HashedPhrases:
    """N phrases, each word a number that is spread over 64 bits.

    Attributes:
        offsets: int64, shape (N + 1,), ascending, `offsets[0] == 0`.
        words: uint64, shape (offsets[N],).
    """

    offsets: Int64Array
    words: HashArray

    @property
    def lengths(self) -> Int64Array:
        """Words per phrase, int64, shape (N,)."""
        return np.diff(self.offsets)

    def select(self, rows: Int64Array) -> HashArray:
        """The words of some of them, one phrase after another."""
        _, places = gathered_runs(self.offsets[:-1][rows], self.lengths[rows])
        return self.words[places]


@dataclass(frozen=True)
class EntriesBySourceLength:
    """M entries, ready to be written by the lengths of their sources.

    Attributes:
        levels: uint8, shape (M,), words of the source of each, `LONG` for more.
        frames: for each level present, its entries as `_frame` writes them.
        counts: how many have a source of each length.
    """

    levels: npt.NDArray[np.uint8]
    frames: dict[int, HashArray] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, sources: HashedPhrases, sizes: Int64Array, targets: HashedPhrases, scores: FloatArray
    ) -> EntriesBySourceLength:
        """Sort entries.

        Args:
            sources: of G groups.
            sizes: int64, shape (G,), entries of each group.
            targets: of the M entries.
            scores: float32, shape (M,), finite.

        Raises:
            ValueError: the arrays do not fit each other.
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
    """Some entries in one array: its length, how many of everything, then everything; see `_Frame`."""
    small = np.concatenate([lengths, sizes, targets]).astype(np.int32).tobytes() + scores.tobytes()
    rest = np.frombuffer(small + bytes(-len(small) % 8), np.uint64)
    counts = len(lengths), len(targets), len(source_words), len(target_words)
    size = _HEADER + len(source_words) + len(target_words) + len(rest)
    return np.concatenate([np.array([size, *counts], np.uint64), source_words, target_words, rest])


@dataclass(frozen=True)
class _Frame:
    """G groups and their M entries: words of sources and targets, words of each, entries of each group, scores."""

    first: int
    source_words: HashArray
    target_words: HashArray
    lengths: Int32Array
    sizes: Int32Array
    targets: Int32Array
    scores: FloatArray

    @classmethod
    def read(cls, first: int, data: HashArray) -> _Frame:
        """What `_frame` wrote, `first` entries down the file."""
        groups, entries, sources, targets = data[1:_HEADER].tolist()
        words, rest = data[_HEADER : _HEADER + sources + targets], data[_HEADER + sources + targets :].view(np.int32)
        lengths, sizes, ends, scores = np.split(rest, np.cumsum([groups, groups, entries]))
        return cls(first, words[:sources], words[sources:], lengths, sizes, ends, scores[:entries].view(np.float32))


@inner_kernel
def _pair_key(source: int, target: int) -> int:
    """The key of a pair, from `mix` of the source's hash and the target's hash."""
    return max(mix(source, target), _SMALLEST)


@borrowing_kernel
def _hash_affixes(
    words: HashArray, start: int, size: int, powers: HashArray, beginnings: HashArray, ends: HashArray
) -> None:
    """beginnings[i] = the hash of the first i words, ends[i] = that of those behind them."""
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
    """The keys of entries, and the best sums of the scores of two entries that make up each, in order or swapped.

    Looks at entries whose source has `length` words; the key of another is 0.
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
    """Put the better of the two scores of each entry that has a key into the table; of a pair, the best counts."""
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
    """Finds what the model score of each entry of a table is above that of its best composition.

    On disk, an entry takes up to 21 bytes, 8 for each word of its target, and 8 for each word of its source, but those
    once for all entries that follow each other.  Memory holds 18 bytes for each entry but those of the longest sources.

    Args:
        folder: for the files; None for the system's folder of temporary files.

    Raises:
        PhraseToolError: the files cannot be made.
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
        """Return the bytes that entries take at most.

        Args:
            entries: how many.
            words: of their sources and targets.
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
            distortion_weight: of Moses' Distortion feature.  Two parts whose order is swapped jump twice the words of
                the source phrase in all: to the second part, back to the first, and behind the second again.
            threads: worker threads; they do not change the result.

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
    place, first = 0, 0
    while place < len(file):
        size = int(file.read(place, place + 1)[0])
        frame = _Frame.read(first, file.read(place, place + size))
        yield frame
        place, first = place + size, first + len(frame.targets)


class Losses:
    """The losses of entries in the order in which these were added; made by `Compositions`."""

    def __init__(self, levels: DiskColumn, files: dict[int, DiskColumn]) -> None:
        self._levels, self._files = levels, files
        self._done, self._taken = 0, dict.fromkeys(files, 0)

    def take(self, count: int) -> FloatArray:
        """The next ones.

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
