"""Thresholds of scores: a number or one of the two named thresholds of significance."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Just above and just below -ln p of a pair whose sides occur once each, together.
NAMED = ("a+e", "a-e")


@dataclass(frozen=True)
class Threshold:
    """A threshold in its textual form.

    Args:
        text: a number or one of `NAMED`.

    Raises:
        ValueError: the text is neither.
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
        """Return a number as a threshold.

        Raises:
            ValueError: the number is NaN.
        """
        return cls(repr(float(number)))

    @property
    def named(self) -> bool:
        """Whether the threshold is one of `NAMED`, which only significance supports."""
        return self.text in NAMED

    def value(self, alpha: float) -> float:
        """Return the threshold as a number.

        Args:
            alpha: -ln p of a pair whose sides occur once each, together.
        """
        if not self.named:
            return float(self.text)
        from phrasetool.pruning.significance import EPSILON

        # With a single sentence pair, alpha is 0.
        return max(alpha + (EPSILON if self.text == "a+e" else -EPSILON), 0.0)
