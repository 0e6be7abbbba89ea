"""Calibration of cosines, so that a similarity means the same for every model.

How large the cosine of a translation is depends on the loss, its temperature, the dimension and the language pair: with
one model most training pairs have a cosine above 0.7, with another model hardly any.  A calibration is a piecewise
linear, increasing map of [-1, 1] onto itself that is fitted to the training pairs: the median cosine of random pairs
becomes 0, and the cosine that all but a hundredth of the training pairs exceed becomes 0.7.  The order of entries by
either similarity does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from phrasetool.kernels.jit import borrowing_float_kernel
from phrasetool.phrases import FloatArray, Phrases

# The similarity that a training pair as unlike as `_SHARE` of them gets: the threshold of Zhang et al. (2014).
LEVEL = 0.7
_SHARE = 0.01
# Pairs that a calibration is fitted to, at most.
_SAMPLE = 200_000
# Cosines closer together do not tell pairs from random pairs.
_LEAST_DISTANCE = 0.01


@borrowing_float_kernel
def _calibrate(similarities: FloatArray, random: float, pair: float) -> None:
    one = np.float32(1.0)
    level = np.float32(LEVEL)
    below = one / (one + random)
    between = level / (pair - random)
    above = (one - level) / (one - pair)
    for i in range(similarities.shape[0]):
        for k in range(similarities.shape[1]):
            x = similarities[i, k]
            if x < random:
                x = max((x - random) * below, -one)
            elif x < pair:
                x = (x - random) * between
            else:
                x = one - (one - x) * above
            similarities[i, k] = x


@dataclass(frozen=True)
class Calibration:
    """A piecewise linear map through (-1, -1), (random, 0), (pair, 0.7) and (1, 1).

    Attributes:
        random: the median cosine of random pairs.
        pair: the cosine that all but a hundredth of the training pairs exceed in one direction at least.

    Raises:
        ValueError: not -1 < random < pair < 1.
    """

    random: float
    pair: float

    def __post_init__(self) -> None:
        if not -1 < self.random < self.pair < 1:
            raise ValueError(f"expected -1 < random < pair < 1, not {self.random!r} and {self.pair!r}")

    def apply(self, similarities: FloatArray) -> None:
        """Calibrate cosines in place.

        Args:
            similarities: float32, shape (N, C), C-contiguous, in [-1, 1].

        Raises:
            ValueError: the array has another type or shape.
        """
        if similarities.dtype != np.float32 or similarities.ndim != 2 or not similarities.flags.c_contiguous:
            raise ValueError("similarities must be a contiguous float32 matrix")
        _calibrate(similarities, np.float32(self.random), np.float32(self.pair))

    def as_dict(self) -> dict[str, float]:
        """For `config.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """The inverse of `as_dict`.

        Raises:
            ValueError: a value is missing, is not a number, or is out of range.
        """
        try:
            return cls(float(values["random"]), float(values["pair"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"`calibration` needs the numbers `random` and `pair` ({error})") from error

    @classmethod
    def fit(
        cls, score_pairs: Callable[[Phrases, Phrases], FloatArray], sources: Phrases, targets: Phrases, seed: int
    ) -> Calibration | None:
        """Fit a calibration to training pairs.

        Args:
            score_pairs: of the trained model, without a calibration; see `BilingualScorer.score_pairs`.
            sources, targets: the sides of the N training pairs.
            seed: of the random pairs.

        Returns:
            None where the model does not tell the pairs from random pairs, so that there is nothing to calibrate.
        """
        rng = np.random.default_rng([seed, 7])
        rows = np.sort(rng.permutation(len(sources))[:_SAMPLE])
        sources, targets = sources.select(rows), targets.select(rows)
        if not len(rows):
            return None
        pairs = score_pairs(sources, targets).max(axis=1)
        shuffled = score_pairs(sources, targets.select(rng.permutation(len(targets)))).max(axis=1)
        # Rounded, so that the last bits of a sum do not decide.
        pair, random = round(float(np.quantile(pairs, _SHARE)), 4), round(float(np.median(shuffled)), 4)
        return cls(random, pair) if random > -1 and random + _LEAST_DISTANCE < pair < 1 else None
