"""What a sample of a table's pairs says of an encoder: how its similarities lie, and whether they tell pairs apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.ranking import CHANCE, pairwise_auc

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Fewer pairs, or fewer different targets, say nothing.
_FEWEST, _FEWEST_TARGETS = 300, 20
Similarity = Callable[[Int64Array, Int64Array], tuple[FloatArray, Mask]]


@dataclass(frozen=True)
class EncoderFit:
    """What a sample of pairs says.

    Attributes:
        pairs: of which both sides have a vector.
        quantiles: of their similarities, at `SHARES`.
        auc: the chance that a pair is more similar than its source with the target of another; None if there are too
            few to tell.
    """

    pairs: int
    quantiles: tuple[float, ...]
    auc: float | None

    @property
    def by_chance(self) -> bool:
        """Whether it tells pairs from others hardly better than chance."""
        return self.auc is not None and self.auc < CHANCE

    @property
    def words(self) -> str:
        """All of it, in words."""
        if not self.pairs:
            return "no pair of the table has vectors on both sides"
        parts = [f"{share:.0%} {value:.3f}" for share, value in zip(SHARES, self.quantiles, strict=True)]
        told = "" if self.auc is None else f"tells pairs from others with AUC {self.auc:.2f} ({self.pairs:,} entries); "
        return f"{told}similarities at {', '.join(parts)}; thresholds of other encoders and models do not apply"

    def as_dict(self) -> dict[str, Any]:
        """For statistics."""
        found = asdict(self)
        found["quantiles"] = dict(zip(map(str, SHARES), self.quantiles, strict=False))
        return found

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> EncoderFit:
        """What `as_dict` gave.

        Raises:
            KeyError, TypeError: it is something else.
        """
        return cls(found["pairs"], tuple(found["quantiles"].values()), found["auc"])


def measure_encoder(
    similarity: Similarity, source_rows: Int64Array, target_rows: Int64Array, telling: Mask, seed: int = 1
) -> EncoderFit:
    """Measure on N pairs.

    Args:
        similarity: of pairs of rows, and whether both have a vector.
        source_rows, target_rows: int64, shape (N,).
        telling: bool, shape (N,): pairs that the AUC is of.  One with a word on both sides, such as a name, is similar
            to any encoder.
        seed: of the other targets.
    """
    own, known = similarity(source_rows, target_rows)
    pairs = int(known.sum())
    shown = tuple(round(float(value), 4) + 0.0 for value in np.quantile(own[known], SHARES)) if pairs else ()
    chosen = known & telling
    own, source_rows, target_rows = own[chosen], source_rows[chosen], target_rows[chosen]
    if len(own) < _FEWEST or len(np.unique(target_rows)) < _FEWEST_TARGETS:
        return EncoderFit(pairs, shown, None)
    auc = pairwise_auc(own, target_rows, lambda other: similarity(source_rows, other)[0], seed)
    return EncoderFit(pairs, shown, None if auc is None else round(auc, 4))
