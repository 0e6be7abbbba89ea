"""Interpolated modified Kneser-Ney smoothing (Chen & Goodman 1998, section 3), equal to lmplz of kenlm.

With c the adjusted count of an n-gram hw (see `ngram_counts`), D(c) the discount of its order, h' the context h without
its first word and sums over the n-grams that begin with h:

    p(w | h) = (c(hw) - D(c(hw))) / sum c  +  g(h) p(w | h')
    g(h) = (sum over kept n-grams of D(c)  +  sum over pruned n-grams of c) / sum c

and p(w) of order 0 is uniform over the vocabulary with `<unk>` and `</s>`, without `<s>`.  g(h) is the back-off of h.
The details that lmplz adds to the papers (Heafield et al. 2013, "Scalable modified Kneser-Ney language model
estimation") are implemented here too: which n-grams are pruned depends on raw counts, `<unk>` gets its share of the
uniform distribution only, and `<s>` has the probability 1.

Smoothing of counts on disk gives a bit-identical model.  Values that all n-grams of a context share are computed in
partitions by context; the rows of a context keep their order there, so that sums of floats equal those over one array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.disk.columns import DiskColumn, Partitions, even_cuts, parts_for, sampled_cuts
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Mask, Phrases
from phrasetool.smt.language_model.ngram_counts import (
    BEGIN_ID,
    MARKERS,
    CorpusCounts,
    DiskNgrams,
    DiskText,
    NgramCounts,
    count_ngrams,
    count_on_disk,
)
from phrasetool.smt.language_model.ngrams import BackoffModel, NgramTable

# The discounts of lmplz --discount_fallback.
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
# Used as log10 of a weight of zero, which is not finite.
_ZERO = -99.0
# Records of partitions on disk: by context and by row, and the memory that a record takes while it is processed.
_SHARE = [("row", np.int64), ("context", np.int32), ("adjusted", np.int64), ("freed", np.float64)]
_ROW = [("row", np.int64), ("own", np.float64), ("weight", np.float64)]
_SHARE_BYTES, _ROW_BYTES = 130, 90


@dataclass(frozen=True)
class Discounts:
    """Discounts that are subtracted from the counts of one order.

    Attributes:
        amounts: for the counts 1, 2, and 3 or more.
        estimated: false if they are fallback discounts, because the corpus is too small or odd to estimate them.
    """

    amounts: tuple[float, float, float]
    estimated: bool = True


@dataclass(frozen=True)
class Estimate:
    """A language model, with its discounts and its numbers of n-grams.

    Attributes:
        model: the language model.
        discounts: one per order.
        counted: n-grams of each order before pruning.
    """

    model: BackoffModel
    discounts: list[Discounts]
    counted: list[int]


def pruning_thresholds(prune: Sequence[int], order: int) -> list[int]:
    """Return one threshold per order, repeating the last one; n-grams that occur at most that often are pruned.

    Raises:
        ValueError: there are more thresholds than orders, one is negative, or one is below that of a lower order.
    """
    if len(prune) > order:
        raise ValueError(f"{len(prune)} pruning thresholds for a model of order {order}")
    if any(threshold < 0 for threshold in prune):
        raise ValueError("a pruning threshold is negative")
    if list(prune) != sorted(prune):
        raise ValueError("a pruning threshold is below that of a lower order, whose n-grams it would need")
    return [*prune, *[prune[-1] if prune else 0] * (order - len(prune))]


def discounts_from(counts_of_counts: Sequence[int]) -> tuple[float, float, float] | None:
    """Return the discounts of Chen & Goodman 1998, equation 26, in the form of their section 3.

    Args:
        counts_of_counts: the numbers of n-grams with the adjusted counts 1, 2, 3 and 4.

    Returns:
        The discounts of the counts 1, 2, and 3 or more; None where lmplz refuses: no n-gram has the count 1, 2 or 3, or
        a discount is negative or above its count.
    """
    n1, n2, n3, n4 = (int(count) for count in counts_of_counts)
    if not (n1 and n2 and n3):
        return None
    y = n1 / (n1 + 2 * n2)
    first, second, third = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
    if not (0 <= first <= 1 and 0 <= second <= 2 and 0 <= third <= 3):
        return None
    return first, second, third


def as_lmplz_counts(
    histograms: Sequence[npt.NDArray[np.int64]], sizes: Sequence[int], ends: Sequence[tuple[int, ...]]
) -> list[list[int]]:
    """Return the numbers of n-grams of each order with the adjusted counts 1 to 4, as lmplz counts them.

    For one n-gram of every order but the highest, lmplz uses the raw count instead of the adjusted one: the last n-gram
    it reads, and its suffixes (lm/builder/adjust_counts.cc).  In a small corpus this makes a difference.

    Args:
        histograms: for each order, the numbers of n-grams with the adjusted counts 0 to 4, and 5 or more; modified.
        sizes: number of n-grams of each order.
        ends: the suffix, the adjusted and the raw count of the last n-gram of each order, if there is one.
    """
    last = -1
    for n, (numbers, size, end) in enumerate(zip(histograms[:-1], sizes, ends, strict=False), 1):
        if not size or (n > 1 and end[0] != last):
            break
        last = size - 1
        numbers[min(end[1], 5)] -= 1
        numbers[min(end[2], 5)] += 1
    return [numbers[1:5].tolist() for numbers in histograms]


def chosen_discounts(counts_of_counts: Sequence[Sequence[int]]) -> list[Discounts]:
    """Return the discounts of each order: estimated where possible, otherwise the fallback discounts."""
    chosen = []
    for numbers in counts_of_counts:
        amounts = discounts_from(numbers)
        chosen.append(Discounts(amounts) if amounts else Discounts(FALLBACK_DISCOUNTS, estimated=False))
    return chosen


def _counts_of_counts(orders: list[NgramCounts]) -> list[list[int]]:
    histograms = [np.bincount(np.minimum(counts.adjusted, 5), minlength=6) for counts in orders]
    ends = [
        (int(counts.suffixes[-1]), int(counts.adjusted[-1]), int(counts.raw[-1])) if len(counts) else ()
        for counts in orders
    ]
    return as_lmplz_counts(histograms, [len(counts) for counts in orders], ends)


def log10_of(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return logarithms as in an ARPA file: -99 for 0."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log10(values), _ZERO, 0.0).astype(np.float32)


def _estimate(
    words: list[bytes], counts: CorpusCounts, thresholds: list[int], discounts: list[Discounts]
) -> BackoffModel:
    """Smooth counts order by order."""
    stays = counts.orders[0].raw > thresholds[0]
    stays[: len(MARKERS)] = True
    # All words but <s> share the uniform distribution.
    lower = np.full(1, 1.0 / (np.count_nonzero(stays) - 1))
    tables: list[NgramTable] = []
    kept = np.zeros(1, np.int64)
    for order, threshold, discount in zip(counts.orders, thresholds, discounts, strict=True):
        if order.order > 1:
            stays = order.raw > threshold
        off = np.array([0.0, *discount.amounts])[np.minimum(order.adjusted, 3)]
        total = np.bincount(order.contexts, order.adjusted, len(lower))
        freed = np.bincount(order.contexts, np.where(stays, off, order.adjusted), len(lower))
        # An n-gram that is not a context leaves everything to shorter contexts; its back-off is 1.
        weights = np.divide(freed, total, out=np.ones(len(lower)), where=total > 0)
        if tables:
            tables[-1].backoffs[:] = log10_of(weights[kept])
        p = np.divide(order.adjusted - off, total[order.contexts], out=np.zeros(len(order)), where=order.adjusted > 0)
        p += weights[order.contexts] * lower[order.suffixes]
        if order.order == 1:
            p[BEGIN_ID] = 1.0
        kept = np.flatnonzero(stays)
        words_of_kept = counts.words(order.order, kept)
        tables.append(NgramTable(words_of_kept, log10_of(p[kept]), np.zeros(len(kept), np.float32)))
        lower = p
    return _renumbered(words, tables)


def _renumbered(words: list[bytes], tables: list[NgramTable]) -> BackoffModel:
    """Leave out the pruned words and renumber the others."""
    kept = tables[0].words[:, 0]
    if len(kept) == len(words):
        return BackoffModel(words, tables)
    ids = np.full(len(words), -1, np.int32)
    ids[kept] = np.arange(len(kept), dtype=np.int32)
    return BackoffModel(
        [words[i] for i in kept],
        [NgramTable(ids[table.words], table.log_probabilities, table.backoffs) for table in tables],
    )


def estimate_language_model(
    words: list[bytes],
    sentences: Phrases,
    order: int = 5,
    prune: Sequence[int] = (),
) -> Estimate:
    """Estimate a language model from a corpus.

    Args:
        words: the vocabulary; the first three are `MARKERS`.
        sentences: word ids, all of them 3 or more.  A sentence may be empty.
        order: the length of the longest n-grams, 1 or more.
        prune: n-grams that occur at most this often are pruned; one number per order, the last one for all further
            orders, none smaller than the previous one.

    Raises:
        ValueError: see `pruning_thresholds` and `count_ngrams`; or the first words are not the markers, or
            `sentences` is empty.
    """
    thresholds = pruning_thresholds(prune, order)
    if words[: len(MARKERS)] != MARKERS:
        raise ValueError(f"the first words must be {b' '.join(MARKERS).decode()}")
    if not len(sentences):
        raise ValueError("no sentences")
    counts = count_ngrams(sentences, len(words), order)
    discounts = chosen_discounts(_counts_of_counts(counts.orders))
    model = _estimate(words, counts, thresholds, discounts)
    return Estimate(model, discounts, [len(table) for table in counts.orders])


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
        """Return rows first..last - 1."""
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
    """An `Estimate` with the model on disk."""

    model: DiskModel
    discounts: list[Discounts]
    counted: list[int]


def estimate_on_disk(words: list[bytes], text: DiskText, order: int, prune: Sequence[int] = ()) -> DiskEstimate:
    """Estimate a language model from a corpus on disk, within the memory limit of the text.

    Args:
        words: the vocabulary; the first three are the markers.
        text: the sentences, at least one.
        order, prune: as in `estimate_language_model`.

    Raises:
        PhraseToolError: the disk is full.
        ValueError: see `pruning_thresholds`.
    """
    thresholds = pruning_thresholds(prune, order)
    orders = count_on_disk(text, len(words), order)
    discounts = chosen_discounts(_counts_of_counts_on_disk(orders))
    model = _Smoothing(words, text, thresholds, discounts).model(orders)
    return DiskEstimate(model, discounts, [len(table) for table in orders])


def _counts_of_counts_on_disk(orders: list[DiskNgrams]) -> list[list[int]]:
    histograms = []
    for counts in orders:
        numbers = np.zeros(6, np.int64)
        for piece in counts.adjusted.pieces():
            numbers += np.bincount(np.minimum(piece, 5), minlength=6)
        histograms.append(numbers)
    ends = [
        tuple(
            int(value)
            for column in (ngrams.suffixes, ngrams.adjusted, ngrams.raw)
            for value in column.read(max(size - 1, 0), size)
        )
        for ngrams in orders
        for size in (len(ngrams),)
    ]
    return as_lmplz_counts(histograms, [len(ngrams) for ngrams in orders], ends)


class _Smoothing:
    """Smoothing of counts on disk, order by order."""

    def __init__(self, words: list[bytes], text: DiskText, thresholds: list[int], discounts: list[Discounts]) -> None:
        self._words, self._folder, self._memory = words, text.folder, text.memory
        self._block, self._thresholds, self._discounts = text.block, thresholds, discounts
        self._ids: Int32Array = np.arange(len(words), dtype=np.int32)

    def model(self, orders: list[DiskNgrams]) -> DiskModel:
        """Return the whole model."""
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
        """Yield the start of each block of n-grams, and which of them are not pruned."""
        for first, last in self._blocks(counts):
            mask = counts.raw.read(first, last) > self._thresholds[counts.order - 1]
            if counts.order == 1 and first < len(MARKERS):
                mask[: len(MARKERS) - first] = True
            yield first, mask

    def _off(self, counts: DiskNgrams, adjusted: Int64Array) -> DoubleArray:
        off: DoubleArray = np.array([0.0, *self._discounts[counts.order - 1].amounts])[np.minimum(adjusted, 3)]
        return off

    def _shares(self, counts: DiskNgrams, lower: int) -> tuple[DiskColumn, Partitions]:
        """Return the weights of the `lower` contexts; and by row, each n-gram's discounted share and context weight."""
        size = len(counts)

        def contexts() -> Iterator[Int64Array]:
            return (counts.contexts.read(first, last).astype(np.int64) for first, last in self._blocks(counts))

        parts = parts_for(size, _SHARE_BYTES, self._memory)
        by_context = Partitions(self._folder, _SHARE, sampled_cuts(contexts, size, parts))
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
        """Return the kept n-grams, without back-offs, and the probabilities of all n-grams."""
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
                # Suffixes ascend.
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
