"""Interpolated modified Kneser-Ney smoothing, as `kneser_ney` does it, of counts on disk: the same model to the bit.

Values that all n-grams of a context share are computed in partitions by context; the rows of a context keep their
order there, so that sums of floats are those that one array gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.disk.columns import DiskColumn, Partitions, drawn_cuts, even_cuts, parts_for
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Mask
from phrasetool.smt.language_model.counts_on_disk import DiskNgrams, DiskText, count_on_disk
from phrasetool.smt.language_model.kneser_ney import (
    Discounts,
    as_lmplz_counts,
    chosen_discounts,
    log10_of,
    pruning_thresholds,
)
from phrasetool.smt.language_model.ngram_counts import BEGIN_ID, MARKERS
from phrasetool.smt.language_model.ngrams import NgramTable

_SHARE = [("row", np.int64), ("context", np.int32), ("adjusted", np.int64), ("freed", np.float64)]
_ROW = [("row", np.int64), ("own", np.float64), ("weight", np.float64)]
_SHARE_BYTES, _ROW_BYTES = 130, 90


@dataclass(frozen=True)
class DiskNgramTable:
    """The n-grams of one order, as `NgramTable`, on disk."""

    order: int
    words: DiskColumn
    log_probabilities: DiskColumn
    backoffs: DiskColumn

    def __len__(self) -> int:
        return len(self.log_probabilities)

    def part(self, first: int, last: int) -> NgramTable:
        """Rows first..last - 1."""
        words: Int32Array = self.words.read(first, last).reshape(-1, self.order)
        return NgramTable(words, self.log_probabilities.read(first, last), self.backoffs.read(first, last))


@dataclass(frozen=True)
class DiskModel:
    """A back-off language model, as `BackoffModel`, with its tables on disk."""

    words: list[bytes]
    tables: list[DiskNgramTable]

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.tables)


@dataclass(frozen=True)
class DiskEstimate:
    """As `kneser_ney.Estimate`, with the model on disk."""

    model: DiskModel
    discounts: list[Discounts]
    counted: list[int]


def estimate_on_disk(words: list[bytes], text: DiskText, order: int, prune: Sequence[int] = ()) -> DiskEstimate:
    """Estimate a language model from a corpus on disk, within the memory that is granted to it.

    Args:
        words: the vocabulary; the first three are the markers.
        text: the sentences, one at least.
        order, prune: as of `kneser_ney.estimate_language_model`.

    Raises:
        PhraseToolError: the disk is full.
        ValueError: see `kneser_ney.pruning_thresholds`.
    """
    thresholds = pruning_thresholds(prune, order)
    orders = count_on_disk(text, len(words), order)
    discounts = chosen_discounts(_counts_of_counts(orders))
    model = _Smoothing(words, text, thresholds, discounts).model(orders)
    return DiskEstimate(model, discounts, [len(table) for table in orders])


def _counts_of_counts(orders: list[DiskNgrams]) -> list[list[int]]:
    histograms = []
    for counts in orders:
        numbers = np.zeros(6, np.int64)
        for piece in counts.adjusted.pieces():
            numbers += np.bincount(np.minimum(piece, 5), minlength=6)
        histograms.append(numbers)
    ends = [
        tuple(
            int(value)
            for column in (one.suffixes, one.adjusted, one.raw)
            for value in column.read(max(size - 1, 0), size)
        )
        for one in orders
        for size in (len(one),)
    ]
    return as_lmplz_counts(histograms, [len(one) for one in orders], ends)


class _Smoothing:
    """Makes tables of counts, order by order."""

    def __init__(self, words: list[bytes], text: DiskText, thresholds: list[int], discounts: list[Discounts]) -> None:
        self._words, self._folder, self._memory = words, text.folder, text.memory
        self._block, self._thresholds, self._discounts = text.block, thresholds, discounts
        self._ids: Int32Array = np.arange(len(words), dtype=np.int32)

    def model(self, orders: list[DiskNgrams]) -> DiskModel:
        """The whole model."""
        stays = np.concatenate([mask for _, mask in self._stays(orders[0])])
        kept = np.flatnonzero(stays)
        self._ids[kept] = np.arange(len(kept), dtype=np.int32)
        lower = DiskColumn(self._folder, np.float64)
        # All words but <s> share the uniform distribution.
        lower.append(np.full(1, 1.0 / (len(kept) - 1)))
        tables: list[DiskNgramTable] = []
        for n, counts in enumerate(orders):
            weights, shares = self._shares(counts, len(lower))
            if tables:
                self._add_backoffs(tables[-1], orders[n - 1], weights)
            table, lower = self._table(counts, shares, lower)
            tables.append(table)
        for first in range(0, len(tables[-1]), self._block):
            rows = min(self._block, len(tables[-1]) - first)
            tables[-1].backoffs.append(np.zeros(rows, np.float32))
        return DiskModel([self._words[i] for i in kept], tables)

    def _blocks(self, counts: DiskNgrams) -> Iterator[tuple[int, int]]:
        for first in range(0, len(counts), self._block):
            yield first, min(first + self._block, len(counts))

    def _stays(self, counts: DiskNgrams) -> Iterator[tuple[int, Mask]]:
        """Where a block of n-grams begins, and which of them are not pruned."""
        for first, last in self._blocks(counts):
            mask = counts.raw.read(first, last) > self._thresholds[counts.order - 1]
            if counts.order == 1 and first < len(MARKERS):
                mask[: len(MARKERS) - first] = True
            yield first, mask

    def _off(self, counts: DiskNgrams, adjusted: Int64Array) -> DoubleArray:
        off: DoubleArray = np.array([0.0, *self._discounts[counts.order - 1].amounts])[np.minimum(adjusted, 3)]
        return off

    def _shares(self, counts: DiskNgrams, lower: int) -> tuple[DiskColumn, Partitions]:
        """The weight of each of the `lower` contexts; and by rows, what each n-gram has of its own, and that weight."""
        size = len(counts)

        def contexts() -> Iterator[Int64Array]:
            return (counts.contexts.read(first, last).astype(np.int64) for first, last in self._blocks(counts))

        parts = parts_for(size, _SHARE_BYTES, self._memory)
        by_context = Partitions(self._folder, _SHARE, drawn_cuts(contexts, size, parts))
        for first, stays in self._stays(counts):
            last = first + len(stays)
            context_rows, adjusted = counts.contexts.read(first, last), counts.adjusted.read(first, last)
            freed = np.where(stays, self._off(counts, adjusted), adjusted)
            by_context.add(
                context_rows, row=np.arange(first, last), context=context_rows, adjusted=adjusted, freed=freed
            )
        by_row = Partitions(self._folder, _ROW, even_cuts(size, parts_for(size, _ROW_BYTES, self._memory)))
        weights = DiskColumn(self._folder, np.float64)
        for part, (begin, end) in enumerate(by_context.bounds(0, lower)):
            records = by_context.take(part)
            context, adjusted = records["context"] - begin, records["adjusted"]
            total = np.bincount(context, adjusted, end - begin)
            freed = np.bincount(context, records["freed"], end - begin)
            # An n-gram that is not a context leaves everything to shorter contexts; its back-off is 1.
            weight = np.divide(freed, total, out=np.ones(end - begin), where=total > 0)
            weights.append(weight)
            off = self._off(counts, adjusted)
            own = np.divide(adjusted - off, total[context], out=np.zeros(len(records)), where=adjusted > 0)
            by_row.add(records["row"], row=records["row"], own=own, weight=weight[context])
        return weights, by_row

    def _table(self, counts: DiskNgrams, shares: Partitions, lower: DiskColumn) -> tuple[DiskNgramTable, DiskColumn]:
        """The n-grams that stay, without back-offs, and the probabilities of all."""
        folder = self._folder
        probabilities = DiskColumn(folder, np.float64)
        words = DiskColumn(folder, np.int32, counts.order)
        table = DiskNgramTable(counts.order, words, DiskColumn(folder, np.float32), DiskColumn(folder, np.float32))
        for part, (begin, end) in enumerate(shares.bounds(0, len(counts))):
            records = shares.take(part)
            p, weight = np.zeros(end - begin), np.zeros(end - begin)
            p[records["row"] - begin] = records["own"]
            weight[records["row"] - begin] = records["weight"]
            suffixes = counts.suffixes.read(begin, end)
            if len(suffixes):
                # They ascend.
                p += weight * lower.read(int(suffixes[0]), int(suffixes[-1]) + 1)[suffixes - suffixes[0]]
            if counts.order == 1 and begin <= BEGIN_ID < end:
                p[BEGIN_ID - begin] = 1.0
            probabilities.append(p)
        for first, stays in self._stays(counts):
            kept = self._ids[counts.words_of(first, first + len(stays))[stays]]
            words.append(kept if counts.order > 1 else kept[:, 0])
            table.log_probabilities.append(log10_of(probabilities.read(first, first + len(stays))[stays]))
        return table, probabilities

    def _add_backoffs(self, table: DiskNgramTable, counts: DiskNgrams, weights: DiskColumn) -> None:
        for first, stays in self._stays(counts):
            backoff_weights: npt.NDArray[np.float64] = weights.read(first, first + len(stays))
            table.backoffs.append(log10_of(backoff_weights[stays]))
