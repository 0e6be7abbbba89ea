"""Pruning criteria, which score each entry from the measures of the whole table.

The larger an entry's score, the longer the entry is kept.  In a product, a criterion counts by its
factor, which is bounded where the score is not: no criterion alone can keep an entry that the others find useless.
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

# Loss of an entry without a composition, where it must be a number.
_NO_COMPOSITION = np.float32(30.0)
# Bounds of the loss that is counted for a use.  A composition that costs nothing by the table's scores may still be out
# of the decoder's reach: it may need a jump, a part that is pruned, or a place in a full stack.  The bounds were best
# on development data, see benchmarks/ranking_on_dev.py.
_LEAST_LOSS = np.float32(0.3)
_MOST_LOSS = np.float32(1.0)


class Criterion(Protocol):
    """One measure by which entries are ranked."""

    @property
    def name(self) -> str:
        """As in `--method`."""

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """The measures that the criterion needs, besides probabilities."""

    @property
    def factor_needs(self) -> frozenset[Measure[Any]]:
        """The measures that a product needs in addition."""

    @property
    def by_source(self) -> bool:
        """Whether an entry is compared with the others of its source, which have to stand together then."""

    def scores(self, measures: Measures) -> FloatArray:
        """float32, shape (N,): the larger, the more an entry deserves to stay; may be infinite, never NaN."""

    def factor(self, measures: Measures) -> FloatArray:
        """float32, shape (N,): at least 0 and finite, for a product."""


@dataclass(frozen=True)
class Semantic:
    """Both similarities of Zhang et al. (2014, section 4.3): an entry is removed when both are low.

    Attributes:
        similarities: the measure.
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
        """The better similarity; infinite where a side has only unknown words."""
        similarities = measures[self.similarities]
        # Column by column: along rows of one or two numpy takes ten times as long.
        best: FloatArray = np.maximum(similarities[:, 0], similarities[:, -1])
        best[~measures[SCORED_MASKS[self.similarities]]] = np.inf
        return best

    def factor(self, measures: Measures) -> FloatArray:
        """The mean similarity, at least 0.02; 1 where a side has only unknown words."""
        mean = measures[self.similarities].mean(axis=1, dtype=np.float32)
        known = measures[SCORED_MASKS[self.similarities]]
        return np.where(known, np.clip(mean, np.float32(0.02), np.float32(1)), np.float32(1))


@dataclass(frozen=True)
class Parallel(Semantic):
    """The probability that both sides are translations of each other, where a classifier says it: its similarity."""

    name: str = "parallel"
    similarities: Measure[np.float32] = PARALLEL


@dataclass(frozen=True)
class Syntactic(Semantic):
    """How alike the syntax of both sides is, where an encoder of syntax says it: its similarity."""

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
        """-ln p."""
        return measures[SIGNIFICANCE]

    def factor(self, measures: Measures) -> FloatArray:
        """A tenth of -ln p, between 0.02 and 2."""
        tenth: FloatArray = measures[SIGNIFICANCE] / np.float32(10)
        return tenth.clip(np.float32(0.02), np.float32(2))


@dataclass(frozen=True)
class Composition:
    """How often the pair was seen, times what the model loses without it (Zens et al. 2012, Ling et al. 2012)."""

    name: str = "composition"
    needs: frozenset[Measure[Any]] = frozenset({COUNTS, LOSSES})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Count times loss; without a composition, the loss counts as 30."""
        losses = measures[LOSSES]
        return measures[COUNTS] * np.where(np.isfinite(losses), losses, _NO_COMPOSITION)

    def factor(self, measures: Measures) -> FloatArray:
        """Count times loss, the loss between 0.3 and 1."""
        return measures[COUNTS] * np.clip(measures[LOSSES], _LEAST_LOSS, _MOST_LOSS)


@dataclass(frozen=True)
class Probability:
    """p(target | source) of the table."""

    name: str = "probability"
    needs: frozenset[Measure[Any]] = frozenset({PROBABILITIES})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """The third score."""
        return measures[PROBABILITIES]

    def factor(self, measures: Measures) -> FloatArray:
        """The third score, at least 0."""
        return np.maximum(measures[PROBABILITIES], np.float32(0))


@dataclass(frozen=True)
class Count:
    """How often the pair was extracted."""

    name: str = "count"
    needs: frozenset[Measure[Any]] = frozenset({COUNTS})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """The joint count."""
        return measures[COUNTS]

    factor = scores


@dataclass(frozen=True)
class Usage:
    """How often forced decoding of the training set used the pair (Eck, Vogel and Waibel 2007).

    An entry that was extracted from a single sentence explains that sentence, and maybe no other; so the uses should
    come from leave-one-out decoding (Wuebker, Mauser and Ney 2010), in which a sentence does without what only it gave.

    Eck, Vogel and Waibel, "Translation Model Pruning via Usage Statistics for Statistical Machine Translation", NAACL
    2007; Wuebker, Mauser and Ney, "Training Phrase Translation Models with Leaving-One-Out", ACL 2010.
    """

    name: str = "usage"
    needs: frozenset[Measure[Any]] = frozenset({USES})
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset({COUNTS})

    def scores(self, measures: Measures) -> FloatArray:
        """How often the pair was used."""
        return measures[USES]

    def factor(self, measures: Measures) -> FloatArray:
        """Uses for each time the pair was extracted, as if it had been extracted once more and used as others are."""
        extracted = measures.total(COUNTS)
        usual = np.float32(measures.total(USES) / extracted) if extracted > 0 else np.float32(0)
        return (measures[USES] + usual) / (measures[COUNTS] + np.float32(1))


@dataclass(frozen=True)
class Top:
    """The place of an entry among those of its source by model score, as Moses' prunePhraseTable chooses."""

    name: str = "top"
    needs: frozenset[Measure[Any]] = frozenset({MODEL_SCORES})
    by_source: bool = True
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """0 for the best, -1 for the next, and so on; ties by table order."""
        scores = measures[MODEL_SCORES]
        groups = np.repeat(np.arange(len(measures.source_lengths)), np.diff(measures.group_offsets))
        order = np.lexsort((-scores, measures.malformed, groups))
        places = np.empty(len(scores), np.float32)
        places[order] = measures.group_offsets[groups] - np.arange(len(scores))
        return places

    def factor(self, measures: Measures) -> FloatArray:
        """1 for the best, 1/2 for the next, and so on."""
        return np.float32(1) / (np.float32(1) - self.scores(measures))


@dataclass(frozen=True)
class Random:
    """No criterion at all: the control of an experiment.

    Args:
        seed: of the numbers.
    """

    seed: int = 1
    name: str = "random"
    needs: frozenset[Measure[Any]] = frozenset()
    by_source: bool = False
    factor_needs: frozenset[Measure[Any]] = frozenset()

    def scores(self, measures: Measures) -> FloatArray:
        """Uniform in [0, 1), drawn in table order."""
        numbers = np.random.PCG64(self.seed)
        # A step of the generator gives two of them.
        numbers.advance(measures.first // 2)
        odd = measures.first % 2
        return np.random.Generator(numbers).random(odd + len(measures), np.float32)[odd:]

    factor = scores


CRITERIA: tuple[Criterion, ...] = (
    Semantic(), Parallel(), Syntactic(), Significant(), Composition(), Usage(), Probability(), Count(), Top(), Random(),
)  # fmt: skip
