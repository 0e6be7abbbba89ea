"""Derivations from a search: the best one, n-best lists, and their features."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import GOLDEN, mix
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array
from phrasetool.smt.decoder.features import orientation_of
from phrasetool.smt.decoder.hypotheses import NONE, with_room


class Steps(NamedTuple):
    """The phrases of D derivations, in target order; P phrases in all.

    Attributes:
        offsets: int64, shape (D + 1,).
        entries: int32, shape (P,): entry of the table.
        starts, ends: int32, shape (P,): source span, both inclusive.
        scores: float64, shape (D,): the model's scores.
    """

    offsets: Int64Array
    entries: Int32Array
    starts: Int32Array
    ends: Int32Array
    scores: DoubleArray


@exact_kernel
def best_steps(pool: npt.NDArray[np.void], best: int) -> tuple[Int32Array, float]:
    """Return option, start and end of each phrase of hypothesis `best`, int32, shape (3, P), and its score."""
    count = 0
    number = best
    while pool[number].back >= 0:
        count += 1
        number = pool[number].back
    steps = np.empty((3, count), np.int32)
    number = best
    for i in range(count - 1, -1, -1):
        h = pool[number]
        steps[0, i] = h.option
        steps[1, i] = h.start
        steps[2, i] = h.end
        number = h.back
    return steps, pool[best].score


@exact_kernel
def _hash_target(
    pool: npt.NDArray[np.void],
    hypotheses: Int32Array,
    option_entries: Int32Array,
    offsets: Int64Array,
    words: Int32Array,
) -> int:
    # Not 0: word 0 would leave it unchanged and be ignored at the beginning of a translation.
    h = GOLDEN
    for number in hypotheses:
        entry = option_entries[pool[number].option]
        for j in range(offsets[entry], offsets[entry + 1]):
            h = mix(h, words[j])
    return h


@exact_kernel
def n_best_steps(
    pool: npt.NDArray[np.void],
    best: int,
    option_entries: Int32Array,
    target_offsets: Int64Array,
    target_words: Int32Array,
    count: int,
    distinct: bool,
    factor: int,
) -> tuple[Int64Array, Int32Array, DoubleArray]:
    """Return the best derivations that the search has kept, best first, by A* search from the end.

    An item is a hypothesis after which the rest of the derivation is fixed.  The best score of its beginning is known
    exactly, so complete derivations are found in order.

    Args:
        count: number of derivations to find.
        distinct: leave out derivations with the same words as a better one.
        factor: give up after count * factor derivations (Moses' n-best-factor).

    Returns:
        As in `Steps`: offsets, int32 of shape (3, P) with entries, starts and ends, and scores.
    """
    # Item k: its hypothesis, the score that the phrases after it add, and the item of the next phrase.
    arcs = np.empty(1 << 10, np.int32)
    suffixes = np.empty(1 << 10, np.float64)
    parents = np.empty(1 << 10, np.int32)
    heap = [(-pool[best].score, np.int64(0))]
    heap.pop()
    used = 0
    offsets = np.zeros(count + 1, np.int64)
    scores = np.empty(count, np.float64)
    steps = np.empty((1 << 10, 3), np.int32)
    target_hashes = {np.uint64(0)}
    target_hashes.clear()
    listed = popped = 0
    arc, suffix, item = best, 0.0, np.int64(NONE)
    while listed < count and popped < count * factor:
        # The hypothesis can be replaced by each of those recombined into it.
        while arc >= 0:
            if used == len(arcs):
                arcs, suffixes = with_room(arcs, used, 1), with_room(suffixes, used, 1)
                parents = with_room(parents, used, 1)
            arcs[used], suffixes[used], parents[used] = arc, suffix, item
            heapq.heappush(heap, (-(suffix + pool[arc].score), np.int64(used)))
            used += 1
            arc = pool[arc].arcs
        if len(heap) == 0:
            break
        key, item = heapq.heappop(heap)
        tail = pool[arcs[item]].back
        if pool[tail].back >= 0 or pool[tail].option >= 0:
            arc, suffix = tail, suffixes[item] + pool[arcs[item]].score - pool[tail].score
            continue
        popped += 1
        hypotheses = _taken(arcs, parents, item)
        if distinct:
            target = _hash_target(pool, hypotheses, option_entries, target_offsets, target_words)
            if target in target_hashes:
                continue
            target_hashes.add(target)
        first, length = offsets[listed], len(hypotheses)
        steps = with_room(steps, first, length)
        for k in range(length):
            h = pool[hypotheses[k]]
            steps[first + k, 0], steps[first + k, 1], steps[first + k, 2] = option_entries[h.option], h.start, h.end
        scores[listed] = -key
        listed += 1
        offsets[listed] = first + length
    return offsets[: listed + 1], steps[: offsets[listed]].T, scores[:listed]


@exact_kernel
def _taken(arcs: Int32Array, parents: Int32Array, item: int) -> Int32Array:
    """Return the hypotheses of a derivation from an item on, in target order."""
    length = 0
    at = item
    while at >= 0:
        length += 1
        at = parents[at]
    hypotheses = np.empty(length, np.int32)
    at = item
    for k in range(length):
        hypotheses[k] = arcs[at]
        at = parents[at]
    return hypotheses


@exact_kernel
def derivation_features(
    offsets: Int64Array,
    steps: Int32Array,
    target_offsets: Int64Array,
    table_scores: FloatArray,
    reordering_scores: FloatArray,
    layout: Int64Array,
    column_weights: Int32Array,
    features: DoubleArray,
) -> None:
    """Sum the features of derivations, except those of language models.

    Args:
        offsets, steps: D derivations, as `n_best_steps` returns them.
        target_offsets: of the target phrases of all entries.
        table_scores, reordering_scores: of all entries.
        layout: the indices in a feature vector at which reordering, distortion, word penalty, phrase penalty and table
            scores begin; then the kind of the reordering model (-1: none), and the first columns of its
            backward and forward scores (-1: none).
        column_weights: int32, the reordering feature of each column of the reordering table.
        features: float64, shape (D, F), zeros, to which the sums are added.
    """
    reordering, distortion, word, phrase, table, kind, backward, forward = layout
    for d in range(len(offsets) - 1):
        previous_start, previous_end, previous = -1, -1, -1
        for p in range(offsets[d], offsets[d + 1]):
            entry, start, end = steps[0, p], steps[1, p], steps[2, p]
            features[d, distortion] -= abs(previous_end + 1 - start)
            features[d, phrase] += 1
            features[d, word] -= target_offsets[entry + 1] - target_offsets[entry]
            for c in range(table_scores.shape[1]):
                features[d, table + c] += table_scores[entry, c]
            if kind >= 0:
                o = orientation_of(kind, previous_start, previous_end, start, end)
                if backward >= 0:
                    c = backward + o
                    features[d, reordering + column_weights[c]] += reordering_scores[entry, c]
                if forward >= 0 and previous >= 0:
                    c = forward + o
                    features[d, reordering + column_weights[c]] += reordering_scores[previous, c]
            previous_start, previous_end, previous = start, end, entry
