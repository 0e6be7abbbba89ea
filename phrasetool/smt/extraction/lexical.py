"""Word translation probabilities from aligned words, as step 4 of Moses' training estimates them.

Every alignment point is one occurrence of its two words together; a word without a point occurs once with NULL.
w(t|s) = c(s,t) / c(s) and w(s|t) = c(s,t) / c(t), rounded to seven decimals because Moses' scorer reads them back from
a file that is written so (scripts/training/LexicalTranslationModel.pm, phrase-extract/score-main.cpp).  A corpus's own
word NULL, should it have one, is kept apart from the NULL of the model; Moses mixes the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, prefix_sums
from phrasetool.smt.corpus.bitext import Bitext

# Points that are counted at a time; bounds the memory of the count.
_CHUNK = 1 << 23
_DECIMALS = 1e7


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
    """pairs = source word * width + target word of each point and unaligned word of the sentences first..last - 1."""
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
    """Count words that are aligned with one another, NULL included.

    Returns:
        Keys, int64, ascending: (source id + 1) * (T + 1) + target id + 1, where T is the number of target symbols and
        0 stands for NULL; and their counts, int64.
    """
    width = len(bitext.target_symbols) + 1
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    alignments = bitext.alignments
    # Points and unaligned words are fewer than points and words.
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
        # A stable sort merges what is sorted already.
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        distinct = np.flatnonzero(np.diff(keys, prepend=-1))
        keys, counts = keys[distinct], np.add.reduceat(counts, distinct)
        first = last
    return keys, counts


def _rounded(counts: Int64Array, totals: Int64Array) -> npt.NDArray[np.float64]:
    """counts / totals as it reads after `%.7f`."""
    value = counts / totals
    scaled = value * _DECIMALS
    result = np.rint(scaled)
    # The product may have been rounded onto a half that is none: decide those by the exact value.
    for i in np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < 1e-8):
        result[i] = float(f"{value[i]:.7f}") * _DECIMALS
    return np.rint(result) / _DECIMALS


def estimate_lexical_table(bitext: Bitext) -> LexicalTable:
    """Word translation probabilities of a bitext; see the module."""
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
