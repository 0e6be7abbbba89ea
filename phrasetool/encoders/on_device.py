"""Encoding by an encoder's torch module, on a GPU, in the place of the kernels."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from phrasetool.phrases import FloatArray, Phrases

if TYPE_CHECKING:
    from phrasetool.encoders.protocols import EncoderKind, EncoderModule, EncoderParameters

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
        found = np.zeros((2, len(phrases), self._dimension), np.float32)
        # Phrases of one length together, so that none waits for longer ones; those without words say nothing.
        order = np.argsort(phrases.lengths, kind="stable")
        order = order[phrases.lengths[order] > 0]
        for first in range(0, len(order), _BATCH):
            rows = order[first : first + _BATCH]
            found[:, rows] = self._batch(phrases.select(rows), unit)
        return found[0], found[1]

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
