"""Base class of encoders, their interfaces and registry, and encoding in batches, on the CPU or another device."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np

from phrasetool.options import Options, registered, with_options
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases

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
        name: name for users (`--architecture`); columns and signatures begin with it.
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
            start: one of `phrasetool.phrase_encoder.settings.STARTS`; an encoder may have one start only.
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


class BatchedEncoder(ABC):
    """Cuts phrases into batches, so that memory does not grow with their number.

    Args:
        vocabulary_size: word ids are below it.
        dimension: n.
    """

    # Positions of a batch at most, if it has more than one phrase; and those of a phrase in addition to its words.
    batch_positions: int
    more_positions: ClassVar[int] = 0

    def __init__(self, vocabulary_size: int, dimension: int) -> None:
        self._vocabulary_size = vocabulary_size
        self._dimension = dimension

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Encode phrases.

        Args:
            phrases: N phrases; every word id is below the vocabulary size.
            unit: scale the vectors to length one (zero vectors stay zero).

        Returns:
            The phrase vectors and their transformations, both float32 of shape (N, n).

        Raises:
            ValueError: a word id is outside the vocabulary.
        """
        words, offsets = np.ascontiguousarray(phrases.words, np.int32), phrases.offsets
        if len(words) and not 0 <= int(words.min()) <= int(words.max()) < self._vocabulary_size:
            raise ValueError("a word id is outside the vocabulary")
        encoded = np.empty((len(phrases), self._dimension), np.float32)
        transformed = np.empty_like(encoded)
        starts = offsets + self.more_positions * np.arange(len(offsets))
        first = 0
        while first < len(phrases):
            limit = starts[first] + self.batch_positions
            last = max(first + 1, int(np.searchsorted(starts, limit, side="right")) - 1)
            self._encode_batch(
                offsets[first : last + 1] - offsets[first],
                words[offsets[first] : offsets[last]],
                unit,
                encoded[first:last],
                transformed[first:last],
            )
            first = last
        return encoded, transformed

    @abstractmethod
    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        """Fill `encoded` and `transformed`, each of shape (B, n), for B phrases."""


# Phrases that are encoded together: enough for a GPU, few enough for its memory.
_BATCH = 1 << 14


class PackedOnDevice:
    """The parameters of one language on a device; what `EncoderKind.pack` gives for a CPU.

    Args:
        kind: of the encoder.
        parameters: of the language.
        device: as torch calls it.
    """

    def __init__(self, kind: EncoderKind, parameters: EncoderParameters, device: str) -> None:
        self.dimension = parameters.dimension
        self._of = kind, parameters, device
        self._module: EncoderModule | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process the parameters go to its own device.
        return PackedOnDevice, self._of

    def encoder(self, node_capacity: int) -> DeviceEncoder:
        """An encoder; all threads share the module, one at a time."""
        kind, parameters, device = self._of
        with self._lock:
            if self._module is None:
                self._module = kind.module(parameters).to(device)
                self._module.train(False)
        return DeviceEncoder(self._module, len(parameters.word_vectors), self.dimension, self._lock)


class DeviceEncoder:
    """Encodes with a module, as `PhraseEncoder`.

    Vectors differ from those of the kernels by rounding: by 1e-6 or so, and more where a tree of a recursive
    auto-encoder could as well be another.

    Args:
        module: of one language.
        vocabulary_size: word ids are below it.
        dimension: n.
        lock: held while the module works.
    """

    def __init__(self, module: EncoderModule, vocabulary_size: int, dimension: int, lock: threading.Lock) -> None:
        self._module, self._vocabulary_size, self._dimension, self._lock = module, vocabulary_size, dimension, lock

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Phrase vectors and their transformations, see `PhraseEncoder`.

        Raises:
            ValueError: a word id is outside the vocabulary.
            LengthError: a phrase is longer than the encoder can encode.
        """
        words = phrases.words
        if len(words) and not 0 <= int(words.min()) <= int(words.max()) < self._vocabulary_size:
            raise ValueError("a word id is outside the vocabulary")
        vectors = np.zeros((2, len(phrases), self._dimension), np.float32)
        # Phrases of one length together, so that none waits for longer ones; those without words say nothing.
        order = np.argsort(phrases.lengths, kind="stable")
        order = order[phrases.lengths[order] > 0]
        for first in range(0, len(order), _BATCH):
            rows = order[first : first + _BATCH]
            vectors[:, rows] = self._batch(phrases.select(rows), unit)
        return vectors[0], vectors[1]

    def _batch(self, phrases: Phrases, unit: bool) -> FloatArray:
        import torch

        with self._lock, torch.no_grad():
            vectors, _ = self._module(phrases)
            transformed = self._module.transformed(vectors)
            # Nor do words without a vector, and what a transformation adds to nothing.
            both = torch.stack([vectors, transformed.where((vectors != 0).any(1, keepdim=True), 0)])
            if unit:
                norms = both.norm(dim=2, keepdim=True)
                both = both / norms.where(norms > 0, 1)
            array: FloatArray = both.cpu().numpy()
            return array


# Name on the command line -> `module:class` of an `EncoderKind`.
ENCODERS = {
    "rae": "phrasetool.phrase_encoder.kinds:Rae",
    "mean-max": "phrasetool.phrase_encoder.kinds:MeanMax",
    "mean": "phrasetool.phrase_encoder.kinds:Mean",
}


def encoder_kind(name: str, options: Mapping[str, Any] | None = None) -> EncoderKind:
    """A registered encoder.

    Args:
        name: one of `ENCODERS`.
        options: some of its options.

    Raises:
        ValueError: an unknown name or option, or a value out of range.
    """
    return cast(EncoderKind, with_options(registered(ENCODERS, name, "encoder"), name, options or {}))
