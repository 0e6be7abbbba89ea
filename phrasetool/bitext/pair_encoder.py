"""What mining needs of a model: vectors of both languages in one space, and, where it is a classifier, p(parallel)."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from phrasetool.errors import ModelError
from phrasetool.phrases import FloatArray
from phrasetool.text_encoders.loading import find_text_encoder
from phrasetool.text_encoders.offline import one_torch_thread
from phrasetool.text_encoders.text_encoder import Side, TextEncoder

# Pairs that are classified at a time; fixed, so that p does not depend on threads.
BATCH = 2048


class PairModel(Protocol):
    """A model of sentence pairs.

    Attributes:
        identity: differs when what it gives differs.
    """

    @property
    def identity(self) -> str:
        """See the class."""

    def encode(self, sentences: Sequence[str], side: Side) -> FloatArray:
        """Vectors of N sentences; float32, shape (N, n)."""

    def probabilities(self, sources: Sequence[str], targets: Sequence[str]) -> FloatArray:
        """The probability that each of N pairs is parallel; float32, shape (N,)."""


@dataclass(frozen=True)
class PairEncoder:
    """What was found in one folder, or in two.

    Attributes:
        name: what messages call it.
        identities: of the encoders of both sides.
        load: gives the encoders.
        model: a classifier, if it is one.
    """

    name: str
    identities: tuple[str, str]
    load: Callable[[], tuple[TextEncoder, TextEncoder]]
    model: PairModel | None = None


def find_pair_encoder(encoder: str, target_encoder: str | None = None) -> PairEncoder:
    """Sentence encoders from elsewhere, see `find_text_encoder`.

    Args:
        encoder: of both sides, or of the source.
        target_encoder: of the target, of the same space, if it is another.

    Raises:
        ModelError: there is no encoder, or it is refused.
    """
    source = find_text_encoder(encoder)
    target = find_text_encoder(target_encoder) if target_encoder else source

    def load() -> tuple[TextEncoder, TextEncoder]:
        first = source.load()
        return first, first if target is source else target.load()

    name = encoder if target is source else f"{encoder} and {target_encoder}"
    return PairEncoder(name, (source.identity, target.identity), load)


def load_pair_model(folder: str | os.PathLike[str]) -> PairEncoder:
    """A classifier of sentence pairs that this package trained.

    Raises:
        ModelError: there is none.
    """
    from phrasetool.models.storage import load_model

    found: Any = load_model(folder)
    if not callable(getattr(found, "encode", None)) or not callable(getattr(found, "probabilities", None)):
        raise ModelError(f"{folder}: no classifier of sentence pairs", remedy="train a classifier of pairs")
    model: PairModel = found
    encoder = ModelEncoder(model)
    return PairEncoder(os.fspath(folder), (encoder.identity,) * 2, lambda: (encoder, encoder), model)


class ModelEncoder:
    """A classifier as an encoder of text.

    Args:
        model: the classifier.

    Attributes:
        dimension, identity: see `TextEncoder`.
    """

    def __init__(self, model: PairModel) -> None:
        self._model = model
        self.dimension = int(model.encode(["a"], "source").shape[1])
        self.identity = f"pairs-{model.identity}"

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """See `TextEncoder`."""
        return np.asarray(self._model.encode(texts, side), np.float32)

    def at_work(self) -> Any:
        """One thread a batch."""
        return _one_thread()


def classified(
    model: PairModel, pairs: Iterator[tuple[list[str], list[str]]], without_length: bool = False
) -> Iterator[FloatArray]:
    """The probability that pairs are parallel, batch by batch.

    Args:
        model: the classifier.
        pairs: sources and targets of batches.
        without_length: as if it saw no lengths; NaN where the model cannot say.

    Raises:
        ModelError: the model gives something else than probabilities.
    """
    options: dict[str, Any] = {}
    if without_length:
        if "length" not in inspect.signature(model.probabilities).parameters:
            yield from (np.full(len(sources), np.nan, np.float32) for sources, _ in pairs)
            return
        options["length"] = False
    with _one_thread():
        for sources, targets in pairs:
            found = np.asarray(model.probabilities(sources, targets, **options), np.float32)
            if found.shape != (len(sources),) or not ((found >= 0) & (found <= 1)).all():
                raise ModelError("the classifier gave something else than a probability for each pair")
            yield found


def _one_thread() -> contextlib.AbstractContextManager[None]:
    """Nothing, where the model does not compute with PyTorch."""
    return one_torch_thread() if "torch" in sys.modules else contextlib.nullcontext()
