"""Word translation probabilities from aligned words, and the lexical weights of phrase pairs, as Moses computes them.

Every alignment point is one co-occurrence of its two words; a word without a point co-occurs once with NULL.  w(t|s) =
c(s,t) / c(s) and w(s|t) = c(s,t) / c(t), rounded to seven decimals because Moses' scorer reads them from a file with
this precision (scripts/training/LexicalTranslationModel.pm, phrase-extract/score-main.cpp).  If a corpus contains the
word NULL, it is distinguished from the NULL of the model; Moses confuses the two.

**Lexical weights.**  A pair extracted with several alignments keeps the most frequent one; on a tie, the one that is
larger when they are compared word by word (phrase-extract/ExtractionPhrasePair.cpp).  Moses scores the two directions
from two files, so a tie may be broken differently in each: `direct` compares target words, `inverse` source words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases, prefix_sums
from phrasetool.smt.aligning.alignments import Alignments, Bitext
from phrasetool.smt.extraction.counted_rows import Rows

# Points counted at a time; bounds the memory needed.
_CHUNK = 1 << 23
_DECIMALS = 1e7
_ONE = np.uint64(1)


@dataclass(frozen=True)
class LexicalTable:
    """Word translation probabilities of the word pairs that occur together.

    Words are numbered by their ids plus one; 0 is NULL.

    Attributes:
        offsets: int64, shape (S + 2,), where the pairs of each source word begin.
        targets: int32, shape (P,), target words, ascending within a source word.
        target_given_source: float64, shape (P,), w(t|s), rounded to seven decimals.
        source_given_target: float64, shape (P,), w(s|t), rounded to seven decimals.
    """

    offsets: Int64Array
    targets: Int32Array
    target_given_source: npt.NDArray[np.float64]
    source_given_target: npt.NDArray[np.float64]

    @property
    def sources(self) -> Int32Array:
        """The source word of each pair, int32, shape (P,)."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))


@exact_kernel
def _pairs(
    source_offsets: Int64Array,
    source_words: Int32Array,
    target_offsets: Int64Array,
    target_words: Int32Array,
    offsets: Int64Array,
    source: Int32Array,
    target: Int32Array,
    first: int,
    last: int,
    width: int,
    pairs: Int64Array,
) -> int:
    """Write source word * width + target word of each point and unaligned word of sentences first..last - 1."""
    count = 0
    for sentence in range(first, last):
        s0, s1 = source_offsets[sentence], source_offsets[sentence + 1]
        t0, t1 = target_offsets[sentence], target_offsets[sentence + 1]
        has_source, has_target = np.zeros(s1 - s0, np.bool_), np.zeros(t1 - t0, np.bool_)
        for p in range(offsets[sentence], offsets[sentence + 1]):
            s, t = source[p], target[p]
            has_source[s] = has_target[t] = True
            pairs[count] = (source_words[s0 + s] + 1) * width + target_words[t0 + t] + 1
            count += 1
        for s in range(s1 - s0):
            if not has_source[s]:
                pairs[count] = (source_words[s0 + s] + 1) * width
                count += 1
        for t in range(t1 - t0):
            if not has_target[t]:
                pairs[count] = target_words[t0 + t] + 1
                count += 1
    return count


def count_word_pairs(bitext: Bitext) -> tuple[Int64Array, Int64Array]:
    """Count pairs of aligned words, NULL included.

    Returns:
        Keys, int64, ascending: (source id + 1) * (T + 1) + target id + 1, where T is the number of target symbols and
        0 stands for NULL; and their counts, int64.
    """
    width = len(bitext.target_symbols) + 1
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    alignments = bitext.alignments
    # An upper bound of points and unaligned words: points and words.
    most = alignments.offsets + bitext.sources.offsets + bitext.targets.offsets
    first = 0
    while first < len(bitext):
        last = max(int(np.searchsorted(most, most[first] + _CHUNK, "right")) - 1, first + 1)
        pairs = np.empty(int(most[last] - most[first]), np.int64)
        size = _pairs(
            bitext.sources.offsets, bitext.sources.words, bitext.targets.offsets, bitext.targets.words,
            alignments.offsets, alignments.source, alignments.target, first, last, width, pairs,
        )  # fmt: skip
        new_keys, new_counts = np.unique(pairs[:size], return_counts=True)
        keys, counts = np.concatenate([keys, new_keys]), np.concatenate([counts, new_counts])
        # A stable sort takes advantage of the two sorted parts.
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        distinct = np.flatnonzero(np.diff(keys, prepend=-1))
        keys, counts = keys[distinct], np.add.reduceat(counts, distinct)
        first = last
    return keys, counts


def _rounded(counts: Int64Array, totals: Int64Array) -> npt.NDArray[np.float64]:
    """Return counts / totals as formatted with `%.7f`."""
    value = counts / totals
    scaled = value * _DECIMALS
    result = np.rint(scaled)
    # The product may have been rounded to a half by mistake: decide such cases by the exact value.
    for i in np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < 1e-8):
        result[i] = float(f"{value[i]:.7f}") * _DECIMALS
    return np.rint(result) / _DECIMALS


def estimate_lexical_table(bitext: Bitext) -> LexicalTable:
    """Estimate the word translation probabilities of a bitext; see the module."""
    keys, counts = count_word_pairs(bitext)
    width = len(bitext.target_symbols) + 1
    sources, targets = keys // width, keys % width
    size = len(bitext.source_symbols) + 1
    source_totals = np.bincount(sources, counts, size).astype(np.int64)
    target_totals = np.bincount(targets, counts, width).astype(np.int64)
    offsets = prefix_sums(np.bincount(sources, minlength=size))
    return LexicalTable(
        offsets,
        targets.astype(np.int32),
        _rounded(counts, source_totals[sources]),
        _rounded(counts, target_totals[targets]),
    )


@exact_kernel
def _linked(row: Rows, place: int, max_length: int, s: int, t: int) -> bool:
    """Return whether the alignment packed from row[place] on has the point s-t."""
    bit = t * max_length + s
    return (row[place + bit // 64] >> np.uint64(bit % 64)) & _ONE != 0


@exact_kernel
def _is_larger(a: Rows, b: Rows, place: int, max_length: int, inverse: bool) -> bool:
    """Return whether a is larger than b, comparing the ascending lists of aligned positions of one side's words."""
    for i in range(max_length):
        for k in range(max_length):
            s, t = (i, k) if inverse else (k, i)
            in_a, in_b = _linked(a, place, max_length, s, t), _linked(b, place, max_length, s, t)
            if in_a == in_b:
                continue
            # The list without this position is larger if it continues with a later one, smaller if it ends.
            lacking = b if in_a else a
            for m in range(k + 1, max_length):
                s, t = (i, m) if inverse else (m, i)
                if _linked(lacking, place, max_length, s, t):
                    return not in_a
            return in_a
    return False


@exact_kernel
def _choose(
    rows: Rows,
    counts: Int64Array,
    first: Int64Array,
    place: int,
    max_length: int,
    direct: Int64Array,
    inverse: Int64Array,
) -> None:
    for pair in range(len(direct)):
        direct[pair] = inverse[pair] = first[pair]
        for row in range(first[pair] + 1, first[pair + 1]):
            for side in range(2):
                chosen = direct if side == 0 else inverse
                best = chosen[pair]
                if counts[row] > counts[best] or (
                    counts[row] == counts[best] and _is_larger(rows[row], rows[best], place, max_length, side == 1)
                ):
                    chosen[pair] = row


def choose_alignments(
    rows: Rows, counts: Int64Array, first: Int64Array, place: int, max_length: int
) -> tuple[Int64Array, Int64Array]:
    """Choose the row of each pair whose alignment is used.

    Args:
        rows: uint64, shape (R, W); each row has an alignment that a pair was seen with, packed from word `place` on.
        counts: int64, shape (R,), the number of occurrences.
        first: int64, shape (N + 1,), the first row of each pair.
        place, max_length: see `occurrences.RowLayout`.

    Returns:
        Rows for the direct and for the inverse direction, int64, shape (N,).
    """
    direct, inverse = np.empty(len(first) - 1, np.int64), np.empty(len(first) - 1, np.int64)
    _choose(rows, counts, first, place, max_length, direct, inverse)
    return direct, inverse


@exact_kernel
def _probability(
    offsets: Int64Array, targets: Int32Array, values: npt.NDArray[np.float64], source: int, target: int
) -> float:
    """Return the value of a word pair; 1 if it is not in the table, as in Moses."""
    low, high = offsets[source], offsets[source + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if targets[middle] < target:
            low = middle + 1
        else:
            high = middle
    return values[low] if low < end and targets[low] == target else 1.0


@exact_kernel
def _weigh(
    rows: Rows,
    chosen: Int64Array,
    place: int,
    max_length: int,
    inverse: bool,
    source_offsets: Int64Array,
    source_words: Int32Array,
    target_offsets: Int64Array,
    target_words: Int32Array,
    offsets: Int64Array,
    targets: Int32Array,
    values: npt.NDArray[np.float64],
    weights: FloatArray,
) -> None:
    """Compute the product, over the words of one side, of the mean probability given the words aligned to each."""
    for pair in range(len(chosen)):
        row = rows[chosen[pair]]
        s0, t0 = source_offsets[pair], target_offsets[pair]
        lengths = (source_offsets[pair + 1] - s0, target_offsets[pair + 1] - t0)
        explained, conditioning = (lengths[0], lengths[1]) if inverse else (lengths[1], lengths[0])
        weight = 1.0
        for i in range(explained):
            total, count = 0.0, 0
            for k in range(conditioning):
                s, t = (i, k) if inverse else (k, i)
                if _linked(row, place, max_length, s, t):
                    total += _probability(offsets, targets, values, source_words[s0 + s] + 1, target_words[t0 + t] + 1)
                    count += 1
            if count > 0:
                weight *= total / count
            elif inverse:
                weight *= _probability(offsets, targets, values, source_words[s0 + i] + 1, 0)
            else:
                weight *= _probability(offsets, targets, values, 0, target_words[t0 + i] + 1)
        weights[pair] = weight


def lexical_weights(
    rows: Rows,
    direct: Int64Array,
    inverse: Int64Array,
    place: int,
    max_length: int,
    sources: Phrases,
    targets: Phrases,
    table: LexicalTable,
) -> tuple[FloatArray, FloatArray]:
    """Return lex(s|t) and lex(t|s) of N phrase pairs (Koehn, Och & Marcu 2003, Equation 8).

    Args:
        rows, place, max_length: see `choose_alignments`.
        direct, inverse: int64, shape (N,), result of `choose_alignments`.
        sources, targets: the N pairs, as ids.
        table: word translation probabilities, for the same ids.

    Returns:
        float32, shape (N,), each.
    """
    results = []
    for is_inverse, chosen, values in (
        (True, inverse, table.source_given_target),
        (False, direct, table.target_given_source),
    ):
        weights = np.empty(len(chosen), np.float32)
        _weigh(
            rows, chosen, place, max_length, is_inverse, sources.offsets, sources.words, targets.offsets, targets.words,
            table.offsets, table.targets, values, weights,
        )  # fmt: skip
        results.append(weights)
    return results[0], results[1]


@exact_kernel
def _points(
    rows: Rows,
    chosen: Int64Array,
    place: int,
    max_length: int,
    offsets: Int64Array,
    source: Int32Array,
    target: Int32Array,
) -> None:
    count = 0
    for pair in range(len(chosen)):
        for s in range(max_length):
            for t in range(max_length):
                if _linked(rows[chosen[pair]], place, max_length, s, t):
                    source[count], target[count] = s, t
                    count += 1
        offsets[pair + 1] = count


def unpack_alignments(rows: Rows, chosen: Int64Array, place: int, max_length: int) -> Alignments:
    """Return the alignments packed in the chosen rows."""
    words = rows[chosen, place : place + -(-max_length * max_length // 64)]
    limit = int(np.bitwise_count(words).sum())
    offsets = np.zeros(len(chosen) + 1, np.int64)
    source, target = np.empty(limit, np.int32), np.empty(limit, np.int32)
    _points(rows, chosen, place, max_length, offsets, source, target)
    return Alignments(offsets, source, target)
