"""The mean of fixed word vectors as a kind of encoder, `--encoder mean`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from phrasetool.encoders.mean.parameters import MeanParameters
from phrasetool.encoders.protocols import EncoderKind
from phrasetool.options import option
from phrasetool.phrases import FloatArray

if TYPE_CHECKING:
    from phrasetool.encoders.protocols import EncoderModule, PackedEncoder

TRANSFORMATIONS = ("learnt", "identity")


@dataclass(frozen=True)
class Mean(EncoderKind):
    """The mean of fixed word vectors, as `--encoder mean`.

    Attributes:
        transformation: `learnt`, a matrix and a bias each way; or `identity`, for vectors of both languages in one
            space: then nothing is trained.

    Raises:
        ValueError: an option is out of range.
    """

    transformation: str = option(
        "learnt",
        "learnt; or identity, for word vectors of one space: then nothing is trained.",
        choices=TRANSFORMATIONS,
    )

    name: ClassVar[str] = "mean"
    summary: ClassVar[str] = "the mean of fixed word vectors, such as fastText's or MUSE's"
    fixed_words: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "dimension": 300, "alpha": 0.0, "pretrain_iterations": 0, "unknown_rate": 0.0, "learning_rate": 0.003,
    }  # fmt: skip

    @property
    def learns(self) -> bool:
        """Whether there is anything to train."""
        return self.transformation == "learnt"

    def word_dimension(self, dimension: int) -> int:
        """As many."""
        return dimension

    def initial(self, word_vectors: FloatArray, dimension: int, start: str, rng: np.random.Generator) -> MeanParameters:
        """The words as they are, and the identity.

        Args:
            word_vectors: shape (V, n).
            dimension: n.
            start: any.
            rng: not drawn from.
        """
        vectors = np.array(word_vectors, np.float32)
        vectors[:1] = 0
        return MeanParameters(vectors, np.eye(dimension, dtype=np.float32), np.zeros(dimension, np.float32))

    def parameters(self, arrays: Mapping[str, FloatArray]) -> MeanParameters:
        """Parameters from named arrays.

        Raises:
            KeyError: an array is missing.
            ValueError: they do not fit together.
        """
        return MeanParameters(**{name: arrays[name] for name in MeanParameters.__annotations__})

    def module(self, parameters: MeanParameters) -> EncoderModule:
        """A module to train."""
        from phrasetool.encoders.mean.module import MeanEncoder

        return MeanEncoder(parameters)

    def pack(self, parameters: MeanParameters) -> PackedEncoder:
        """The parameters laid out for scoring."""
        from phrasetool.encoders.mean.packed import PackedMean

        return PackedMean(parameters, carried=self.learns)
