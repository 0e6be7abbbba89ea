"""All paths from sources over pivot phrases to targets, the sums over them, and the alignments along them.

A path from a through b to c has the probability p(b|a) p(c|b), and

    p(c|a) = sum over b of p(b|a) p(c|b)        p(a|c) = sum over b of p(a|b) p(b|c)

with lexical weights by the same sums (Utiyama and Isahara, "A Comparison of Pivot Methods for Phrase-based Statistical
Machine Translation", NAACL 2007; Cohn and Lapata, "Machine Translation by Triangulation", ACL 2007; Wu and Wang, "Pivot
Language Approach for Phrase-Based Statistical Machine Translation", ACL 2007).  Over several pivot languages these are
means.  Sums are taken in the order of the first leg's entries, so nothing changes their last bit.
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
from phrasetool.pivot.legs import DIRECT, DIRECT_LEXICAL, FIXED_NUMBERS, INVERSE, INVERSE_LEXICAL, JOINT, OUTER, Ragged

# Columns of the sums of an entry: the four scores, how often pair and target were seen, the probability of the best
# way.
SCORES = 4
PAIR_COUNT, TARGET_COUNT, BEST = 4, 5, 6
FIXED_SUMS = 7
# Behind them, where there are some: mean similarities over the ways, weighted by their probabilities, both directions,
# and those of the best way; then orientations.
MEAN_SIMILARITIES, BEST_SIMILARITIES = 0, 2
SUM_SIMILARITIES, SUM_ORIENTATIONS = 4, 6
# Targets of a source that there is room for at first.
_ROOM = 64


@dataclass(frozen=True)
class NumberedTargets:
    """The targets of N entries of second legs.

    Attributes:
        numbers: int32, shape (N,), which of the D distinct targets each has; these are numbered in the order of their
            bytes.
        examples: int64, shape (D,), an entry with each.
    """

    numbers: Int32Array
    examples: Int64Array


@dataclass(frozen=True)
class PathSums:
    """Entries that were made, those of a source together, ascending by target.

    Attributes:
        sources: int64, shape (E,), the group of the first leg.
        targets: int64, shape (E,), an entry of the second leg with its target.
        best: int64, shape (E, 2), the entries of the first and the second leg that the best way takes; of equal ones
            the first.
        sums: float64, shape (E, K), see above.
        ways: int64, shape (E,), how many there are.
        middles: int64, shape (E,), how many middle languages have some.
        source_counts: float64, shape (E,), how often the source was seen.
    """

    sources: Int64Array
    targets: Int64Array
    best: Int64Array
    sums: DoubleArray
    ways: Int64Array
    middles: Int64Array
    source_counts: DoubleArray

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class PathRules:
    """Rules for the pivot paths that are summed and the entries that are kept.

    Attributes:
        middles: how many middle languages there are.
        keep: entries that a source may have, the most probable ones; 0: any number.
        least: probability p(b|a) or p(c|b) below which an entry of a leg is not used.
        least_counts: whether a way was seen as often as the less frequent of its two pairs, instead of as often as can
            be expected.
        similarities, orientations: whether legs have them.
    """

    middles: int = 1
    keep: int = 0
    least: float = 0.0
    least_counts: bool = False
    similarities: bool = False
    orientations: bool = False

    @property
    def width(self) -> int:
        """Columns of sums."""
        return FIXED_SUMS + SUM_SIMILARITIES * self.similarities + SUM_ORIENTATIONS * self.orientations


@exact_kernel
def _number(text: ByteArray, offsets: Int64Array, slots: Int32Array, numbers: Int32Array, firsts: Int64Array) -> int:
    """numbers[i] = which distinct target i is, in order of appearance; firsts[d] = where d appears first."""
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
    """Number the distinct targets of second legs by their bytes."""
    numbers, firsts = np.empty(len(targets), np.int32), np.empty(len(targets), np.int64)
    count = _number(targets.items, targets.offsets, make_slots(len(targets)), numbers, firsts)
    firsts = firsts[:count].copy()
    starts = targets.offsets[firsts]
    # No target begins another one, as the same bytes end all: none is looked at beyond its end.
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
    """The same rows, with room for as many more."""
    return np.concatenate((values, np.empty_like(values)))


@inner_kernel
def _add_path(row: DoubleArray, first: DoubleArray, second: DoubleArray, weight: float, least_counts: bool) -> None:
    """Add the scores of a way, and how often it was seen."""
    row[0] += first[INVERSE] * second[INVERSE]
    row[1] += first[INVERSE_LEXICAL] * second[INVERSE_LEXICAL]
    row[2] += weight
    row[3] += first[DIRECT_LEXICAL] * second[DIRECT_LEXICAL]
    one, other = first[JOINT], second[JOINT]
    if not least_counts:
        one, other = one * second[DIRECT], first[INVERSE] * other
    # A count that is not known makes the sum unknown.
    row[PAIR_COUNT] += one if one <= other else (other if other < one else np.nan)


@inner_kernel
def _add_similarities(row: DoubleArray, first: DoubleArray, second: DoubleArray, weight: float, better: bool) -> None:
    """Add the similarities of a way: the products of those of its legs; and take them, if none was better."""
    for k in range(2):
        alike = first[FIXED_NUMBERS + k] * second[FIXED_NUMBERS + k]
        row[FIXED_SUMS + MEAN_SIMILARITIES + k] += weight * alike
        if better:
            row[FIXED_SUMS + BEST_SIMILARITIES + k] = alike


@exact_kernel
def _add_orientations(sums: DoubleArray, weight: float, first: DoubleArray, second: DoubleArray, at: int) -> None:
    """Add the orientations of a way, composed of those of its legs as if these were independent.

    Where c follows its neighbour in the middle language (monotone), the way is oriented as b is in the first leg. Where
    it precedes it (swap), the neighbour is b's neighbour on the other side: b monotone towards that is a swap here, and
    the other way round.  All else is other.
    """
    for way in range(2):
        here, there = at + 3 * way, at + 3 - 3 * way
        monotone, swap = second[here], second[here + 1]
        same = monotone * first[here] + swap * first[there + 1]
        turned = monotone * first[here + 1] + swap * first[there]
        place = 3 * way
        sums[place] += weight * same
        sums[place + 1] += weight * turned
        sums[place + 2] += weight * max(0.0, 1.0 - same - turned)


@exact_kernel
def _best_of(values: DoubleArray, numbers: Int32Array, keep: int) -> Int64Array:
    """The places of the `keep` largest values, of equal ones those of smaller numbers; ascending by number."""
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
    ways: Int64Array,
    of_middle: Int32Array,
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
    """Write the entries of some sources; return how many.  where[d] = -1 before and after, of all targets d."""
    keep, least, least_counts, with_similarities, with_orientations = rules
    orient = FIXED_SUMS + (SUM_SIMILARITIES if with_similarities else 0)
    orient_in = FIXED_NUMBERS + (2 if with_similarities else 0)
    sums, best = np.empty((_ROOM, out_sums.shape[1])), np.empty((_ROOM, 2), np.int64)
    counts, seen = np.empty((_ROOM, 3), np.int64), np.empty(_ROOM, np.int32)
    written = 0
    for group in range(first_group, last_group):
        size = 0
        source_count = 0.0
        before = -1
        for a in range(groups[group], groups[group + 1]):
            middle = of_middle[a]
            if middle != before:
                source_count += first[a, OUTER]
                before = middle
            if first[a, DIRECT] < least:
                continue
            for b in range(ways[a, 0], ways[a, 1]):
                weight = first[a, DIRECT] * second[b, DIRECT]
                if second[b, DIRECT] < least or not weight > 0.0:
                    continue
                place = where[numbers[b]]
                if place < 0:
                    if size == len(seen):
                        sums, best, counts, seen = _doubled(sums), _doubled(best), _doubled(counts), _doubled(seen)
                    place = size
                    where[numbers[b]] = place
                    seen[place] = numbers[b]
                    sums[place] = 0.0
                    counts[place, 0] = counts[place, 1] = 0
                    counts[place, 2] = -1
                    size += 1
                row = sums[place]
                _add_path(row, first[a], second[b], weight, least_counts)
                counts[place, 0] += 1
                if counts[place, 2] != middle:
                    counts[place, 2] = middle
                    counts[place, 1] += 1
                    row[TARGET_COUNT] += second[b, OUTER]
                better = weight > row[BEST]
                if better:
                    row[BEST] = weight
                    best[place, 0], best[place, 1] = a, b
                if with_similarities:
                    _add_similarities(row, first[a], second[b], weight, better)
                if with_orientations:
                    _add_orientations(row[orient:], weight, first[a], second[b], orient_in)
        for k in range(size):
            where[seen[k]] = -1
        if size == 0:
            continue
        for k in _best_of(np.ascontiguousarray(sums[:size, 2]), seen[:size], keep):
            out_sources[written] = group
            out_numbers[written] = seen[k]
            out_best[written] = best[k]
            out_sums[written] = sums[k]
            out_counts[written, 0], out_counts[written, 1] = counts[k, 0], counts[k, 1]
            out_source_counts[written] = source_count
            written += 1
    return written


def sum_paths(batch: SourceBatch, targets: NumberedTargets, first: int, last: int, rules: PathRules) -> PathSums:
    """The entries of the sources first..last - 1 of a batch.

    Counts of a source or target are the sums over the middle languages that have it.  The count of a pair is what can
    be expected: of each way, the smaller of c(a,b) p(c|b) and p(a|b) c(b,c).  It is never above the other two.

    Args:
        batch: sources and their ways.
        targets: of its second legs.
        first, last: which sources.
        rules: what is summed.
    """
    source, second = batch.first, batch.second
    if source.numbers.dtype != np.float64 or second.numbers.shape[1] != source.numbers.shape[1]:
        raise ValueError("expected legs with the same numbers")
    rows = slice(int(source.groups[first]), int(source.groups[last]))
    reach = prefix_sums(batch.ways[rows, 1] - batch.ways[rows, 0])
    most = np.diff(reach[source.groups[first : last + 1] - source.groups[first]])
    most = np.minimum(most, len(targets.examples))
    room = int((np.minimum(most, rules.keep) if rules.keep else most).sum())
    sources, numbers, best = np.empty(room, np.int64), np.empty(room, np.int32), np.empty((room, 2), np.int64)
    sums, counts, of_source = np.empty((room, rules.width)), np.empty((room, 2), np.int64), np.empty(room)
    size = _sum_paths(
        source.groups, first, last, np.ascontiguousarray(batch.ways), batch.middles,
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
    """Make means of sums: of scores over the middle languages, of all else over the ways."""
    weights = sums[:, DIRECT].copy()
    at = FIXED_SUMS
    if rules.similarities:
        sums[:, at : at + 2] /= weights[:, None]
        at += SUM_SIMILARITIES
    if rules.orientations:
        sums[:, at : at + SUM_ORIENTATIONS] /= weights[:, None]
    sums[:, :SCORES] /= rules.middles


def cut_by_paths(batch: SourceBatch, most: int) -> list[tuple[int, int]]:
    """Ranges of the sources of a batch, of some `most` ways, for a thread each."""
    totals = prefix_sums(batch.ways[:, 1] - batch.ways[:, 0])
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
    """The points of all best ways; return how many."""
    count = 0
    offsets[0] = 0
    for entry in range(len(best)):
        start = count
        for p in range(first_offsets[best[entry, 0]], first_offsets[best[entry, 0] + 1]):
            for q in range(second_offsets[best[entry, 1]], second_offsets[best[entry, 1] + 1]):
                if first_items[p] & 0xFFFF != second_items[q] >> 16:
                    continue
                # Target first, which is how they ascend.
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
    """The alignment points of best ways: a source word and a target word that are aligned with one middle word.

    Args:
        batch: with the legs' points.
        best: int64, shape (E, 2), see `WaySums`.

    Returns:
        Of each entry its points, ascending by target position, target position << 16 | source position.
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
    """How many entries have no point."""
    none: Mask = np.diff(points.offsets) == 0
    return int(np.count_nonzero(none))
