"""Links from each source-pivot entry to a group of pivot-target entries, computed on disk, and their coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.disk.columns import DiskColumn, Partitions, Records, even_cuts, parts_for
from phrasetool.kernels.bytes import SPACE
from phrasetool.phrases import ByteArray, Int64Array, prefix_sums
from phrasetool.pivot.tables import DIRECT, Ragged, TableStore, bytes_of_groups, hash_phrases

NO_LINK = -1
_PHRASE = np.dtype([("key", "u8"), ("check", "u8"), ("row", "i8"), ("bytes", "i8"), ("units", "i8"), ("words", "i4")])
_LINK = np.dtype([("row", "i8"), ("group", "i8"), ("bytes", "i8")])
# Bytes per record while its part is sorted and looked up.
_PHRASE_BYTES, _LINK_BYTES = 3 * _PHRASE.itemsize, 3 * _LINK.itemsize
# Probabilities are summed as integers in this unit, so that the sum does not depend on the partition of the records.
_UNITS = 10**9
# Approximate number of entries sampled from each table.
_SAMPLE = 1 << 18
# A change is suggested if the tables then share at least this part of the phrases, and this many times the actual part.
_LEAST_SHARE, _LEAST_GAIN = 0.1, 2.0
_CASE = np.uint8(0x20)

FIRST, SECOND, ORDER, CAPITALS = "first", "second", "order", "capitals"
_Side = Callable[[TableStore], Iterator[Ragged]]


@dataclass(frozen=True)
class PivotCoverage:
    """Coverage of the pivot phrases of the source-pivot table by the pivot-target table.

    Attributes:
        phrases: number of distinct pivot phrases of the source-pivot table.
        found_phrases: number of those for which the pivot-target table has entries.
        words, found_words: numbers of tokens of `phrases` and of `found_phrases`.
        mass: share of the total probability p(pivot | source) that belongs to pivot phrases that were found.
    """

    phrases: int
    found_phrases: int
    words: int
    found_words: int
    mass: float

    @property
    def share(self) -> float:
        """Share of the distinct phrases that were found."""
        return self.found_phrases / max(1, self.phrases)

    @property
    def share_of_words(self) -> float:
        """Share of the tokens of distinct phrases that were found."""
        return self.found_words / max(1, self.words)


class Links:
    """Links from source-pivot entries to groups of pivot-target entries.

    Args:
        first: the source-pivot table.
        second: the pivot-target table.
        memory: number of bytes that may be used.
        folder: directory of temporary files.

    Attributes:
        coverage: coverage of the pivot phrases.

    Raises:
        PhraseToolError: the disk is full.
    """

    def __init__(self, first: TableStore, second: TableStore, memory: int, folder: str | None) -> None:
        parts = parts_for(len(first) + second.groups, _PHRASE_BYTES, memory)
        cuts = _cuts_of_hashes(parts)
        requested, known = Partitions(folder, _PHRASE, cuts), Partitions(folder, _PHRASE, cuts)
        _add_targets(first, requested)
        _add_sources(second, known)
        by_row = Partitions(folder, _LINK, even_cuts(len(first), parts_for(len(first), _LINK_BYTES, memory)))
        totals = np.zeros(6, np.int64)
        for part in range(len(requested)):
            targets = requested.take(part)
            group, size = _look_up(targets, known.take(part))
            totals += _totals(targets, group >= 0)
            by_row.add(targets["row"], row=targets["row"], group=group, bytes=size)
        self._column = DiskColumn(folder, np.int64, 2)
        for part, (start, end) in enumerate(by_row.bounds(0, len(first))):
            records = by_row.take(part)
            rows = np.empty((end - start, 2), np.int64)
            rows[records["row"] - start, 0] = records["group"]
            rows[records["row"] - start, 1] = records["bytes"]
            self._column.append(rows)
        phrases, found, words, found_words, units, found_units = totals.tolist()
        self.coverage = PivotCoverage(phrases, found, words, found_words, found_units / max(1, units))

    def read(self, first: int, last: int) -> tuple[Int64Array, Int64Array]:
        """Return the group of each entry in [first, last), or `NO_LINK`, and the size of the group in bytes."""
        rows = self._column.read(first, last)
        return np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])


def _cuts_of_hashes(parts: int) -> Int64Array:
    """Return cuts that divide the range of signed 64-bit hashes evenly."""
    return np.array([-(2**63) + (2**64 * part) // parts for part in range(1, parts)], np.int64)


def _add(phrases: Ragged, first: int, to: Partitions, **fields: npt.NDArray[np.int64]) -> None:
    hashes = hash_phrases(phrases)
    rows = first + np.arange(len(phrases))
    keys = np.ascontiguousarray(hashes[:, 0])
    to.add(keys.view(np.int64), key=keys, check=hashes[:, 1], row=rows, words=_words(phrases), **fields)


def _add_targets(table: TableStore, to: Partitions) -> None:
    row = 0
    for block in table.blocks():
        units = np.rint(_UNITS * np.clip(block.numbers[:, DIRECT], 0, 1)).astype(np.int64)
        _add(block.targets, row, to, bytes=np.zeros(len(block), np.int64), units=units)
        row += len(block)


def _add_sources(table: TableStore, to: Partitions) -> None:
    group = 0
    for block in table.blocks():
        sizes = bytes_of_groups(block)
        _add(block.sources, group, to, bytes=sizes, units=np.zeros(len(sizes), np.int64))
        group += len(sizes)


def _words(phrases: Ragged) -> Int64Array:
    """Return the number of tokens of each phrase; each token is followed by a space."""
    text: ByteArray = phrases.items
    spaces = prefix_sums(text == SPACE)
    words: Int64Array = np.diff(spaces[phrases.offsets])
    return words


def _look_up(targets: Records, known: Records) -> tuple[Int64Array, Int64Array]:
    """Return the group that each target phrase leads to, and the size of the group in bytes."""
    order = np.argsort(known["key"], kind="stable")
    keys = known["key"][order]
    positions = np.searchsorted(keys, targets["key"])
    group, size = np.full(len(targets), NO_LINK, np.int64), np.zeros(len(targets), np.int64)
    inside = np.flatnonzero(positions < len(keys))
    rows = order[positions[inside]]
    same = (known["key"][rows] == targets["key"][inside]) & (known["check"][rows] == targets["check"][inside])
    group[inside[same]], size[inside[same]] = known["row"][rows[same]], known["bytes"][rows[same]]
    return group, size


def _totals(targets: Records, linked: npt.NDArray[np.bool_]) -> Int64Array:
    """Return the numbers of distinct phrases and their words, and the total mass, each followed by the linked part."""
    _, first = np.unique(targets["key"], return_index=True)
    words = targets["words"].astype(np.int64)
    once = linked[first]
    return np.array(
        [len(first), once.sum(), words[first].sum(), words[first][once].sum(), targets["units"].sum(),
         targets["units"][linked].sum()], np.int64,
    )  # fmt: skip


def diagnose_mismatch(first: TableStore, second: TableStore, share: float) -> str | None:
    """Find the change of the tables after which many more pivot phrases would match.

    Args:
        first: the source-pivot table.
        second: the pivot-target table.
        share: share of the pivot phrases of `first` that `second` has.

    Returns:
        `FIRST` or `SECOND`: reverse that table; `ORDER`: reverse both or swap them; `CAPITALS`: lowercase both; None if
        no change helps.
    """
    rate = max(1, max(len(first), len(second)) // _SAMPLE)
    outer, middle = _sample(first, _sources, rate), _sample(first, _targets, rate)
    other_middle, other_outer = _sample(second, _sources, rate), _sample(second, _targets, rate)
    shares = {
        FIRST: _share(outer, other_middle),
        SECOND: _share(middle, other_outer),
        ORDER: _share(outer, other_outer),
        CAPITALS: _share(_sample(first, _small(_targets), rate), _sample(second, _small(_sources), rate)),
    }
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= max(_LEAST_SHARE, _LEAST_GAIN * share) else None


def _sources(table: TableStore) -> Iterator[Ragged]:
    return (block.sources for block in table.blocks())


def _targets(table: TableStore) -> Iterator[Ragged]:
    return (block.targets for block in table.blocks())


def _small(side: _Side) -> _Side:
    """Return a function that yields the phrases of a side with ASCII letters in lower case."""

    def phrases(table: TableStore) -> Iterator[Ragged]:
        for block in side(table):
            capital = (block.items >= ord("A")) & (block.items <= ord("Z"))
            yield Ragged(np.where(capital, block.items | _CASE, block.items), block.offsets)

    return phrases


def _sample(table: TableStore, side: _Side, rate: int) -> npt.NDArray[np.uint64]:
    """Return the hashes of one in `rate` distinct phrases; the choice depends on the phrase only."""
    samples = [np.zeros(0, np.uint64)]
    for phrases in side(table):
        hashes = np.unique(hash_phrases(phrases)[:, 0])
        samples.append(hashes[(hashes >> np.uint64(20)) % np.uint64(rate) == 0])
    return np.unique(np.concatenate(samples))


def _share(sample: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> float:
    return float(np.isin(sample, other, assume_unique=True).mean()) if len(sample) else 0.0
