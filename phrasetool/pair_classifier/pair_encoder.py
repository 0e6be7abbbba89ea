"""What mining needs of a model: vectors of both languages in one space, and, where it is a classifier, p(parallel)."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from phrasetool.errors import ModelError
from phrasetool.nn.device import one_torch_thread
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array
from phrasetool.sentences import sentence_lengths
from phrasetool.text_encoders.loading import find_text_encoder
from phrasetool.text_encoders.text_encoder import SIDES, Side, TextEncoder

# Sentences that are encoded, and pairs that are classified, at a time; fixed, so that p does not depend on threads.
BATCH = 2048


class PairModel(Protocol):
    """A classifier of sentence pairs.

    Attributes:
        dimension: n, of its sentence vectors.
        search_dimension: d, of the vectors that sentences are searched for by.
        identity: differs when what it gives differs.
    """

    @property
    def dimension(self) -> int:
        """See the class."""

    @property
    def search_dimension(self) -> int:
        """See the class."""

    @property
    def identity(self) -> str:
        """See the class."""

    def encode(self, sentences: Sequence[str | bytes], side: Side) -> FloatArray:
        """Vectors of N sentences to classify; float32, shape (N, n)."""

    def search_vectors(self, sentences: Sequence[str | bytes], side: Side) -> FloatArray:
        """Vectors of N sentences to search for the nearest by cosine; float32, shape (N, d)."""

    def classify(
        self, sources: FloatArray, source_lengths: Int64Array, targets: FloatArray, target_lengths: Int64Array
    ) -> DoubleArray:
        """The probability that N pairs are parallel, by vectors and lengths in words; float64, shape (N,)."""


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
    from phrasetool.models.saved_model import load_model

    found: Any = load_model(folder)
    if not all(callable(getattr(found, name, None)) for name in ("encode", "classify")):
        raise ModelError(f"{folder}: no classifier of sentence pairs", remedy="train a classifier of sentence pairs")
    return pair_encoder_of(found, os.fspath(folder))


def pair_encoder_of(model: PairModel, name: str) -> PairEncoder:
    """A classifier that is loaded, and what messages call it."""
    encoder = ModelEncoder(model)
    return PairEncoder(name, (encoder.identity,) * 2, lambda: (encoder, encoder), model)


class ModelEncoder:
    """A classifier as an encoder of text.

    Args:
        model: the classifier.

    Attributes:
        dimension, identity: see `TextEncoder`.
    """

    def __init__(self, model: PairModel) -> None:
        self._model = model
        self.dimension = model.search_dimension
        self.identity = f"pairs-{model.identity}"

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """See `TextEncoder`."""
        return np.asarray(self._model.search_vectors(texts, side), np.float32)

    def over_long(self, texts: Sequence[str]) -> int:
        """How many texts the classifier cuts, if it says so."""
        count = getattr(self._model, "over_long", lambda some: 0)
        return sum(int(count(texts[first : first + BATCH])) for first in range(0, len(texts), BATCH))

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """One thread a batch."""
        return _one_thread()


class ClassifiedPairs:
    """Pairs of rows of two texts, and how probable it is that they are parallel.

    Each sentence is encoded once; the vectors are on disk, in a file without a name that goes with this object.

    Args:
        model: the classifier.
        texts: of both sides, by row.
        rows: int64, shape (N,), of the sources and of the targets of the pairs.
        tick: called with how many more sentences are encoded.
    """

    def __init__(
        self,
        model: PairModel,
        texts: tuple[Sequence[str], Sequence[str]],
        rows: tuple[Int64Array, Int64Array],
        tick: Callable[[int], None] = lambda sentences: None,
    ) -> None:
        self._model = model
        self._vectors: list[FloatArray] = []
        self._places: list[Int64Array] = []
        self._lengths: list[Int64Array] = []
        for side in range(2):
            needed, places = np.unique(rows[side], return_inverse=True)
            self._places.append(places.astype(np.int64))
            self._encode(side, texts[side], needed, tick)

    def _encode(self, side: int, texts: Sequence[str], needed: Int64Array, tick: Callable[[int], None]) -> None:
        lengths, shape = np.zeros(len(needed), np.int64), (len(needed), self._model.dimension)
        with tempfile.TemporaryFile() as file, _one_thread():
            for first in range(0, len(needed), BATCH):
                part = [texts[row] for row in needed[first : first + BATCH].tolist()]
                file.write(np.asarray(self._model.encode(part, SIDES[side]), np.float32).tobytes())
                lengths[first : first + len(part)] = sentence_lengths(part)
                tick(len(part))
            file.flush()
            vectors = np.memmap(file, np.float32, "r", shape=shape) if len(needed) else np.zeros(shape, np.float32)
        self._vectors.append(vectors)
        self._lengths.append(lengths)

    def lengths(self, side: int) -> Int64Array:
        """Words of the sentences of a side (0 or 1) of the pairs; shape (N,)."""
        return self._lengths[side][self._places[side]]

    def probabilities(
        self, chosen: Int64Array, lengths: tuple[Int64Array, Int64Array] | None = None
    ) -> Iterator[DoubleArray]:
        """Of some pairs, batch by batch.

        Args:
            chosen: which pairs, M of them.
            lengths: as if the sentences had so many words, shape (M,); None: as they are.

        Raises:
            ModelError: the model gives something else than probabilities.
        """
        known = lengths or (self.lengths(0)[chosen], self.lengths(1)[chosen])
        with _one_thread():
            for first in range(0, len(chosen), BATCH):
                part = slice(first, first + BATCH)
                places = [self._places[side][chosen[part]] for side in range(2)]
                found = np.asarray(
                    self._model.classify(
                        self._vectors[0][places[0]], known[0][part], self._vectors[1][places[1]], known[1][part]
                    ),
                    np.float64,
                )
                if found.shape != places[0].shape or not ((found >= 0) & (found <= 1)).all():
                    raise ModelError("the classifier gave something else than a probability for each pair")
                yield found


def without_length(pairs: ClassifiedPairs, chosen: Int64Array, draws: int = 16) -> DoubleArray:
    """The probabilities as if lengths said nothing: the mean over the lengths of other chosen pairs.

    Args:
        pairs: that are classified.
        chosen: which, shape (M,), the best first.
        draws: how many others, evenly spread.

    Returns:
        float64, shape (M,).
    """
    total = np.zeros(len(chosen), np.float64)
    others = chosen[np.linspace(0, len(chosen) - 1, min(draws, len(chosen))).astype(np.int64)]
    for other in others.tolist():
        lengths = tuple(np.full(len(chosen), pairs.lengths(side)[other]) for side in range(2))
        total += np.concatenate(list(pairs.probabilities(chosen, (lengths[0], lengths[1]))))
    return total / max(len(others), 1)


def _one_thread() -> contextlib.AbstractContextManager[None]:
    """Nothing, where the model does not compute with PyTorch."""
    return one_torch_thread() if "torch" in sys.modules else contextlib.nullcontext()
