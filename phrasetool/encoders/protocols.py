"""Base class of encoders, and the interfaces of their parameters, trainable modules and kernels.

An encoder turns a phrase into a vector, and maps the vector into the other language's space.  It derives from
`EncoderKind` and is registered by one line in `phrasetool.encoders.ENCODERS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from phrasetool.options import Options
from phrasetool.phrases import FloatArray, Phrases

if TYPE_CHECKING:
    from torch import Tensor, nn


class EncoderParameters(Protocol):
    """The parameters of one language, float32 arrays.  V is the vocabulary size, n the dimension of a phrase vector."""

    @property
    def word_vectors(self) -> FloatArray:
        """Shape (V, w); row 0 is the unknown word."""

    @property
    def dimension(self) -> int:
        """n."""

    def arrays(self) -> dict[str, FloatArray]:
        """Name -> array, in the order of the definition."""


class EncoderModule(Protocol):
    """An `nn.Module` that encodes one language and can be trained."""

    def __call__(self, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Phrase vectors, shape (B, n), and reconstruction errors, shape (B,) (zeros if it reconstructs nothing)."""

    def transformed(self, vectors: Tensor) -> Tensor:
        """The vectors in the other language's space, shape (B, n)."""

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """Every parameter that is trained, once, as `words`, `rec` (the encoder) or `sem` (the transformation).

        The first of `words`, if there is one, is the table of word vectors, with one row per word.
        """

    def numpy(self) -> EncoderParameters:
        """The current values."""

    def seed_dropout(self, seed: int) -> None:
        """Let what is dropped from now on depend on the seed alone, not on what other modules draw meanwhile.

        Args:
            seed: 0 or more, below 2**63.
        """

    # What `nn.Module` gives.

    @property
    def to(self) -> Callable[..., Any]:
        """Moves it to a device."""

    @property
    def named_parameters(self) -> Callable[..., Any]:
        """Names and parameters."""

    @property
    def train(self) -> Callable[..., Any]:
        """Turns dropout on or off."""


class PhraseEncoder(Protocol):
    """Encodes phrases with kernels; used by one thread."""

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Phrase vectors and their transformations, both float32 (N, n), of length one (or zero) if `unit`.

        The vector of a phrase depends on nothing but the phrase: neither on others in the call nor on calls before.

        Raises:
            ValueError: a word id is outside the vocabulary.
            LengthError: a phrase is longer than the encoder can encode.
        """


class PackedEncoder(Protocol):
    """Parameters laid out for the kernels; read-only, so threads share it.

    Attributes:
        dimension: n, of the vectors that it makes.
    """

    dimension: int

    def encoder(self, node_capacity: int) -> PhraseEncoder:
        """An encoder for one thread.

        Args:
            node_capacity: how many intermediate vectors it may keep at a time.
        """


@dataclass(frozen=True)
class EncoderKind(Options, ABC):
    """Encoder with its options: a frozen dataclass whose fields are declared by `phrasetool.options.option`.

    Its module must not import torch or numba when it is imported.

    Attributes:
        name: name for users (`--encoder`); columns and signatures begin with it.
        summary: description of some ten words, for `--help`.
        reconstructs: whether its module has reconstruction errors, so that it can be pre-trained alone.
        fixed_words: whether word vectors are not trained; then a word without a given vector is unknown.
        defaults: settings of training that differ from the objective's when this encoder is trained.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reconstructs: ClassVar[bool] = False
    fixed_words: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {}

    @property
    def learns(self) -> bool:
        """Whether there is anything to train."""
        return True

    @abstractmethod
    def word_dimension(self, dimension: int) -> int:
        """Size of a word vector for phrase vectors of size `dimension`.

        Raises:
            ValueError: the encoder cannot make vectors of this size.
        """

    @abstractmethod
    def initial(
        self, word_vectors: FloatArray, dimension: int, start: str, rng: np.random.Generator
    ) -> EncoderParameters:
        """Parameters to start from.

        Args:
            word_vectors: shape (V, word_dimension(dimension)), used as they are.
            dimension: n.
            start: one of `phrasetool.training.settings.STARTS`; an encoder may have one start only.
            rng: source of randomness.
        """

    @abstractmethod
    def parameters(self, arrays: Mapping[str, FloatArray]) -> EncoderParameters:
        """Parameters from what `EncoderParameters.arrays` gave; other names are ignored.

        Raises:
            KeyError: an array is missing.
            ValueError: arrays do not fit together or with the options.
        """

    @abstractmethod
    def module(self, parameters: Any) -> EncoderModule:
        """Return a module to train.

        Args:
            parameters: initial values, as this encoder makes them.
        """

    @abstractmethod
    def pack(self, parameters: Any) -> PackedEncoder:
        """Return parameters, as this encoder makes them, laid out for scoring."""
