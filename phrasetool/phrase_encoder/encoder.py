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
        """n, the dimension of a phrase vector."""

    def arrays(self) -> dict[str, FloatArray]:
        """Return the arrays by name, in the order of the definition."""


class EncoderModule(Protocol):
    """An `nn.Module` that encodes one language and can be trained."""

    def __call__(self, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Return phrase vectors, shape (B, n), and reconstruction errors, shape (B,) (zeros if it has none)."""

    def transformed(self, vectors: Tensor) -> Tensor:
        """Return the vectors in the other language's space, shape (B, n)."""

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """Return every trained parameter once, as `words`, `rec` (the encoder) or `sem` (the transformation).

        The first of `words`, if any, is the table of word vectors, with one row per word.
        """

    def numpy(self) -> EncoderParameters:
        """Return the current values."""

    def seed_dropout(self, seed: int) -> None:
        """Set the seed of the following dropout masks, which then do not depend on the draws of other modules.

        Args:
            seed: 0 or more, below 2**63.
        """

    # Members of `nn.Module`.

    @property
    def to(self) -> Callable[..., Any]:
        """Method that moves the module to a device."""

    @property
    def named_parameters(self) -> Callable[..., Any]:
        """Method that returns names and parameters."""

    @property
    def train(self) -> Callable[..., Any]:
        """Method that turns dropout on or off."""


class PhraseEncoder(Protocol):
    """Encoder of phrases, used by one thread."""

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return phrase vectors and their transformations, both float32 (N, n), of length one (or zero) if `unit`.

        The vector of a phrase depends only on the phrase, not on other phrases of the call or on earlier calls.

        Raises:
            ValueError: a word id is outside the vocabulary.
            LengthError: a phrase is longer than the encoder can encode.
        """


class PackedEncoder(Protocol):
    """Parameters laid out for encoding; read-only, so threads share them.

    Attributes:
        dimension: n, the dimension of the phrase vectors.
    """

    dimension: int

    def encoder(self, node_capacity: int) -> PhraseEncoder:
        """Return an encoder for one thread.

        Args:
            node_capacity: maximum number of intermediate vectors to keep at a time.
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
        defaults: training settings of this encoder that override those of the objective.
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

    @property
    def trains_layers(self) -> bool:
        """Whether other parameters than word vectors and the transformation are trained."""
        return True

    @abstractmethod
    def word_dimension(self, dimension: int) -> int:
        """Return the size of a word vector for phrase vectors of size `dimension`.

        Raises:
            ValueError: the encoder cannot make vectors of this size.
        """

    @abstractmethod
    def initial(
        self, word_vectors: FloatArray, dimension: int, start: str, rng: np.random.Generator
    ) -> EncoderParameters:
        """Return initial parameters.

        Args:
            word_vectors: shape (V, word_dimension(dimension)), used unchanged.
            dimension: n.
            start: one of `phrasetool.phrase_encoder.settings.STARTS`; an encoder may have only one start.
            rng: source of randomness.
        """

    @abstractmethod
    def parameters(self, arrays: Mapping[str, FloatArray]) -> EncoderParameters:
        """Return parameters from the result of `EncoderParameters.arrays`; other names are ignored.

        Raises:
            KeyError: an array is missing.
            ValueError: the arrays do not agree with each other or with the options.
        """

    @abstractmethod
    def module(self, parameters: Any) -> EncoderModule:
        """Return a module to train.

        Args:
            parameters: initial values, of the type that `initial` returns.
        """

    @abstractmethod
    def pack(self, parameters: Any) -> PackedEncoder:
        """Return parameters, of the type that `initial` returns, laid out for scoring."""


class BatchedEncoder(ABC):
    """Base class of encoders that split phrases into batches, so that memory does not grow with their number.

    Args:
        vocabulary_size: word ids are below it.
        dimension: n.
    """

    # Maximum positions of a batch of more than one phrase; and positions of a phrase in addition to its words.
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


# Number of phrases that are encoded together: enough for a GPU, few enough for its memory.
_BATCH = 1 << 14


class PackedOnDevice:
    """Parameters of one language on a device; the counterpart of the result of `EncoderKind.pack` on a CPU.

    Args:
        kind: kind of the encoder.
        parameters: parameters of the language.
        device: name of a torch device.
    """

    def __init__(self, kind: EncoderKind, parameters: EncoderParameters, device: str) -> None:
        self.dimension = parameters.dimension
        self._of = kind, parameters, device
        self._module: EncoderModule | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process moves the parameters to the device itself.
        return PackedOnDevice, self._of

    def encoder(self, node_capacity: int) -> DeviceEncoder:
        """Return an encoder; all threads share the module, one at a time."""
        kind, parameters, device = self._of
        with self._lock:
            if self._module is None:
                self._module = kind.module(parameters).to(device)
                self._module.train(False)
        return DeviceEncoder(self._module, len(parameters.word_vectors), self.dimension, self._lock)


class DeviceEncoder:
    """A `PhraseEncoder` that uses a torch module.

    Vectors differ from those of the kernels by rounding: by about 1e-6, and by more where rounding changes the tree of
    a recursive auto-encoder.

    Args:
        module: module of one language.
        vocabulary_size: word ids are below it.
        dimension: n.
        lock: held while the module runs.
    """

    def __init__(self, module: EncoderModule, vocabulary_size: int, dimension: int, lock: threading.Lock) -> None:
        self._module, self._vocabulary_size, self._dimension, self._lock = module, vocabulary_size, dimension, lock

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return phrase vectors and their transformations, see `PhraseEncoder`.

        Raises:
            ValueError: a word id is outside the vocabulary.
            LengthError: a phrase is longer than the encoder can encode.
        """
        words = phrases.words
        if len(words) and not 0 <= int(words.min()) <= int(words.max()) < self._vocabulary_size:
            raise ValueError("a word id is outside the vocabulary")
        vectors = np.zeros((2, len(phrases), self._dimension), np.float32)
        # Phrases of one length together, so that none waits for longer ones; vectors of phrases without words are zero.
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
            # So are those of words without a vector, and the transformations of zero vectors.
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
    """Return a registered encoder.

    Args:
        name: one of `ENCODERS`.
        options: values of some of its options.

    Raises:
        ValueError: an unknown name or option, or a value out of range.
    """
    return cast(EncoderKind, with_options(registered(ENCODERS, name, "encoder"), name, options or {}))
