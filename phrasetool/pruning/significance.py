"""Significance criterion (Johnson, Martin, Foster and Kuhn 2007, section 3).

The criterion measures how unlikely it is that a source phrase and a target phrase occur together as often as they do by
chance.  Of N sentence pairs, cf contain the source phrase, ce the target phrase and cfe both.  If the two phrases were
independent, cfe would follow the hypergeometric distribution; the p-value is the probability of cfe or more (Fisher's
exact test, one-sided), and -ln p is compared with a threshold.

Every pair whose sides occur once each, in the same sentence pair (1-1-1), has p = 1/N; ln N is called alpha.  A
threshold just above alpha removes all such pairs, one just below keeps them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.smt.corpus.sentence_index import SentenceIndex, count_common
from phrasetool.unique_phrases import number_distinct

# Distance of Johnson's thresholds alpha + epsilon and alpha - epsilon from alpha.
EPSILON = 0.001
# Decreasing terms below this share of the sum so far do not change it.
_NEGLIGIBLE = 1e-18


@exact_kernel
def _log_factorials(table: DoubleArray) -> None:
    for k in range(len(table)):
        table[k] = math.lgamma(k + 1.0)


@exact_kernel
def _negative_log_p(
    joint: Int64Array, source: Int64Array, target: Int64Array, log_factorials: DoubleArray, values: DoubleArray
) -> None:
    """Set `values[i]` to -ln of the sum of the hypergeometric probabilities of joint[i] or more."""
    n = len(log_factorials) - 1
    for i in range(len(values)):
        cfe, cf, ce = joint[i], source[i], target[i]
        # At the smallest possible joint count, p is 1.
        if cfe <= max(0, cf + ce - n):
            values[i] = 0.0
            continue
        # The largest term of the sum is at the mode of the distribution, or at cfe if cfe is beyond the mode.  The
        # other terms are computed from it by ratios, which avoids overflow, underflow and cancellation.
        mode = np.int64((cf + 1.0) * (ce + 1.0) / (n + 2.0))
        top = max(cfe, min(mode, min(cf, ce)))
        rest = n - cf - ce
        log_top = (
            log_factorials[cf] - log_factorials[top] - log_factorials[cf - top]
            + log_factorials[n - cf] - log_factorials[ce - top] - log_factorials[rest + top]
            - log_factorials[n] + log_factorials[ce] + log_factorials[n - ce]
        )  # fmt: skip
        total = 1.0
        term = 1.0
        k = top
        while k < min(cf, ce) and term > total * _NEGLIGIBLE:
            term *= (cf - k) / (k + 1.0) * ((ce - k) / (rest + k + 1.0))
            total += term
            k += 1
        term = 1.0
        k = top
        while k > cfe and term > total * _NEGLIGIBLE:
            term *= k / (cf - k + 1.0) * ((rest + k) / (ce - k + 1.0))
            total += term
            k -= 1
        values[i] = max(0.0, -(log_top + np.log(total)))


def alpha_of(sentences: int) -> float:
    """Return -ln p of a pair whose sides occur once each, together, in N sentence pairs: ln N."""
    return math.log(sentences)


class FisherExactTest:
    """Fisher's exact test, one-sided, for counts of a corpus.

    Keeps a table of ln k! up to N (8 bytes per sentence pair).  The error of -ln p is that of ln N!: below 1e-9 for
    10^5 sentence pairs, and below 1e-6 for 10^8.

    Args:
        sentences: N, the number of sentence pairs.

    Raises:
        ValueError: N is not positive.
    """

    def __init__(self, sentences: int) -> None:
        if sentences < 1:
            raise ValueError(f"cannot test with {sentences} sentence pairs")
        self.sentences = sentences
        self._log_factorials = np.empty(sentences + 1, np.float64)
        _log_factorials(self._log_factorials)

    @property
    def alpha(self) -> float:
        """-ln p of a pair whose sides occur once each, together: ln N."""
        return alpha_of(self.sentences)

    def negative_log_p(
        self,
        joint: npt.NDArray[np.integer],
        source: npt.NDArray[np.integer],
        target: npt.NDArray[np.integer],
    ) -> DoubleArray:
        """Return -ln p, at least 0, float64, shape (M,).

        Args:
            joint, source, target: cfe, cf and ce, shape (M,): numbers of sentence pairs that contain both phrases, the
                source phrase, and the target phrase.

        Raises:
            ValueError: the shapes differ, or the counts are impossible in a corpus of N sentence pairs.
        """
        if not joint.shape == source.shape == target.shape or joint.ndim != 1:
            raise ValueError(f"counts of shapes {joint.shape}, {source.shape} and {target.shape}; expected one length")
        possible = (joint >= np.maximum(0, source + target - self.sentences)) & (joint <= np.minimum(source, target))
        if not (possible & (np.maximum(source, target) <= self.sentences)).all():
            raise ValueError(f"counts that are impossible in {self.sentences} sentence pairs")
        values = np.empty(len(joint), np.float64)
        counts = (np.ascontiguousarray(count, np.int64) for count in (joint, source, target))
        _negative_log_p(*counts, self._log_factorials, values)
        return values


def count_co_occurrences(
    source_index: SentenceIndex,
    target_index: SentenceIndex,
    sources: Phrases,
    targets: Phrases,
    source_parts: Int64Array | None = None,
    target_parts: Int64Array | None = None,
) -> Int64Array:
    """Count the sentence pairs that contain both sides, the source or the target of M phrase pairs.

    Each distinct phrase is looked up once.

    Args:
        source_index, target_index: indexes of the two sides of a bitext.
        sources, targets: M phrases each, in the ids of the corpora; a negative id is a word that does not occur.
        source_parts, target_parts: for phrases with gaps, int64, shape (M + 1,): side i consists of the phrases in
            [parts[i], parts[i + 1]) of `sources` or `targets`, and occurs where all of them do, in any order, as in
            Moses' filter-pt; a side without parts does not occur.

    Returns:
        int64, shape (3, M): sentence pairs with both sides, sentences with the source, sentences with the target.

    Raises:
        ValueError: the indexes have different numbers of sentences, or the numbers of phrases differ.
    """
    if source_index.sentences != target_index.sentences:
        raise ValueError(f"{source_index.sentences} source sentences, {target_index.sentences} target sentences")
    sides = []
    for index, phrases, parts in (
        (source_index, sources, source_parts),
        (target_index, targets, target_parts),
    ):
        numbers, firsts = number_distinct(phrases)
        sets = index.find(phrases.select(firsts))
        if parts is not None:
            sets, numbers = sets.intersect(numbers, parts), np.arange(len(parts) - 1)
        sides.append((sets, numbers))
    (source_sets, source_rows), (target_sets, target_rows) = sides
    joint = count_common(source_sets, target_sets, source_rows, target_rows)
    return np.stack([joint, source_sets.counts[source_rows], target_sets.counts[target_rows]])
