"""What a sentence encoder must bring to score phrases with."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from phrasetool.errors import ModelError
from phrasetool.phrases import FloatArray

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


class TextEncoder(Protocol):
    """Encodes texts of two languages into one space.

    Three more attributes are used where they are there: `parallel`, true if several threads may call it at once;
    `over_long(texts)`, which says how many texts it cuts; and `at_work()`, a context in which it is called.

    Attributes:
        dimension: n, of its vectors.
        identity: differs when what it gives for a text differs.
    """

    dimension: int
    identity: str

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """The vectors of N texts.

        Args:
            texts: at least one.
            side: which side of the table they are from.

        Returns:
            float32, shape (N, n); zeros for a text that it knows nothing of.
        """


def encoded(encoder: TextEncoder, texts: list[str], side: Side, name: str) -> FloatArray:
    """What an encoder gives, if it is what was promised.

    Args:
        encoder: that is asked.
        texts, side: see `TextEncoder.encode`.
        name: what messages call the encoder.

    Raises:
        ModelError: vectors of another shape, or that are not finite.
    """
    vectors = np.asarray(encoder.encode(texts, side), np.float32)
    if vectors.shape != (len(texts), encoder.dimension):
        expected = f"{len(texts)} vectors of dimension {encoder.dimension}"
        raise ModelError(f"{name}: gave an array of shape {vectors.shape}, expected {expected}")
    if not np.isfinite(vectors).all():
        text = texts[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
        raise ModelError(f"{name}: the vector of {text!r} is not finite")
    return vectors
