"""Pivot paths from sources through pivot phrases to targets, sums over them, and alignments along them.

A path from a through b to c has the probability p(b|a) p(c|b), and

    p(c|a) = sum over b of p(b|a) p(c|b)        p(a|c) = sum over b of p(a|b) p(b|c)

with lexical weights by the same sums (Utiyama and Isahara, "A Comparison of Pivot Methods for Phrase-based Statistical
Machine Translation", NAACL 2007; Cohn and Lapata, "Machine Translation by Triangulation", ACL 2007; Wu and Wang, "Pivot
Language Approach for Phrase-Based Statistical Machine Translation", ACL 2007).  Scores are averaged over several pivot
languages.  Sums are added in the order of the source-pivot entries, so they are reproducible to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import find_bytes, make_slots
from phrasetool.kernels.jit import exact_kernel, inner_kernel
from phrasetool.kernels.sorting import sort_strings
from phrasetool.phrases import ByteArray, DoubleArray, Int32Array, Int64Array, Mask, prefix_sums
from phrasetool.pivot.batches import SourceBatch
from phrasetool.pivot.tables import (
    DIRECT,
    DIRECT_LEXICAL,
    FIXED_NUMBERS,
    INVERSE,
    INVERSE_LEXICAL,
    JOINT,
    OUTER,
    Ragged,
)

# Columns of the sums of an entry: the four scores, the counts of the pair and of the target, and the probability of the
# best path.
SCORES = 4
PAIR_COUNT, TARGET_COUNT, BEST = 4, 5, 6
FIXED_SUMS = 7
# Optional columns that follow: mean similarities over the paths, weighted by their probabilities, in both directions;
# similarities of the best path; then orientations.
MEAN_SIMILARITIES, BEST_SIMILARITIES = 0, 2
SUM_SIMILARITIES, SUM_ORIENTATIONS = 4, 6
# Initial capacity for the targets of a source.
_ROOM = 64


@dataclass(frozen=True)
class NumberedTargets:
    """Targets of N pivot-target entries.

    Attributes:
        numbers: int32, shape (N,), the number of each entry's target among the D distinct ones, in the order of their
            bytes.
        examples: int64, shape (D,), an entry with each distinct target.
    """

    numbers: Int32Array
    examples: Int64Array


@dataclass(frozen=True)
class PathSums:
    """The E resulting entries, grouped by source, ascending by target.

    Attributes:
        sources: int64, shape (E,), the group of source-pivot entries.
        targets: int64, shape (E,), a pivot-target entry with the same target.
        best: int64, shape (E, 2), the source-pivot and the pivot-target entry of the most probable path, the first of
            equally probable ones.
        sums: float64, shape (E, K), the columns described at `SCORES`.
        path_counts: int64, shape (E,), number of paths.
        pivot_counts: int64, shape (E,), number of pivot languages with a path.
        source_counts: float64, shape (E,), count of the source.
    """

    sources: Int64Array
    targets: Int64Array
    best: Int64Array
    sums: DoubleArray
    path_counts: Int64Array
    pivot_counts: Int64Array
    source_counts: DoubleArray

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class PathRules:
    """Rules for the pivot paths that are summed and the entries that are kept.

    Attributes:
        pivots: number of pivot languages.
        keep: maximum number of entries per source, the most probable ones; 0: unlimited.
        least: probability p(b|a) or p(c|b) below which an entry of a table is not used.
        least_counts: whether the count of a path is that of the less frequent of its two pairs, instead of the expected
            count.
        similarities, orientations: whether the tables have them.
    """

    pivots: int = 1
    keep: int = 0
    least: float = 0.0
    least_counts: bool = False
    similarities: bool = False
    orientations: bool = False

    @property
    def width(self) -> int:
        """Number of columns of `PathSums.sums`."""
        return FIXED_SUMS + SUM_SIMILARITIES * self.similarities + SUM_ORIENTATIONS * self.orientations


@exact_kernel
def _number(text: ByteArray, offsets: Int64Array, slots: Int32Array, numbers: Int32Array, firsts: Int64Array) -> int:
    """Number distinct targets by first appearance: set `numbers`, and `firsts[d]` to the first row with target d."""
    distinct = 0
    for i in range(len(numbers)):
        slot = find_bytes(text, offsets[i], offsets[i + 1], text, offsets, slots)
        if slots[slot] < 0:
            slots[slot] = i
            firsts[distinct] = i
            numbers[i] = distinct
            distinct += 1
        else:
            numbers[i] = numbers[slots[slot]]
    return distinct


def number_targets(targets: Ragged) -> NumberedTargets:
    """Number the distinct targets of pivot-target entries in the order of their bytes."""
    numbers, firsts = np.empty(len(targets), np.int32), np.empty(len(targets), np.int64)
    count = _number(targets.items, targets.offsets, make_slots(len(targets)), numbers, firsts)
    firsts = firsts[:count].copy()
    starts = targets.offsets[firsts]
    # All targets end with the same bytes, so none is a prefix of another, and no comparison reads beyond its end.
    order = starts.copy()
    longest = int(np.diff(targets.offsets).max(initial=0))
    sort_strings(targets.items, 1, order, 0, count, 0, longest + 1, False)
    by_start = np.argsort(starts)
    appeared = by_start[np.searchsorted(starts[by_start], order)]
    rank = np.empty(count, np.int32)
    rank[appeared] = np.arange(count, dtype=np.int32)
    return NumberedTargets(rank[numbers], firsts[appeared])


@exact_kernel
def _doubled(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the rows in an array of twice the capacity."""
    return np.concatenate((values, np.empty_like(values)))


@inner_kernel
def _add_path(row: DoubleArray, first: DoubleArray, second: DoubleArray, weight: float, least_counts: bool) -> None:
    """Add the scores and the count of a path."""
    row[0] += first[INVERSE] * second[INVERSE]
    row[1] += first[INVERSE_LEXICAL] * second[INVERSE_LEXICAL]
    row[2] += weight
    row[3] += first[DIRECT_LEXICAL] * second[DIRECT_LEXICAL]
    first_count, second_count = first[JOINT], second[JOINT]
    if not least_counts:
        first_count, second_count = first_count * second[DIRECT], first[INVERSE] * second_count
    # An unknown count (NaN) makes the sum unknown.
    row[PAIR_COUNT] += (
        first_count if first_count <= second_count else (second_count if second_count < first_count else np.nan)
    )


@inner_kernel
def _add_similarities(row: DoubleArray, first: DoubleArray, second: DoubleArray, weight: float, better: bool) -> None:
    """Add the similarities of a path, the products of those of its entries; store them if the path is the best."""
    for k in range(2):
        alike = first[FIXED_NUMBERS + k] * second[FIXED_NUMBERS + k]
        row[FIXED_SUMS + MEAN_SIMILARITIES + k] += weight * alike
        if better:
            row[FIXED_SUMS + BEST_SIMILARITIES + k] = alike


@exact_kernel
def _add_orientations(sums: DoubleArray, weight: float, first: DoubleArray, second: DoubleArray, at: int) -> None:
    """Add the orientations of a path, composed of those of its two entries as if these were independent.

    If c is monotone with respect to its neighbour in the pivot language, the path has the orientation of b in the
    source-pivot entry.  If c is swapped, the neighbour is on the opposite side of b: monotone of b towards that side
    is swap of the path, and swap is monotone.  Everything else is other.
    """
    for direction in range(2):
        here, opposite = at + 3 * direction, at + 3 - 3 * direction
        monotone, swap = second[here], second[here + 1]
        same = monotone * first[here] + swap * first[opposite + 1]
        turned = monotone * first[here + 1] + swap * first[opposite]
        column = 3 * direction
        sums[column] += weight * same
        sums[column + 1] += weight * turned
        sums[column + 2] += weight * max(0.0, 1.0 - same - turned)


@exact_kernel
def _best_of(values: DoubleArray, numbers: Int32Array, keep: int) -> Int64Array:
    """Return the indices of the `keep` largest values, ascending by number; ties go to the smaller number."""
    count = len(values)
    if keep == 0 or count <= keep:
        return np.argsort(numbers)
    border = np.partition(values, count - keep)[count - keep]
    above = 0
    for k in range(count):
        above += values[k] > border
    chosen = np.empty(keep, np.int64)
    ranks = np.empty(keep, np.int32)
    filled, equal = 0, keep - above
    for k in np.argsort(numbers):
        if values[k] > border or (values[k] == border and equal > 0):
            equal -= values[k] == border
            chosen[filled] = k
            ranks[filled] = numbers[k]
            filled += 1
    return chosen[np.argsort(ranks)]


@exact_kernel
def _sum_paths(
    groups: Int64Array,
    first_group: int,
    last_group: int,
    second_rows: Int64Array,
    pivot_numbers: Int32Array,
    first: DoubleArray,
    second: DoubleArray,
    numbers: Int32Array,
    where: Int32Array,
    rules: tuple[int, float, bool, bool, bool],
    out_sources: Int64Array,
    out_numbers: Int32Array,
    out_best: Int64Array,
    out_sums: DoubleArray,
    out_counts: Int64Array,
    out_source_counts: DoubleArray,
) -> int:
    """Write the entries of a range of sources and return their number.

    `where` is scratch space: -1 for every target number, both before and after.
    """
    keep, least, least_counts, with_similarities, with_orientations = rules
    orient = FIXED_SUMS + (SUM_SIMILARITIES if with_similarities else 0)
    orient_in = FIXED_NUMBERS + (2 if with_similarities else 0)
    sums, best = np.empty((_ROOM, out_sums.shape[1])), np.empty((_ROOM, 2), np.int64)
    counts, added = np.empty((_ROOM, 3), np.int64), np.empty(_ROOM, np.int32)
    written = 0
    for group in range(first_group, last_group):
        size = 0
        # The count of the source in earlier pivot languages, and in this one.
        source_count = last_source_count = 0.0
        before = -1
        for a in range(groups[group], groups[group + 1]):
            pivot = pivot_numbers[a]
            if pivot != before:
                source_count += last_source_count
                last_source_count = first[a, OUTER]
                before = pivot
            elif np.isnan(last_source_count):
                last_source_count = first[a, OUTER]
            if first[a, DIRECT] < least:
                continue
            for b in range(second_rows[a, 0], second_rows[a, 1]):
                weight = first[a, DIRECT] * second[b, DIRECT]
                if second[b, DIRECT] < least or not weight > 0.0:
                    continue
                slot = where[numbers[b]]
                if slot < 0:
                    if size == len(added):
                        sums, best, counts, added = _doubled(sums), _doubled(best), _doubled(counts), _doubled(added)
                    slot = size
                    where[numbers[b]] = slot
                    added[slot] = numbers[b]
                    sums[slot] = 0.0
                    counts[slot, 0] = counts[slot, 1] = 0
                    counts[slot, 2] = -1
                    size += 1
                row = sums[slot]
                _add_path(row, first[a], second[b], weight, least_counts)
                counts[slot, 0] += 1
                if counts[slot, 2] != pivot:
                    counts[slot, 2] = pivot
                    counts[slot, 1] += 1
                    row[TARGET_COUNT] += second[b, OUTER]
                better = weight > row[BEST]
                if better:
                    row[BEST] = weight
                    best[slot, 0], best[slot, 1] = a, b
                if with_similarities:
                    _add_similarities(row, first[a], second[b], weight, better)
                if with_orientations:
                    _add_orientations(row[orient:], weight, first[a], second[b], orient_in)
        source_count += last_source_count
        for k in range(size):
            where[added[k]] = -1
        if size == 0:
            continue
        for k in _best_of(np.ascontiguousarray(sums[:size, 2]), added[:size], keep):
            out_sources[written] = group
            out_numbers[written] = added[k]
            out_best[written] = best[k]
            out_sums[written] = sums[k]
            out_counts[written, 0], out_counts[written, 1] = counts[k, 0], counts[k, 1]
            out_source_counts[written] = source_count
            written += 1
    return written


def sum_paths(batch: SourceBatch, targets: NumberedTargets, first: int, last: int, rules: PathRules) -> PathSums:
    """Return the entries of the sources in [first, last) of a batch.

    The count of a source or target is the sum over the pivot languages that have it; that of a source in one of them is
    the first known count of its entries.  Unless `rules.least_counts` is set, the count of a pair is an expected count:
    the sum over paths of the smaller of c(a,b) p(c|b) and p(a|b) c(b,c), which never exceeds the counts of its source
    and target.

    Args:
        batch: sources and their pivot paths.
        targets: targets of the batch's pivot-target entries.
        first, last: range of sources.
        rules: rules for paths and entries.
    """
    source, second = batch.first, batch.second
    if source.numbers.dtype != np.float64 or second.numbers.shape[1] != source.numbers.shape[1]:
        raise ValueError("expected tables with the same numbers")
    rows = slice(int(source.groups[first]), int(source.groups[last]))
    reach = prefix_sums(batch.second_rows[rows, 1] - batch.second_rows[rows, 0])
    most = np.diff(reach[source.groups[first : last + 1] - source.groups[first]])
    most = np.minimum(most, len(targets.examples))
    room = int((np.minimum(most, rules.keep) if rules.keep else most).sum())
    sources, numbers, best = np.empty(room, np.int64), np.empty(room, np.int32), np.empty((room, 2), np.int64)
    sums, counts, of_source = np.empty((room, rules.width)), np.empty((room, 2), np.int64), np.empty(room)
    size = _sum_paths(
        source.groups, first, last, np.ascontiguousarray(batch.second_rows), batch.pivot_numbers,
        np.ascontiguousarray(source.numbers), np.ascontiguousarray(second.numbers), targets.numbers,
        np.full(len(targets.examples), -1, np.int32),
        (rules.keep, rules.least, rules.least_counts, rules.similarities, rules.orientations),
        sources, numbers, best, sums, counts, of_source,
    )  # fmt: skip
    _normalise(sums[:size], rules)
    return PathSums(
        sources[:size], targets.examples[numbers[:size]], best[:size], sums[:size], counts[:size, 0], counts[:size, 1],
        of_source[:size],
    )  # fmt: skip


def _normalise(sums: DoubleArray, rules: PathRules) -> None:
    """Turn sums into means: scores over the pivot languages, similarities and orientations over the paths."""
    weights = sums[:, DIRECT].copy()
    at = FIXED_SUMS
    if rules.similarities:
        sums[:, at : at + 2] /= weights[:, None]
        at += SUM_SIMILARITIES
    if rules.orientations:
        sums[:, at : at + SUM_ORIENTATIONS] /= weights[:, None]
    sums[:, :SCORES] /= rules.pivots


def cut_by_paths(batch: SourceBatch, most: int) -> list[tuple[int, int]]:
    """Cut the sources of a batch into ranges of at most `most` paths, or a single source, for parallel threads."""
    totals = prefix_sums(batch.second_rows[:, 1] - batch.second_rows[:, 0])
    at_source = totals[batch.first.groups]
    sources = len(at_source) - 1
    cuts = [0]
    while cuts[-1] < sources:
        next_cut = int(np.searchsorted(at_source, at_source[cuts[-1]] + most, "right")) - 1
        cuts.append(min(max(next_cut, cuts[-1] + 1), sources))
    return list(pairwise(cuts))


@exact_kernel
def _compose(
    first_items: Int32Array,
    first_offsets: Int64Array,
    second_items: Int32Array,
    second_offsets: Int64Array,
    best: Int64Array,
    items: Int32Array,
    offsets: Int64Array,
) -> int:
    """Write the alignment points of all best paths and return their number."""
    count = 0
    offsets[0] = 0
    for entry in range(len(best)):
        start = count
        for p in range(first_offsets[best[entry, 0]], first_offsets[best[entry, 0] + 1]):
            for q in range(second_offsets[best[entry, 1]], second_offsets[best[entry, 1] + 1]):
                if first_items[p] & 0xFFFF != second_items[q] >> 16:
                    continue
                # Points are sorted by target position, then by source position.
                point = (second_items[q] & 0xFFFF) << 16 | first_items[p] >> 16
                k = count
                while k > start and items[k - 1] > point:
                    k -= 1
                if k > start and items[k - 1] == point:
                    continue
                for moved in range(count, k, -1):
                    items[moved] = items[moved - 1]
                items[k] = point
                count += 1
        offsets[entry + 1] = count
    return count


def compose_alignments(batch: SourceBatch, best: Int64Array) -> Ragged:
    """Return the alignment points of best paths: source and target words that are aligned with the same pivot word.

    Args:
        batch: the batch with the alignment points of both tables.
        best: int64, shape (E, 2), see `PathSums`.

    Returns:
        The points of each entry, target position << 16 | source position, in ascending order.
    """
    first, second = batch.first.points, batch.second.points
    room = (np.diff(first.offsets)[best[:, 0]] * np.diff(second.offsets)[best[:, 1]]).sum()
    items, offsets = np.empty(int(room), np.int32), np.empty(len(best) + 1, np.int64)
    count = _compose(
        first.items.astype(np.int32, copy=False), first.offsets, second.items.astype(np.int32, copy=False),
        second.offsets, np.ascontiguousarray(best), items, offsets,
    )  # fmt: skip
    return Ragged(items[:count], offsets)


def empty_alignments(points: Ragged) -> int:
    """Return the number of entries without alignment points."""
    none: Mask = np.diff(points.offsets) == 0
    return int(np.count_nonzero(none))
