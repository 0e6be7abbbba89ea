"""The recursive auto-encoder as a kind of encoder, `--encoder rae`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from phrasetool.encoders.protocols import EncoderKind
from phrasetool.encoders.rae.parameters import RaeParameters
from phrasetool.phrases import FloatArray

if TYPE_CHECKING:
    from phrasetool.encoders.protocols import EncoderModule, PackedEncoder


@dataclass(frozen=True)
class Rae(EncoderKind):
    """The recursive auto-encoder, as `--encoder rae`."""

    name: ClassVar[str] = "rae"
    summary: ClassVar[str] = "a recursive auto-encoder: adjacent vectors merged greedily"
    reconstructs: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {}

    def word_dimension(self, dimension: int) -> int:
        """n: a word is a phrase."""
        return dimension

    def initial(self, word_vectors: FloatArray, dimension: int, start: str, rng: np.random.Generator) -> RaeParameters:
        """Parameters to start from.

        Args:
            word_vectors: shape (V, n), used as they are.
            dimension: n.
            start: `averaging` (a parent is about the mean of its children) or `normal` (the paper's).
            rng: source of randomness.
        """
        make = RaeParameters.averaging if start == "averaging" else RaeParameters.random
        return make(word_vectors, rng)

    def parameters(self, arrays: Mapping[str, FloatArray]) -> RaeParameters:
        """Parameters from named arrays.

        Raises:
            KeyError: an array is missing.
            ValueError: they do not fit together.
        """
        return RaeParameters(**{name: arrays[name] for name in RaeParameters.__annotations__})

    def module(self, parameters: RaeParameters) -> EncoderModule:
        """A module to train."""
        from phrasetool.encoders.rae.module import RecursiveAutoencoder

        return RecursiveAutoencoder(parameters)

    def pack(self, parameters: RaeParameters) -> PackedEncoder:
        """The parameters laid out for scoring."""
        from phrasetool.encoders.rae.packed import PackedRae

        return PackedRae(parameters)
