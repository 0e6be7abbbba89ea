"""Thresholds of scores: a number, or one of the two thresholds of significance that have names."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Just above and just below -ln p of a pair that was seen once, together.
NAMED = ("a+e", "a-e")


@dataclass(frozen=True)
class Threshold:
    """A threshold as people write it.

    Args:
        text: a number, or one of `NAMED`.

    Raises:
        ValueError: it is neither.
    """

    text: str

    def __post_init__(self) -> None:
        if self.named:
            return
        try:
            number = float(self.text)
        except ValueError:
            raise ValueError(f"{self.text!r} is not a number, a+e or a-e") from None
        if math.isnan(number):
            raise ValueError("a threshold must be a number, not NaN")

    @classmethod
    def of(cls, number: float) -> Threshold:
        """A number as a threshold.

        Raises:
            ValueError: it is NaN.
        """
        return cls(repr(float(number)))

    @property
    def named(self) -> bool:
        """Whether it is one of `NAMED`, which only significance knows."""
        return self.text in NAMED

    def value(self, alpha: float) -> float:
        """The number.

        Args:
            alpha: -ln p of a pair that occurs once, together.
        """
        if not self.named:
            return float(self.text)
        from phrasetool.pruning.significance import EPSILON

        # One sentence pair has alpha 0.
        return max(alpha + (EPSILON if self.text == "a+e" else -EPSILON), 0.0)
