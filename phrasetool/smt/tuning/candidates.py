"""The candidates that tuning learns from: n-best lists of all decoder runs together, without duplicates."""

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
    """Candidates of each sentence from one decoder run, by descending model score.

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
    """Return the weighted sum of the features of candidate i, computed in four independent parts."""
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

    Two candidates of a sentence are the same if their features and BLEU statistics are equal, because tuning reads
    nothing else.  Candidates of a sentence keep the order in which they were added.

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

    def add(self, n_best: NBest) -> int:
        """Add the new candidates of a decoder run, and return their number.

        Raises:
            ValueError: shapes do not match, a sentence is not in the references, or a feature is NaN or infinite.
        """
        if n_best.features.shape != (len(n_best.words), self.features.shape[1]):
            raise ValueError(
                f"expected features of shape {(len(n_best.words), self.features.shape[1])}, got {n_best.features.shape}"
            )
        if not np.isfinite(n_best.features).all():
            raise ValueError("a feature is NaN or infinite")
        statistics = bleu_statistics(n_best.sentence, n_best.words, self.references)
        # Adding zero turns -0.0 into 0.0, which compares equal but has different bits.
        features = n_best.features.astype(np.float32) + np.float32(0)
        before = len(self)
        self._sentence = np.concatenate([self._sentence, n_best.sentence.astype(np.int32)])
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
        """Return which candidates repeat an earlier one, bool, shape (N,)."""
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
        """Return the best candidate of each sentence, the first on a tie; int64, shape (S,), -1 where there is none."""
        out = np.full(self.sentences, -1, np.int64)
        _best(self.features, self.offsets, np.ascontiguousarray(weights, np.float64), out)
        return out

    def bleu(self, weights: Weights) -> float:
        """Return corpus BLEU (0 to 100) of the best candidates; without candidates, a translation is empty."""
        best = self.best(weights)
        rows = _nothing(self.references)
        rows[best >= 0] = self.statistics[best[best >= 0]]
        return corpus_bleu(rows)

    def varies(self) -> npt.NDArray[np.bool_]:
        """Return which features differ between two candidates of some sentence, bool, shape (F,)."""
        same = self._sentence[1:] == self._sentence[:-1]
        return ((self.features[1:] != self.features[:-1]) & same[:, None]).any(0)


def first_best_bleu(n_best: NBest, references: Sequence[Phrases]) -> float:
    """Return corpus BLEU (0 to 100) of the first candidates, which the decoder would have printed."""
    return corpus_bleu(first_best_statistics(n_best, references))


def first_best_statistics(n_best: NBest, references: Sequence[Phrases]) -> Int32Array:
    """Return BLEU statistics, shape (S, 9), of the first candidate of each of S sentences.

    The translation of a sentence without candidates counts as empty.
    """
    sentences, first = np.unique(n_best.sentence, return_index=True)
    rows = _nothing(references)
    rows[sentences] = bleu_statistics(sentences, n_best.words.select(first), references)
    return rows


def normalised(weights: npt.ArrayLike) -> Weights:
    """Return the weights divided by the sum of their absolute values, as in mert-moses.pl; float64, shape (F,).

    Raises:
        ValueError: all are 0, or one is NaN or infinite.
    """
    values = np.asarray(weights, np.float64)
    size = np.abs(values).sum()
    if not np.isfinite(size) or size == 0:
        raise ValueError("weights must be finite and not all 0")
    return values / size


def normalised_start(pool: CandidatePool, weights: npt.ArrayLike) -> Weights:
    """Return the normalised weights that an optimiser starts from.

    Raises:
        ValueError: they are all 0, one is NaN or infinite, or their number differs from that of the pool's features.
    """
    start = normalised(weights)
    if start.shape != (pool.features.shape[1],):
        raise ValueError(f"expected {pool.features.shape[1]} weights, got {start.shape}")
    return start


def normalised_as(weights: Weights, start: Weights, pool: CandidatePool) -> Weights:
    """Return the weights with absolute sum 1, in which features that never vary keep their previous share.

    Nothing is learnt about a feature that is the same in all candidates of a sentence.  With plain normalisation, its
    share would shrink or grow with every run of an optimiser, only because of the size of the other weights.

    Args:
        weights: float64, shape (F,), as learnt.
        start: float64, shape (F,), previous weights, normalised.
        pool: the candidates they were learnt from.
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
    """Return the statistics of empty translations, int32, shape (S, 9)."""
    rows = np.zeros((check_references(references), COLUMNS), np.int32)
    rows[:, REFERENCE_LENGTH] = np.min([reference.lengths for reference in references], axis=0)
    return rows


def _hash_rows(sentence: Int32Array, features: FloatArray, statistics: Int32Array) -> npt.NDArray[np.uint64]:
    """Return an FNV-1a hash of each row, computed number by number; uint64, shape (N,)."""
    hashes = np.full(len(sentence), FNV_BASIS)
    bits = np.ascontiguousarray(features).view(np.uint32)
    for column in (sentence.astype(np.uint32), *bits.T, *statistics.astype(np.uint32).T):
        hashes = (hashes ^ column) * FNV_PRIME
        # In FNV the upper bits do not affect the lower ones.
        hashes ^= hashes >> np.uint64(29)
    return hashes
