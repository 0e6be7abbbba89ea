"""Steps that all searches share: the spans that may be translated next, their costs, and the resulting hypothesis."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import DoubleArray
from phrasetool.smt.decoder.hypotheses import HYPOTHESIS, NONE, WINDOW, Stacks, add, is_covered, state_span
from phrasetool.smt.decoder.orientation import orientation_of


class Search(NamedTuple):
    """Scalar parameters of a search, in addition to the translation options.

    Attributes:
        language_weight, distortion_weight: weights.
        distortion_limit: words a jump may span; at most 63, which also stands for no limit.
        reordering: kind of the reordering model, -1 without one.
        span_in_state: what recombination compares of source spans, see `state_span`.
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
    """float64, shape (n + 1, n + 1): the best score of the words i..j-1, however they are cut into phrases.

    Args:
        best: float64, shape (n, longest): of one phrase, by start and length - 1; -inf where there is none.
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
    the gap before and behind the span.
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
    """The future cost once start..end is covered too, given that `before`."""
    lost, left, right = future_parts(future, gap, mask, n, start, end)
    return before - lost + left + right


@exact_kernel
def may_follow(search: Search, previous_end: int, gap: int, start: int, end: int) -> bool:
    """Moses' distortion limit: the jump itself, and the jump back to the first gap that it will take."""
    if abs(previous_end + 1 - start) > search.distortion_limit:
        return False
    if start == gap:
        return end - gap < WINDOW
    return end + 1 - gap <= search.distortion_limit


@exact_kernel
def start_pool(size: int, stacks: Stacks, search: Search, future: float) -> npt.NDArray[np.void]:
    """A pool of `size` records whose first is the empty hypothesis, which is put on stack 0."""
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
    """Score a hypothesis with the jump to start..end, and the forward reordering score of the phrase before.

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
