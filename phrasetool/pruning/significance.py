"""The significance criterion (Johnson, Martin, Foster and Kuhn 2007, section 3).

How surprising is it that a source phrase and a target phrase occur in the same sentence pairs as often as they do?  Of
N sentence pairs, cf hold the source phrase, ce the target phrase and cfe both.  If the two had nothing to do with each
other, cfe would be drawn from the hypergeometric distribution; the p-value is the probability of cfe or more (Fisher's
exact test, one-sided), and what is compared with a threshold is -ln p.

A pair that occurs once, together, in one sentence pair (1-1-1) has p = 1/N, whatever it is; ln N is called alpha.  A
threshold just above it removes all such pairs, one just below keeps them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.smt.corpus.sentence_index import SentenceIndex, count_common
from phrasetool.unique_phrases import number_distinct

# The distance of Johnson's thresholds alpha + epsilon and alpha - epsilon from alpha.
EPSILON = 0.001
# Terms this much smaller than the sum so far, and falling, do not change it.
_NEGLIGIBLE = 1e-18


@exact_kernel
def _log_factorials(table: DoubleArray) -> None:
    for k in range(len(table)):
        table[k] = math.lgamma(k + 1.0)


@exact_kernel
def _negative_log_p(
    joint: Int64Array, source: Int64Array, target: Int64Array, log_factorials: DoubleArray, values: DoubleArray
) -> None:
    """values[i] = -ln of the sum of hypergeometric probabilities of joint[i] or more."""
    n = len(log_factorials) - 1
    for i in range(len(values)):
        cfe, cf, ce = joint[i], source[i], target[i]
        # With so few sentences that cannot do without, everything is certain.
        if cfe <= max(0, cf + ce - n):
            values[i] = 0.0
            continue
        # The largest term of the sum: at the mode of the distribution, or at cfe if that is beyond it.  The others
        # follow by their ratios, so nothing can overflow, underflow or cancel.
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
    """-ln p of a pair that occurs once, together, in so many sentence pairs: ln N."""
    return math.log(sentences)


class FisherExactTest:
    """Fisher's exact test, one-sided, for counts of one corpus.

    Keeps a table of ln k! up to N (8 bytes a sentence pair).  The error of -ln p is that of ln N!, below 1e-9 for 10^5
    sentence pairs and 1e-6 for 10^8.

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
        """-ln p of a pair that occurs once, together: ln N."""
        return alpha_of(self.sentences)

    def negative_log_p(
        self,
        joint: npt.NDArray[np.integer],
        source: npt.NDArray[np.integer],
        target: npt.NDArray[np.integer],
    ) -> DoubleArray:
        """-ln p in natural units, 0 or more; float64, shape (M,).

        Args:
            joint, source, target: cfe, cf and ce, shape (M,): sentence pairs that hold both phrases, the source phrase,
                the target phrase.

        Raises:
            ValueError: the shapes differ, or the counts cannot be of one corpus of N sentence pairs.
        """
        if not joint.shape == source.shape == target.shape or joint.ndim != 1:
            raise ValueError(f"counts of shapes {joint.shape}, {source.shape} and {target.shape}; expected one length")
        possible = (joint >= np.maximum(0, source + target - self.sentences)) & (joint <= np.minimum(source, target))
        if not (possible & (np.maximum(source, target) <= self.sentences)).all():
            raise ValueError(f"counts that {self.sentences} sentence pairs cannot have")
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
    """Count in which sentence pairs the two sides of M pairs occur.  Each distinct phrase is looked up once.

    Args:
        source_index, target_index: the two sides of one bitext.
        sources, targets: M phrases each, in the ids of the corpora; a negative id is a word that occurs nowhere.
        source_parts, target_parts: for phrases with gaps, int64, shape (M + 1,): side i consists of the phrases
            parts[i]..parts[i + 1] - 1 of `sources` or `targets`, and occurs where all of them do, in any order, as in
            Moses' filter-pt; a side without parts counts as occurring nowhere.

    Returns:
        int64, shape (3, M): sentence pairs that hold both, sentences with the source, sentences with the target.

    Raises:
        ValueError: the indexes have different numbers of sentences, or the numbers of phrases do not agree.
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
