"""Hypotheses, their coverage, the stacks they are kept in, and the steps that all searches share.

A hypothesis is a record in one growing array, the pool.  Its coverage is the position of the first gap and 64 bits for
the words from there on, bit 0 being the gap.  Sentences may therefore have any length, but a phrase must end less than
64 words after the first gap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import mix
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array
from phrasetool.smt.decoder.features import orientation_of

NONE = -1
# Every phrase must end less than this many words after the first gap, whatever the distortion limit.
WINDOW = 64

HYPOTHESIS = np.dtype(
    [
        ("score", np.float64),  # of the derivation so far
        ("total", np.float64),  # with the future cost estimate
        ("mask", np.uint64),  # coverage from the gap on
        ("gap", np.int32),  # first uncovered source word
        ("language_state", np.int32),
        ("state_span", np.int64),  # part of the last phrase's source span that recombination compares, see `state_span`
        ("start", np.int32),  # last phrase's source span
        ("end", np.int32),
        ("option", np.int32),  # last phrase
        ("back", np.int32),  # the hypothesis it extends
        ("arcs", np.int32),  # the next hypothesis recombined into the same one
        ("forward_class", np.int32),
    ],
    align=True,
)

# Part of the last phrases' source spans that Moses compares before it recombines two hypotheses: nothing without
# distortion and lexicalised reordering, the end with distortion, and the whole span with lexicalised reordering.
NO_SPAN, SPAN_END, WHOLE_SPAN = range(3)
_ONE = np.uint64(1)
# Length of runs that are sorted by insertion.
_SHORT_RUN = 8
# A stack is listed by age if its range of pool records is shorter than this many times its number of hypotheses.
_FEW_BETWEEN = 8


def longest_jump(distortion_limit: int) -> int:
    """Return the words a jump may span under a distortion limit, at most WINDOW - 1; negative means no other limit."""
    return distortion_limit if 0 <= distortion_limit < WINDOW else WINDOW - 1


class Stacks(NamedTuple):
    """One stack per number of covered words, 0..n; each is a hash table, so that equal hypotheses recombine.

    Attributes:
        slots: int32, shape (n + 1, P).
        sizes: int64, shape (n + 1,).
        thresholds: float64, shape (n + 1,): hypotheses with a lower total are rejected.
        best: float64, shape (n + 1,): the highest total.
        size: int64, shape (1,): hypotheses a stack keeps.
        beam: float64, shape (1,): the lowest total allowed, relative to the best; a negative logarithm.
        keeps_ties: bool, shape (1,): whether a pruned stack also keeps all hypotheses that are as good as the worst one
            it keeps, and rejects worse ones from then on, as in Moses' cube pruning.
    """

    slots: Int32Array
    sizes: Int64Array
    thresholds: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]
    size: Int64Array
    beam: npt.NDArray[np.float64]
    keeps_ties: npt.NDArray[np.bool_]


def make_stacks(words: int, size: int, beam: float, keeps_ties: bool = False) -> Stacks:
    """Return empty stacks for a sentence of `words` words."""
    return Stacks(
        np.full((words + 1, 1 << (4 * size).bit_length()), NONE, np.int32),
        np.zeros(words + 1, np.int64),
        np.full(words + 1, -np.inf),
        np.full(words + 1, -np.inf),
        np.array([size]),
        np.array([beam]),
        np.array([keeps_ties]),
    )


@exact_kernel
def is_covered(gap: int, mask: int, position: int) -> bool:
    """Return whether a source word is covered; positions after the window are not."""
    distance = position - gap
    if distance < 0:
        return True
    return distance < WINDOW and (mask >> np.uint64(distance)) & _ONE != 0


@exact_kernel
def cover(gap: int, mask: int, start: int, end: int) -> tuple[int, int]:
    """Return the coverage, gap and mask, after start..end (inclusive, uncovered so far) is translated."""
    for position in range(start, end + 1):
        mask |= _ONE << np.uint64(position - gap)
    while mask & _ONE:
        mask >>= _ONE
        gap += 1
    return gap, mask


@inner_kernel
def state_span(kind: int, start: int, end: int) -> int:
    """Return the part of a source span that recombination compares, as one number.

    Args:
        kind: NO_SPAN, SPAN_END or WHOLE_SPAN.
    """
    if kind == WHOLE_SPAN:
        return np.int64(start) << 32 | np.int64(end)
    return np.int64(end) if kind == SPAN_END else np.int64(NONE)


@inner_kernel
def _place(slots: Int32Array, stack: int, pool: npt.NDArray[np.void], number: int) -> int:
    """Return the slot of the hypothesis with which `number` recombines, or the free slot for it."""
    h = pool[number]
    key = mix(mix(mix(h.mask, h.gap), h.language_state), h.state_span)
    last = slots.shape[1] - 1
    slot = np.int64(mix(key, h.forward_class) & np.uint64(last))
    while True:
        occupant = slots[stack, slot]
        if occupant < 0:
            break
        occupying = pool[occupant]
        if (
            occupying.mask == h.mask
            and occupying.gap == h.gap
            and occupying.language_state == h.language_state
            and occupying.state_span == h.state_span
            and occupying.forward_class == h.forward_class
        ):
            break
        slot = (slot + 1) & last
    return slot


@borrowing_kernel
def merge_sort(numbers: Int32Array, totals: DoubleArray, other: Int32Array, other_totals: DoubleArray) -> None:
    """Sort hypotheses, best total first, the older first on a tie.

    Args:
        numbers, totals: shape (N,), both sorted in place.
        other, other_totals: shape (N,) at least, overwritten.
    """
    count = len(numbers)
    # Sort short runs by insertion, then merge pairs of runs from one pair of arrays into the other, alternately.
    for low in range(0, count, _SHORT_RUN):
        for i in range(low + 1, min(low + _SHORT_RUN, count)):
            number, total = numbers[i], totals[i]
            position = i
            while position > low and (
                totals[position - 1] < total or (totals[position - 1] == total and numbers[position - 1] > number)
            ):
                numbers[position], totals[position] = numbers[position - 1], totals[position - 1]
                position -= 1
            numbers[position], totals[position] = number, total
    width = _SHORT_RUN
    is_in_other = False
    while width < count:
        if is_in_other:
            _merge_runs(other, other_totals, numbers, totals, count, width)
        else:
            _merge_runs(numbers, totals, other, other_totals, count, width)
        is_in_other = not is_in_other
        width *= 2
    if is_in_other:
        for i in range(count):
            numbers[i], totals[i] = other[i], other_totals[i]


@borrowing_kernel
def _merge_runs(
    numbers: Int32Array, totals: DoubleArray, other: Int32Array, other_totals: DoubleArray, count: int, width: int
) -> None:
    """Merge pairs of neighbouring sorted runs of length `width` into `other` and `other_totals`."""
    for low in range(0, count, 2 * width):
        middle, high = min(low + width, count), min(low + 2 * width, count)
        a, b = low, middle
        for position in range(low, high):
            if b == high or (
                a < middle and (totals[a] > totals[b] or (totals[a] == totals[b] and numbers[a] < numbers[b]))
            ):
                other[position], other_totals[position] = numbers[a], totals[a]
                a += 1
            else:
                other[position], other_totals[position] = numbers[b], totals[b]
                b += 1


@borrowing_kernel
def _number_range(slots: Int32Array) -> tuple[int, int]:
    """Return the lowest and the highest number in some slots; (2**31, -1) if all are free."""
    lowest, highest = np.int64(1 << 31), np.int64(NONE)
    for number in slots:
        if number >= 0:
            lowest, highest = min(lowest, np.int64(number)), max(highest, np.int64(number))
    return lowest, highest


@borrowing_kernel
def _list_by_age(slots: Int32Array, first: int, numbers: Int32Array, present: npt.NDArray[np.bool_]) -> None:
    """Write the numbers in some slots, none below `first`, in ascending order."""
    for number in slots:
        if number >= 0:
            present[number - first] = True
    count = np.int64(0)
    for offset in range(len(present)):
        if present[offset]:
            numbers[count] = first + offset
            count += 1


@borrowing_kernel
def _list_slots(slots: Int32Array, numbers: Int32Array) -> None:
    """Write the numbers in some slots."""
    count = np.int64(0)
    for number in slots:
        if number >= 0:
            numbers[count] = number
            count += 1


@borrowing_kernel
def _take_above(numbers: Int32Array, totals: DoubleArray, pool: npt.NDArray[np.void], lowest: float) -> int:
    """Keep hypotheses with totals above `lowest` (all for -inf), in order; write totals, and return their number."""
    count = np.int64(0)
    for number in numbers:
        total = pool[number].total
        if total > lowest or lowest == -np.inf:
            numbers[count], totals[count] = number, total
            count += 1
    return count


@exact_kernel
def sorted_stack(stacks: Stacks, pool: npt.NDArray[np.void], stack: int) -> Int32Array:
    """Return the hypotheses that a stack keeps, best first (the older first on a tie).

    As in Moses, a stack of more than `size` hypotheses keeps the best `size` of those above the beam; a smaller one
    keeps all, even those that have fallen below the beam since they were added.
    """
    slots, size = stacks.slots[stack], stacks.size[0]
    numbers, totals = np.empty(stacks.sizes[stack], np.int32), np.empty(stacks.sizes[stack], np.float64)
    oldest, youngest = _number_range(slots)
    if 0 <= youngest - oldest < _FEW_BETWEEN * len(numbers):
        # Cube pruning adds the most promising hypotheses first: they are nearly sorted already.
        _list_by_age(slots, oldest, numbers, np.zeros(youngest - oldest + 1, np.bool_))
    else:
        _list_slots(slots, numbers)
    lowest = stacks.best[stack] + stacks.beam[0] if len(numbers) > size else -np.inf
    count = _take_above(numbers, totals, pool, lowest)
    numbers, totals = numbers[:count], totals[:count]
    merge_sort(numbers, totals, np.empty(count, np.int32), np.empty(count, np.float64))
    if count <= size:
        return numbers
    end = size
    if stacks.keeps_ties[0]:
        # A stack is pruned again when it reaches twice the size.
        while end < min(count, 2 * size - 1) and totals[end] == totals[size - 1]:
            end += 1
    return numbers[:end]


@exact_kernel
def _prune(stacks: Stacks, pool: npt.NDArray[np.void], stack: int) -> None:
    """Keep the best `size` hypotheses of a stack, which rejects hypotheses below the worst of them from then on."""
    kept = sorted_stack(stacks, pool, stack)
    stacks.slots[stack, :] = NONE
    stacks.sizes[stack] = len(kept)
    for number in kept:
        stacks.slots[stack, _place(stacks.slots, stack, pool, number)] = number
    if len(kept) > 0 and (len(kept) >= stacks.size[0] or stacks.keeps_ties[0]):
        stacks.thresholds[stack] = max(stacks.thresholds[stack], pool[kept[len(kept) - 1]].total)


@inner_kernel
def add(stacks: Stacks, pool: npt.NDArray[np.void], used: int, stack: int, keep_arcs: bool) -> int:
    """Add the hypothesis pool[used] to a stack unless it is rejected; return the number of pool records used then.

    Hypotheses that are equal in everything that their future depends on recombine.  With `keep_arcs`, the worse one is
    kept in the pool, in the other's list of arcs, for n-best lists.  Without it, the last stack keeps only the best.
    """
    total = pool[used].total
    if total < stacks.thresholds[stack]:
        return used
    only_best = not keep_arcs and stack == len(stacks.sizes) - 1
    slot = np.int64(0)
    if not only_best:
        slot = _place(stacks.slots, stack, pool, used)
    old = stacks.slots[stack, slot]
    pool[used].arcs = NONE
    if old >= 0 and pool[old].total >= total:
        if not keep_arcs:
            return used
        pool[used].arcs = pool[old].arcs
        pool[old].arcs = used
        return used + 1
    if old < 0:
        stacks.sizes[stack] += 1
        stacks.slots[stack, slot] = used
    elif keep_arcs:
        pool[used].arcs = old
        stacks.slots[stack, slot] = used
    else:
        # Nothing refers to the old one: its stack has not been expanded yet.
        pool[old] = pool[used]
        used -= 1
    if total > stacks.best[stack]:
        stacks.best[stack] = total
        stacks.thresholds[stack] = max(stacks.thresholds[stack], total if only_best else total + stacks.beam[0])
    if stacks.sizes[stack] >= 2 * stacks.size[0]:
        _prune(stacks, pool, stack)
    return used + 1


@exact_kernel
def best_complete(stacks: Stacks, pool: npt.NDArray[np.void], keep_arcs: bool) -> int:
    """Return the best hypothesis of the last stack, or -1 if the stack is empty.

    With `keep_arcs`, the other hypotheses of the stack and their arcs are appended to its list of arcs: the state at
    the end of a derivation no longer matters, so derivations of an n-best list may end with any of them.
    """
    kept = sorted_stack(stacks, pool, len(stacks.sizes) - 1)
    if len(kept) == 0:
        return np.int64(NONE)
    if keep_arcs:
        last = kept[0]
        for number in kept[1:]:
            while pool[last].arcs >= 0:
                last = pool[last].arcs
            pool[last].arcs = number
    return np.int64(kept[0])


@exact_kernel
def with_room(array: npt.NDArray[Any], used: int, needed: int) -> npt.NDArray[Any]:
    """Return the array, or a copy at least twice as large if it lacks room for `needed` more elements (or rows)."""
    if used + needed <= len(array):
        return array
    larger = np.empty((2 * len(array) + needed, *array.shape[1:]), array.dtype)
    # Copied element by element, because copies of whole rows take ten times as long to compile.
    for i in np.ndindex((used, *array.shape[1:])):
        larger[i] = array[i]
    return larger


@exact_kernel
def chains(first_keys: npt.NDArray[np.uint64], second_keys: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Group elements with equal keys into linked lists.

    Args:
        first_keys, second_keys: shape (N,).

    Returns:
        int32: the first element of each group, ascending; and int32, shape (N,), the next element of the same group,
        -1 after the last.
    """
    count = len(first_keys)
    firsts, lasts, following = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    size = 2
    while size < 2 * count:
        size *= 2
    slots = np.full(size, NONE, np.int32)
    groups = 0
    for i in range(count):
        following[i] = NONE
        slot = np.int64(mix(mix(np.uint64(0), first_keys[i]), second_keys[i]) & np.uint64(size - 1))
        while True:
            group = slots[slot]
            if group < 0:
                slots[slot] = groups
                firsts[groups], lasts[groups] = i, i
                groups += 1
                break
            if first_keys[firsts[group]] == first_keys[i] and second_keys[firsts[group]] == second_keys[i]:
                following[lasts[group]] = i
                lasts[group] = i
                break
            slot = (slot + 1) & (size - 1)
    return firsts[:groups], following


class Search(NamedTuple):
    """Scalar parameters of a search, in addition to the translation options.

    Attributes:
        language_weight, distortion_weight: weights.
        distortion_limit: words a jump may span; at most 63, which also stands for no limit.
        reordering: kind of the reordering model, -1 without one.
        span_in_state: the part of source spans that recombination compares, see `state_span`.
        sorts_by_jump: whether cube pruning ranks hypotheses with the distortion cost of the next phrase included.
        begin_state, end_word: of the language model.
        keep_arcs: whether recombined hypotheses are kept, for n-best lists.
    """

    language_weight: float
    distortion_weight: float
    distortion_limit: int
    reordering: int
    span_in_state: int
    sorts_by_jump: bool
    begin_state: int
    end_word: int
    keep_arcs: bool


@exact_kernel
def chart_costs(best: DoubleArray) -> DoubleArray:
    """Return the best score of the words i..j-1 over all segmentations, float64, shape (n + 1, n + 1).

    Args:
        best: float64, shape (n, longest): best score of one phrase, by start and length - 1; -inf where there is none.
    """
    n, longest = best.shape
    future = np.full((n + 1, n + 1), -np.inf)
    for i in range(n + 1):
        future[i, i] = 0.0
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j = i + size
            cost = best[i, size - 1] if size <= longest else -np.inf
            for k in range(i + 1, j):
                cost = max(cost, future[i, k] + future[k, j])
            future[i, j] = cost
    return future


@borrowing_kernel
def future_parts(future: DoubleArray, gap: int, mask: int, n: int, start: int, end: int) -> tuple[float, float, float]:
    """Return the changes of the future cost when start..end is covered.

    The hypothesis loses the first cost, that of the gap around the span, and gains the other two, those of the rest of
    the gap before and after the span.
    """
    left = start
    while left > gap and not is_covered(gap, mask, left - 1):
        left -= 1
    right = end + 1
    while right < n and not is_covered(gap, mask, right):
        right += 1
    return future[left, right], future[left, start], future[end + 1, right]


@borrowing_kernel
def future_after(future: DoubleArray, before: float, gap: int, mask: int, n: int, start: int, end: int) -> float:
    """Return the future cost after start..end is covered, given the future cost `before`."""
    lost, left, right = future_parts(future, gap, mask, n, start, end)
    return before - lost + left + right


@exact_kernel
def may_follow(search: Search, previous_end: int, gap: int, start: int, end: int) -> bool:
    """Return whether Moses' distortion limit allows the jump, and the later jump back to the first gap."""
    if abs(previous_end + 1 - start) > search.distortion_limit:
        return False
    if start == gap:
        return end - gap < WINDOW
    return end + 1 - gap <= search.distortion_limit


@exact_kernel
def start_pool(size: int, stacks: Stacks, search: Search, future: float) -> npt.NDArray[np.void]:
    """Return a pool of `size` records, the first of which is the empty hypothesis, which is added to stack 0."""
    pool = np.empty(size, HYPOTHESIS)
    h = pool[0]
    h.score = 0.0
    h.total = future
    h.mask = 0
    h.gap = 0
    h.language_state = search.begin_state
    h.start = NONE
    h.end = NONE
    h.state_span = NONE
    h.option = NONE
    h.back = NONE
    h.arcs = NONE
    h.forward_class = 0
    add(stacks, pool, np.int64(0), np.int64(0), search.keep_arcs)
    return pool


@inner_kernel
def step(
    search: Search, forward: DoubleArray, score: float, previous: int, before: tuple[int, int], start: int, end: int
) -> tuple[float, float, int]:
    """Score the jump of a hypothesis to start..end, and the forward reordering of its last phrase.

    Args:
        forward: float64, shape (P, orientations), weighted scores of the reordering model.
        score: of the hypothesis.
        previous: its last phrase, a row of `forward`; -1 if it has none.
        before: the span of that phrase.

    Returns:
        The score with the jump; the forward score of the reordering model, to be added; and the orientation of the
        span.  The last two are 0 without a reordering model.
    """
    score -= search.distortion_weight * abs(before[1] + 1 - start)
    if search.reordering < 0:
        return score, 0.0, np.int64(0)
    orientation = np.int64(orientation_of(search.reordering, before[0], before[1], start, end))
    return score, forward[previous, orientation] if previous >= 0 else 0.0, orientation


@inner_kernel
def write_extension(
    new: Any,
    search: Search,
    number: int,
    option: int,
    start: int,
    end: int,
    score: float,
    after: float,
    coverage: tuple[int, int],
    language_state: int,
    forward_class: int,
) -> None:
    """Fill a record with hypothesis `number` extended by a phrase.

    Args:
        option: the phrase.
        start, end: its source span, both inclusive.
        score: of the new derivation.
        after: its future cost.
        coverage: its gap and mask.
    """
    new.score = score
    new.total = score + after
    new.gap, new.mask = coverage
    new.language_state = language_state
    new.start = start
    new.end = end
    new.state_span = state_span(search.span_in_state, start, end)
    new.option = option
    new.back = number
    new.arcs = NONE
    new.forward_class = forward_class
