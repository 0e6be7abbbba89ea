"""Placements: where the entries of a table fit a sentence and its reference.

A placement is an entry, a source span with its source words and a place in the reference with its target words.
Entries without target words have none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array
from phrasetool.smt.decoder.hypotheses import NONE, with_room

# Score per word of a placement without an entry: far below any entry's, so that as few as possible are used.
_GAP_SCORE = -1000.0
_LONGEST_GAP = 7
# Leave-one-out score, a word, of a pair seen only in this sentence: Wuebker, Mauser and Ney 2010, length-based variant.
_SINGLETON_SCORE = -5.0


class Placements(NamedTuple):
    """P placements, by source span.

    Attributes:
        first: int64, shape (n, longest + 1): where the placements of each start begin, by length - 1; the last column
            is where those of the start end.
        entries: int32, shape (P,); -1 for a gap, which has no entry.
        places: int32, shape (P,): first reference word.
        sizes: int32, shape (P,): reference words.
        scores: float64, shape (P,): weighted, without reordering.
    """

    first: Int64Array
    entries: Int32Array
    places: Int32Array
    sizes: Int32Array
    scores: DoubleArray


@exact_kernel
def place_entries(
    spans: Int32Array,
    first: Int64Array,
    target_offsets: Int64Array,
    target_words: Int32Array,
    static: DoubleArray,
    reference: Int32Array,
    vocabulary: int,
) -> Placements:
    """Find all placements.

    Args:
        spans: int32, shape (n, longest), source phrase of each span, -1 for none.
        first: int64, the entries of each source phrase, as in `TranslationTable`.
        target_offsets, target_words: the target phrases of all entries.
        static: float64, their weighted scores.
        reference: int32, shape (m,), target words.
        vocabulary: one more than the largest word id.
    """
    n, longest = spans.shape
    m = len(reference)
    # The places of each word in the reference, as lists.
    heads = np.full(vocabulary, NONE, np.int32)
    following = np.empty(m, np.int32)
    for q in range(m - 1, -1, -1):
        following[q] = heads[reference[q]]
        heads[reference[q]] = q
    offsets = np.zeros((n, longest + 1), np.int64)
    entries, places = np.empty(1 << 8, np.int32), np.empty(1 << 8, np.int32)
    sizes, scores = np.empty(1 << 8, np.int32), np.empty(1 << 8, np.float64)
    used = 0
    for start in range(n):
        for size in range(longest):
            offsets[start, size] = used
            source = spans[start, size]
            if source < 0:
                continue
            for entry in range(first[source], first[source + 1]):
                begin = target_offsets[entry]
                length = target_offsets[entry + 1] - begin
                if length == 0 or length > m:
                    continue
                q = heads[target_words[begin]]
                while q >= 0:
                    k = 1
                    if q + length <= m:
                        while k < length and target_words[begin + k] == reference[q + k]:
                            k += 1
                        if k == length:
                            if used == len(entries):
                                entries, places = with_room(entries, used, 1), with_room(places, used, 1)
                                sizes, scores = with_room(sizes, used, 1), with_room(scores, used, 1)
                            entries[used], places[used], sizes[used] = entry, q, length
                            scores[used] = static[entry]
                            used += 1
                    q = following[q]
        offsets[start, longest] = used
    return Placements(offsets, entries[:used], places[:used], sizes[:used], scores[:used])


@exact_kernel
def with_gaps(n: int, m: int, known: Placements) -> Placements:
    """Return the placements, and a placement without an entry for every pair of short spans."""
    longest = max(known.first.shape[1] - 1, min(_LONGEST_GAP, n))
    total = len(known.entries) + n * _LONGEST_GAP * m * _LONGEST_GAP
    offsets = np.zeros((n, longest + 1), np.int64)
    entries, places = np.empty(total, np.int32), np.empty(total, np.int32)
    sizes, scores = np.empty(total, np.int32), np.empty(total, np.float64)
    used = 0
    for start in range(n):
        for size in range(longest):
            offsets[start, size] = used
            if size < known.first.shape[1] - 1:
                for p in range(known.first[start, size], known.first[start, size + 1]):
                    entries[used], places[used] = known.entries[p], known.places[p]
                    sizes[used], scores[used] = known.sizes[p], known.scores[p]
                    used += 1
            if size < _LONGEST_GAP and start + size < n:
                for q in range(m):
                    for length in range(1, min(_LONGEST_GAP, m - q) + 1):
                        entries[used], places[used], sizes[used] = NONE, q, length
                        scores[used] = _GAP_SCORE * (size + 1 + length)
                        used += 1
        offsets[start, longest] = used
    return Placements(offsets, entries[:used], places[:used], sizes[:used], scores[:used])


@exact_kernel
def leave_out(
    placements: Placements,
    counts: FloatArray,
    table_scores: FloatArray,
    sizes: Int32Array,
    inverse: float,
    direct: float,
    inverse_column: int,
    direct_column: int,
) -> None:
    """Score placements as if this sentence pair had not been extracted from.

    Relative frequencies lose the pair's own occurrences; a pair that occurs nowhere else gets a probability that falls
    with its length.
    """
    for p in range(len(placements.entries)):
        entry = placements.entries[p]
        if entry < 0 or np.isnan(counts[entry, 2]):
            continue
        own = 0
        for other in range(len(placements.entries)):
            own += placements.entries[other] == entry
        joint = counts[entry, 2] - min(float(own), counts[entry, 2])
        if joint > 0.5:
            new_inverse = np.log(joint / max(counts[entry, 0] - own, joint))
            new_direct = np.log(joint / max(counts[entry, 1] - own, joint))
        else:
            new_inverse = new_direct = _SINGLETON_SCORE * (sizes[p] + placements.sizes[p])
        placements.scores[p] += inverse * (new_inverse - table_scores[entry, inverse_column])
        placements.scores[p] += direct * (new_direct - table_scores[entry, direct_column])


@exact_kernel
def uncovered_words(n: int, m: int, placements: Placements) -> tuple[int, int]:
    """How many source words and how many reference words no placement covers."""
    source, target = np.zeros(n, np.bool_), np.zeros(m, np.bool_)
    for start in range(n):
        for size in range(placements.first.shape[1] - 1):
            for p in range(placements.first[start, size], placements.first[start, size + 1]):
                source[start : start + size + 1] = True
                target[placements.places[p] : placements.places[p] + placements.sizes[p]] = True
    return n - source.sum(), m - target.sum()
