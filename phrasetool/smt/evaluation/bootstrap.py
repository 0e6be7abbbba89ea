"""BLEU of many systems on one text with intervals and paired tests, each sentence counted once.

The figures are those of sacrebleu (Post, WMT 2018; `--tokenize none`), the samples too, for the same seed.  What makes
it worth doing again is time: all systems share the samples, which are sums of sentence statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, Int32Array, Phrases
from phrasetool.smt.evaluation.bleu import COLUMNS, LENGTH, MATCHES, ORDER, REFERENCE_LENGTH, TOTALS, bleu_statistics
from phrasetool.smt.evaluation.metrics import DEFAULT_SEED

SAMPLES = 1000
# Samples worked on at a time: bounds the memory of the drawn sentence numbers.
_AT_ONCE = 100


def bleu_of_sums(sums: npt.NDArray[np.integer | np.floating]) -> DoubleArray:
    """BLEU of corpora with these statistics, 0 to 100, smoothed as sacrebleu does it.

    The k-th order without a match counts as if it had 1 / 2^k matches (NIST's mteval-v13a); no match at all is 0.

    Args:
        sums: shape (..., 9), see `phrasetool.smt.evaluation.bleu`.

    Returns:
        float64, shape (...).
    """
    sums = np.asarray(sums, np.float64)
    matches, totals = sums[..., MATCHES], sums[..., TOTALS]
    missing = matches == 0
    smoothed = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), matches)
    possible = (totals > 0).all(-1) & ~missing.all(-1)
    safe = np.where(totals > 0, totals, 1.0)
    length = np.where(sums[..., LENGTH] > 0, sums[..., LENGTH], 1.0)
    brevity = np.minimum(0.0, 1 - sums[..., REFERENCE_LENGTH] / length)
    score = 100 * np.exp(np.log(smoothed / safe).sum(-1) / ORDER + brevity)
    return np.where(possible, score, 0.0)


def sentence_statistics(hypothesis: Sequence[str], reference: Sequence[str]) -> Int32Array:
    """BLEU statistics of each sentence; words are what white space separates.

    Returns:
        int32, shape (S, 9), see `phrasetool.smt.evaluation.bleu`.

    Raises:
        ValueError: there are not as many lines of one as of the other.
    """
    if len(hypothesis) != len(reference):
        raise ValueError(f"{len(hypothesis)} translations of {len(reference)} sentences")
    words: dict[str, int] = {}
    candidates, truth = (
        Phrases.from_lists([[words.setdefault(word, len(words)) for word in line.split()] for line in lines])
        for lines in (hypothesis, reference)
    )
    return bleu_statistics(np.arange(len(candidates)), candidates, [truth])


@dataclass(frozen=True)
class BleuSamples:
    """A system on a text.

    Attributes:
        bleu: of the whole text.
        samples: float64, shape (B,), of the bootstrap samples.
    """

    bleu: float
    samples: DoubleArray

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval: what is left of the samples without a fortieth at either end."""
        return _middle(self.samples)

    def difference_interval(self, other: BleuSamples) -> tuple[float, float]:
        """The 95 % interval of this BLEU less the other's; both of the same samples."""
        return _middle(self.samples - other.samples)

    def p_value(self, other: BleuSamples) -> float:
        """How likely a difference that large is if the two are equally good; both of the same samples.

        Paired bootstrap resampling (Koehn, EMNLP 2004), as sacrebleu computes it; 1 without a difference.
        """
        difference = abs(self.bleu - other.bleu)
        if difference == 0:
            return 1.0
        differences = np.abs(self.samples - other.samples)
        beyond = int((differences - differences.mean() > difference).sum())
        return (beyond + 1) / (len(differences) + 1)


def _middle(samples: DoubleArray) -> tuple[float, float]:
    ordered = np.sort(samples)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


class Bootstrap:
    """The samples of a text of S sentences, the same for all its systems.

    Args:
        sentences: S, at least 1.
        samples: how many to draw.
        seed: of the draw; with sacrebleu's own, the samples are sacrebleu's.

    Raises:
        ValueError: the number of sentences is below 1.
    """

    def __init__(self, sentences: int, samples: int = SAMPLES, seed: int = DEFAULT_SEED) -> None:
        if sentences < 1:
            raise ValueError("cannot sample from no sentences")
        rng = np.random.default_rng(seed)
        drawn = rng.choice(sentences, size=(samples, sentences), replace=True)
        self._counts = np.empty((samples, sentences), np.float32)
        for first in range(0, samples, _AT_ONCE):
            rows = drawn[first : first + _AT_ONCE]
            keys = rows + np.arange(len(rows))[:, None] * sentences
            counts = np.bincount(keys.ravel(), minlength=len(rows) * sentences)
            self._counts[first : first + len(rows)] = counts.reshape(len(rows), sentences)

    def __call__(self, statistics: npt.NDArray[np.integer]) -> BleuSamples:
        """Score a system by the statistics of its sentences, shape (S, 9).

        Raises:
            ValueError: the statistics are of another number of sentences.
        """
        if statistics.shape != (self._counts.shape[1], COLUMNS):
            raise ValueError(f"statistics of shape {statistics.shape} for {self._counts.shape[1]} sentences")
        # Sums of integers below 2^24: exact in single precision, whatever the order of addition.
        sums = self._counts @ statistics.astype(np.float32)
        return BleuSamples(float(bleu_of_sums(statistics.sum(0, dtype=np.int64))), bleu_of_sums(sums))
