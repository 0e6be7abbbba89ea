"""The candidates that tuning learns from: n-best lists of all decoder runs together, without repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import FNV_BASIS, FNV_PRIME
from phrasetool.kernels.jit import kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.smt.evaluation.bleu import COLUMNS, REFERENCE_LENGTH, bleu_statistics, check_references, corpus_bleu

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NBest:
    """Candidates of each sentence from one decoder run, in order of falling model score.

    Attributes:
        sentence: int32, shape (N,), the sentence of each candidate.
        features: float32, shape (N, F), feature values (unweighted).
        words: N candidates; ids as in the references.
    """

    sentence: Int32Array
    features: FloatArray
    words: Phrases


@kernel
def model_score(features: FloatArray, i: int, weights: Weights) -> float:
    """The weighted sum of the features of candidate i, in four parts that do not wait for each other."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    whole = len(weights) & ~3
    for f in range(0, whole, 4):
        a += weights[f] * features[i, f]
        b += weights[f + 1] * features[i, f + 1]
        c += weights[f + 2] * features[i, f + 2]
        d += weights[f + 3] * features[i, f + 3]
    for f in range(whole, len(weights)):
        a += weights[f] * features[i, f]
    return (a + b) + (c + d)


@kernel
def _best(features: FloatArray, offsets: Int64Array, weights: Weights, out: Int64Array) -> None:
    for s in range(len(out)):
        best = 0.0
        for i in range(offsets[s], offsets[s + 1]):
            score = model_score(features, i, weights)
            if i == offsets[s] or score > best:
                best = score
                out[s] = i


class CandidatePool:
    """Distinct candidates of S sentences.

    Two candidates of a sentence are the same if their features and BLEU statistics are: nothing that tuning reads
    distinguishes them.  Candidates of a sentence keep the order in which they came.

    Attributes:
        offsets: int64, shape (S + 1,), the first candidate of each sentence; a sentence may have none.
        features: float32, shape (N, F).
        statistics: int32, shape (N, 9), see `phrasetool.smt.evaluation.bleu`.

    Args:
        references: R references of S sentences each, word ids.
        features: F, the number of features.

    Raises:
        ValueError: no references, or references with different numbers of sentences.
    """

    def __init__(self, references: Sequence[Phrases], features: int) -> None:
        self.sentences = check_references(references)
        self.references = list(references)
        self.offsets: Int64Array = np.zeros(self.sentences + 1, np.int64)
        self.features: FloatArray = np.zeros((0, features), np.float32)
        self.statistics: Int32Array = np.zeros((0, COLUMNS), np.int32)
        self._sentence: Int32Array = np.zeros(0, np.int32)
        self._hashes: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)

    def __len__(self) -> int:
        return len(self.features)

    def add(self, found: NBest) -> int:
        """Add what is new among the candidates of a decoder run, and return how many that were.

        Raises:
            ValueError: shapes disagree, a sentence is not in the references, or a feature is NaN or infinite.
        """
        if found.features.shape != (len(found.words), self.features.shape[1]):
            raise ValueError(
                f"expected features of shape {(len(found.words), self.features.shape[1])}, got {found.features.shape}"
            )
        if not np.isfinite(found.features).all():
            raise ValueError("a feature is NaN or infinite")
        statistics = bleu_statistics(found.sentence, found.words, self.references)
        # Adding zero makes 0.0 of -0.0, which is equal but has other bits.
        features = found.features.astype(np.float32) + np.float32(0)
        before = len(self)
        self._sentence = np.concatenate([self._sentence, found.sentence.astype(np.int32)])
        self.features = np.concatenate([self.features, features])
        self.statistics = np.concatenate([self.statistics, statistics])
        self._hashes = np.concatenate([self._hashes, _hash_rows(self._sentence[before:], features, statistics)])
        kept = np.flatnonzero(~self._repeated())
        order = kept[np.argsort(self._sentence[kept], kind="stable")]
        self._sentence, self._hashes = self._sentence[order], self._hashes[order]
        self.features, self.statistics = self.features[order], self.statistics[order]
        self.offsets = np.searchsorted(self._sentence, np.arange(self.sentences + 1)).astype(np.int64)
        return len(self) - before

    def _repeated(self) -> npt.NDArray[np.bool_]:
        """Which candidates were there before, bool, shape (N,)."""
        order = np.argsort(self._hashes, kind="stable")
        same = np.flatnonzero(self._hashes[order[1:]] == self._hashes[order[:-1]])
        first, second = order[same], order[same + 1]
        equal = self._sentence[first] == self._sentence[second]
        equal &= (self.features[first] == self.features[second]).all(1)
        equal &= (self.statistics[first] == self.statistics[second]).all(1)
        repeated = np.zeros(len(self._hashes), np.bool_)
        repeated[second[equal]] = True
        return repeated

    def best(self, weights: Weights) -> Int64Array:
        """The best candidate of each sentence, the first of equals; int64, shape (S,), -1 where there is none."""
        out = np.full(self.sentences, -1, np.int64)
        _best(self.features, self.offsets, np.ascontiguousarray(weights, np.float64), out)
        return out

    def bleu(self, weights: Weights) -> float:
        """Corpus BLEU (0 to 100) of the best candidates; a sentence without any counts as translated by nothing."""
        best = self.best(weights)
        rows = _nothing(self.references)
        rows[best >= 0] = self.statistics[best[best >= 0]]
        return corpus_bleu(rows)

    def varies(self) -> npt.NDArray[np.bool_]:
        """Which features differ between two candidates of some sentence, bool, shape (F,)."""
        same = self._sentence[1:] == self._sentence[:-1]
        return ((self.features[1:] != self.features[:-1]) & same[:, None]).any(0)


def first_best_bleu(found: NBest, references: Sequence[Phrases]) -> float:
    """Corpus BLEU (0 to 100) of the first candidate of each sentence: what the decoder would have printed."""
    return corpus_bleu(first_best_statistics(found, references))


def first_best_statistics(found: NBest, references: Sequence[Phrases]) -> Int32Array:
    """BLEU statistics, shape (S, 9), of the first candidate of each of S sentences.

    A sentence without candidates counts as translated by nothing.
    """
    sentences, first = np.unique(found.sentence, return_index=True)
    rows = _nothing(references)
    rows[sentences] = bleu_statistics(sentences, found.words.select(first), references)
    return rows


def normalised(weights: npt.ArrayLike) -> Weights:
    """The weights divided by the sum of their absolute values, as mert-moses.pl writes them; float64, shape (F,).

    Raises:
        ValueError: all are 0, or one is NaN or infinite.
    """
    values = np.asarray(weights, np.float64)
    size = np.abs(values).sum()
    if not np.isfinite(size) or size == 0:
        raise ValueError("weights must be finite and not all 0")
    return values / size


def normalised_start(pool: CandidatePool, weights: npt.ArrayLike) -> Weights:
    """The weights an optimiser starts from, normalised.

    Raises:
        ValueError: they are all 0, have NaN or infinity, or are not as many as the pool has features.
    """
    start = normalised(weights)
    if start.shape != (pool.features.shape[1],):
        raise ValueError(f"expected {pool.features.shape[1]} weights, got {start.shape}")
    return start


def normalised_as(weights: Weights, start: Weights, pool: CandidatePool) -> Weights:
    """The weights with a sum of absolute values of 1, in which features that never vary keep the share they had.

    Nothing is known of a feature that is the same in all candidates of a sentence.  Left to the normalisation its share
    would shrink, or grow, with every run of an optimiser for no reason but the size of the other weights.

    Args:
        weights: float64, shape (F,), as learnt.
        start: float64, shape (F,), normalised weights from before.
        pool: what they were learnt from.
    """
    varies = pool.varies()
    size = np.abs(weights[varies]).sum()
    left = 1 - np.abs(start[~varies]).sum()
    if size == 0:
        return start.copy()
    if left <= 0:
        return normalised(weights)
    return np.where(varies, weights * (left / size), start)


def _nothing(references: Sequence[Phrases]) -> Int32Array:
    """Statistics of sentences translated by no words, int32, shape (S, 9)."""
    rows = np.zeros((check_references(references), COLUMNS), np.int32)
    rows[:, REFERENCE_LENGTH] = np.min([reference.lengths for reference in references], axis=0)
    return rows


def _hash_rows(sentence: Int32Array, features: FloatArray, statistics: Int32Array) -> npt.NDArray[np.uint64]:
    """FNV-1a of each row, taken a number at a time; uint64, shape (N,)."""
    hashes = np.full(len(sentence), FNV_BASIS)
    bits = np.ascontiguousarray(features).view(np.uint32)
    for column in (sentence.astype(np.uint32), *bits.T, *statistics.astype(np.uint32).T):
        hashes = (hashes ^ column) * FNV_PRIME
        # FNV's upper bits do not reach its lower ones.
        hashes ^= hashes >> np.uint64(29)
    return hashes
