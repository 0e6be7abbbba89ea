"""Pruning criteria, which score each entry from the measures of the whole table.

The larger an entry's score, the longer the entry is kept.  A product of criteria multiplies their factors, in which
extreme scores are clipped, so that no criterion alone can keep an entry that the others score low.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from phrasetool.phrases import FloatArray
from phrasetool.pruning.measures import (
    COUNTS,
    LOSSES,
    MODEL_SCORES,
    PARALLEL,
    PROBABILITIES,
    SCORED_MASKS,
    SIGNIFICANCE,
    SIMILARITIES,
    SYNTAX,
    USES,
    Measure,
    Measures,
)

# Loss of an entry without a composition, where a finite number is required.
_NO_COMPOSITION = np.float32(30.0)
# Bounds of the loss per occurrence of the pair.  The decoder may be unable to use a composition that costs nothing by
# the table's scores: it may need a jump, a part that is pruned, or a hypothesis that drops out of a full stack.  The
# bounds were best on development data, see benchmarks/ranking_on_dev.py.
_LEAST_LOSS = np.float32(0.3)
_MOST_LOSS = np.float32(1.0)


class Criterion(Protocol):
    """A criterion by which entries are ranked."""

    @property
    def name(self) -> str:
        """Name of the criterion in `--method`."""

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """The measures that the criterion needs in addition to probabilities."""

    @property
    def factor_needs(self) -> frozenset[Measure[Any]]:
        """The additional measures that `factor` needs."""

    @property
    def by_source(self) -> bool:
        """Whether an entry is compared with the others of its source, which must then be adjacent."""

    def scores(self, measures: Measures) -> FloatArray:
        """Return the scores, float32, shape (N,): larger for better entries; may be infinite, never NaN."""

    def factor(self, measures: Measures) -> FloatArray:
        """Return the factors for a product, float32, shape (N,), finite and at least 0."""


@dataclass(frozen=True)
class Semantic:
    """Both similarities of Zhang et al. (2014, section 4.3): an entry is removed when both are low.

    Attributes:
        similarities: the measure that holds the similarities.
    """

    name: str = "semantic"
    similarities: Measure[np.float32] = SIMILARITIES
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """The similarities."""
        return frozenset({self.similarities})

    def scores(self, measures: Measures) -> FloatArray:
        """Return the higher similarity; infinite where a side has only unknown words."""
        similarities = measures[self.similarities]
        # A reduction along rows of one or two columns takes numpy ten times as long.
        best: FloatArray = np.maximum(similarities[:, 0], similarities[:, -1])
        best[~measures[SCORED_MASKS[self.similarities]]] = np.inf
        return best

    def factor(self, measures: Measures) -> FloatArray:
        """Return the mean similarity, between 0.02 and 1; 1 where a side has only unknown words."""
        mean = measures[self.similarities].mean(axis=1, dtype=np.float32)
        known = measures[SCORED_MASKS[self.similarities]]
        return np.where(known, np.clip(mean, np.float32(0.02), np.float32(1)), np.float32(1))


@dataclass(frozen=True)
class Parallel(Semantic):
    """Probability that both sides are translations of each other: the similarity of a classifier."""

    name: str = "parallel"
    similarities: Measure[np.float32] = PARALLEL


@dataclass(frozen=True)
class Syntactic(Semantic):
    """Syntactic similarity of both sides: the similarity of a syntax encoder."""

    name: str = "syntax"
    similarities: Measure[np.float32] = SYNTAX


@dataclass(frozen=True)
class Significant:
    """-ln p of Fisher's exact test (Johnson et al. 2007)."""

    name: str = "significance"
    needs: frozenset[Measure[Any]] = frozenset({SIGNIFICANCE})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Return -ln p."""
        return measures[SIGNIFICANCE]

    def factor(self, measures: Measures) -> FloatArray:
        """Return a tenth of -ln p, clipped to [0.02, 2]."""
        tenth: FloatArray = measures[SIGNIFICANCE] / np.float32(10)
        return tenth.clip(np.float32(0.02), np.float32(2))


@dataclass(frozen=True)
class Composition:
    """Count of the pair times the loss of model score without it (Zens et al. 2012, Ling et al. 2012)."""

    name: str = "composition"
    needs: frozenset[Measure[Any]] = frozenset({COUNTS, LOSSES})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Return count times loss; the loss of an entry without a composition is 30."""
        losses = measures[LOSSES]
        return measures[COUNTS] * np.where(np.isfinite(losses), losses, _NO_COMPOSITION)

    def factor(self, measures: Measures) -> FloatArray:
        """Return count times loss, the loss clipped to [0.3, 1]."""
        return measures[COUNTS] * np.clip(measures[LOSSES], _LEAST_LOSS, _MOST_LOSS)


@dataclass(frozen=True)
class Probability:
    """Direct translation probability, p(target | source), of the table."""

    name: str = "probability"
    needs: frozenset[Measure[Any]] = frozenset({PROBABILITIES})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Return the third score."""
        return measures[PROBABILITIES]

    def factor(self, measures: Measures) -> FloatArray:
        """Return the third score, at least 0."""
        return np.maximum(measures[PROBABILITIES], np.float32(0))


@dataclass(frozen=True)
class Count:
    """Number of times the pair was extracted."""

    name: str = "count"
    needs: frozenset[Measure[Any]] = frozenset({COUNTS})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Return the joint count."""
        return measures[COUNTS]

    factor = scores


@dataclass(frozen=True)
class Usage:
    """Number of uses of the pair in forced decoding of the training set (Eck, Vogel and Waibel 2007).

    An entry that was extracted from a single sentence explains that sentence, and maybe no other; so the uses should
    come from leave-one-out decoding (Wuebker, Mauser and Ney 2010), in which the decoder does not use entries that were
    extracted only from the decoded sentence.

    Eck, Vogel and Waibel, "Translation Model Pruning via Usage Statistics for Statistical Machine Translation", NAACL
    2007; Wuebker, Mauser and Ney, "Training Phrase Translation Models with Leaving-One-Out", ACL 2010.
    """

    name: str = "usage"
    needs: frozenset[Measure[Any]] = frozenset({USES})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset({COUNTS})

    def scores(self, measures: Measures) -> FloatArray:
        """Return the number of uses of the pair."""
        return measures[USES]

    def factor(self, measures: Measures) -> FloatArray:
        """Return the uses per extraction, with one pseudo-count at the average rate of the table."""
        extracted = measures.total(COUNTS)
        usual = np.float32(measures.total(USES) / extracted) if extracted > 0 else np.float32(0)
        return (measures[USES] + usual) / (measures[COUNTS] + np.float32(1))


@dataclass(frozen=True)
class Top:
    """Rank of an entry among those of its source by model score, as in Moses' prunePhraseTable."""

    name: str = "top"
    needs: frozenset[Measure[Any]] = frozenset({MODEL_SCORES})
    by_source: bool = True
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Return 0 for the best, -1 for the next, and so on; ties are broken by table order."""
        scores = measures[MODEL_SCORES]
        groups = np.repeat(np.arange(len(measures.source_lengths)), np.diff(measures.group_offsets))
        order = np.lexsort((-scores, measures.malformed, groups))
        negative_ranks = np.empty(len(scores), np.float32)
        negative_ranks[order] = measures.group_offsets[groups] - np.arange(len(scores))
        return negative_ranks

    def factor(self, measures: Measures) -> FloatArray:
        """Return 1 for the best, 1/2 for the next, and so on."""
        return np.float32(1) / (np.float32(1) - self.scores(measures))


@dataclass(frozen=True)
class Random:
    """Random scores: the baseline of experiments.

    Args:
        seed: seed of the random numbers.
    """

    seed: int = 1
    name: str = "random"
    needs: frozenset[Measure[Any]] = frozenset()
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Return uniform numbers in [0, 1), drawn in table order."""
        numbers = np.random.PCG64(self.seed)
        # Each step of the generator produces two float32 numbers.
        numbers.advance(measures.first // 2)
        odd = measures.first % 2
        return np.random.Generator(numbers).random(odd + len(measures), np.float32)[odd:]

    factor = scores


CRITERIA: tuple[Criterion, ...] = (
    Semantic(), Parallel(), Syntactic(), Significant(), Composition(), Usage(), Probability(), Count(), Top(), Random(),
)  # fmt: skip
