"""Score the sentence pairs of a bitext, and encode sentences for mining, with a classifier or an external encoder.

`filter-bitext` scores pairs (`PairScorer`) by the probability of a classifier, the cosine of an encoder, or the fluency
under language models.
`mine` searches for pairs by vectors of both languages in one space (`PairEncoder`), and classifies the pairs that it
finds (`ClassifiedPairs`).

The last bits of a score depend on the pairs that are scored together, so callers must choose blocks that depend on the
bitext only.  Several threads may work on different blocks.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from phrasetool.errors import ModelError
from phrasetool.nn.device import one_torch_thread
from phrasetool.pair_classifier.model import PairClassifierModel
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask
from phrasetool.smt.corpus.symbols import read_words, read_written_words, sentence_lengths
from phrasetool.smt.language_model.kenlm_model import KenlmModel
from phrasetool.text_encoders.encoders import find_text_encoder
from phrasetool.text_encoders.margins import unit_rows
from phrasetool.text_encoders.text_encoder import SIDES, Side, TextEncoder, encoded

# Texts per call of an encoder.
_ENCODE_BATCH = 256
# Pairs over whose lengths probabilities without the effect of lengths are averaged.
_DRAWS = 16


@dataclass(frozen=True)
class PairScores:
    """Scores of N pairs.

    Attributes:
        scores: float32, shape (N,); NaN where a side has no known words.
        blind: the same without the effect of sentence lengths; None if not requested.
    """

    scores: FloatArray
    blind: FloatArray | None = None


class PairScorer(Protocol):
    """Scorer of sentence pairs.

    Attributes:
        signature: text that differs when the scores differ.
        probabilities: whether scores are probabilities.
        columns: number of scores of a pair: 1, or 2 with those without the effect of lengths.
    """

    signature: str
    probabilities: bool
    columns: int

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Return the scores of N pairs of sentences: words between spaces, with Moses' escapes."""

    def truncated(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Mask:
        """Return which of N pairs have a sentence that is known to be truncated, bool, shape (N,)."""


class ClassifierScorer:
    """Scorer by the probability that a pair is parallel.

    Args:
        model: the classifier.
        lengths: numbers of words of the sources and targets of some pairs, shape (L,) each; probabilities without the
            effect of lengths are means over these lengths.  None: they are not computed.

    Attributes:
        signature, probabilities, columns: see `PairScorer`.
    """

    def __init__(self, model: PairClassifierModel, lengths: tuple[Int64Array, Int64Array] | None = None) -> None:
        self._model, self._lengths = model, lengths
        self.probabilities = True
        blind = "" if lengths is None else f"|lengths:{lengths[0].tolist()},{lengths[1].tolist()}"
        self.signature = model.signature + blind
        self.columns = 1 if lengths is None else 2
        # Built here, because threads share it.
        _ = model.classifier

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Return the probabilities of pairs of sentences."""
        (first, first_words), (second, second_words) = read_words(sources), read_words(targets)
        vectors = (
            self._model.encode_texts(first, first_words, "source"),
            self._model.encode_texts(second, second_words, "target"),
        )
        unscored = ~(vectors[0].any(1) & vectors[1].any(1))

        def probabilities(source_lengths: Int64Array, target_lengths: Int64Array) -> DoubleArray:
            return self._model.classify(vectors[0], source_lengths, vectors[1], target_lengths)

        scores = probabilities(first.lengths, second.lengths).astype(np.float32)
        scores[unscored] = np.nan
        if self._lengths is None:
            return PairScores(scores)
        total = np.zeros(len(scores))
        for lengths in zip(*self._lengths, strict=True):
            total += probabilities(*(np.full(len(scores), length, np.int64) for length in lengths))
        blind = (total / max(len(self._lengths[0]), 1)).astype(np.float32)
        blind[unscored] = np.nan
        return PairScores(scores, blind)

    def truncated(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Mask:
        """Return which pairs have a sentence that the classifier truncates."""
        return self._model.truncated(sources) | self._model.truncated(targets)


class CrossScorer:
    """Scorer by two classifiers, each of which scores the pairs that the other one was trained on.

    A classifier has memorised the wrong pairs among its own training pairs.

    Args:
        classifiers: those of the pairs with even and with odd indices, from 0; both return as many scores.

    Attributes:
        signature, probabilities, columns: see `PairScorer`.
    """

    def __init__(self, classifiers: tuple[ClassifierScorer, ClassifierScorer]) -> None:
        self._classifiers = classifiers
        self.signature = "+".join(classifier.signature for classifier in classifiers)
        self.probabilities = True
        self.columns = classifiers[0].columns

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Return the scores of pairs; the index of the first pair in the bitext must be even."""
        parts = [classifier(sources[start::2], targets[start::2]) for start, classifier in enumerate(self._classifiers)]
        scores = _alternating(parts[0].scores, parts[1].scores)
        if parts[0].blind is None or parts[1].blind is None:
            return PairScores(scores)
        return PairScores(scores, _alternating(parts[0].blind, parts[1].blind))

    def truncated(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Mask:
        """Return which pairs have a sentence that the classifiers truncate; both have the same limit."""
        return self._classifiers[0].truncated(sources, targets)


def _alternating(even: FloatArray, odd: FloatArray) -> FloatArray:
    both = np.empty(len(even) + len(odd), np.float32)
    both[::2], both[1::2] = even, odd
    return both


class EncoderScorer:
    """Scorer by the cosine of the vectors of both sides.

    Args:
        encoders: encoders of source and target.
        ready: maps the words of a sentence, without escapes, and the index of its side to the text to encode.
        name: name of the encoders in messages.
        signature: signature of the encoders and of `ready`.

    Attributes:
        signature, probabilities, columns: see `PairScorer`.

    Raises:
        ModelError: the encoders differ in dimension.
    """

    def __init__(
        self, encoders: tuple[TextEncoder, TextEncoder], ready: Callable[[str, int], str], name: str, signature: str
    ) -> None:
        if encoders[0].dimension != encoders[1].dimension:
            sizes = f"dimension {encoders[0].dimension} and {encoders[1].dimension}"
            raise ModelError(f"{name}: vectors have {sizes}; expected equal dimensions")
        self._encoders, self._ready, self._name = encoders, ready, name
        self.probabilities = False
        self.signature, self.columns = signature, 1
        self._lock = threading.Lock()

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Return the cosines of pairs of sentences.

        Raises:
            UnicodeDecodeError: a sentence is not UTF-8.
        """
        first, second = (self._vectors(lines, side) for lines, side in zip((sources, targets), SIDES, strict=True))
        cosines = np.einsum("ij,ij->i", first, second).astype(np.float32)
        cosines[~(first.any(1) & second.any(1))] = np.nan
        return PairScores(np.clip(cosines, -1, 1))

    def truncated(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Mask:
        """Return which pairs have a sentence that an encoder truncates; none if the encoders do not report it."""
        mask = np.zeros(len(sources), np.bool_)
        for lines, side, encoder in zip((sources, targets), SIDES, self._encoders, strict=True):
            count = getattr(encoder, "over_long", None)
            if count is None:
                continue
            texts = self._texts(lines, side)
            with self._lock:
                for begin in range(0, len(texts), _ENCODE_BATCH):
                    part = texts[begin : begin + _ENCODE_BATCH]
                    # The encoder returns a count; it is almost always 0.
                    if count(part):
                        mask[begin : begin + len(part)] |= [count([text]) > 0 for text in part]
        return mask

    def _texts(self, lines: Sequence[bytes], side: Side) -> list[str]:
        """Return the texts to encode; an empty one for a sentence without words."""
        phrases, words = read_words(lines)
        plain = [b" ".join(words[word] for word in text.tolist()).decode() for text in phrases]
        return [self._ready(text, SIDES.index(side)) if text else "" for text in plain]

    def _vectors(self, lines: Sequence[bytes], side: Side) -> FloatArray:
        which = SIDES.index(side)
        texts = self._texts(lines, side)
        distinct = sorted(set(texts) - {""}, key=lambda text: (len(text), text))
        encoder, vectors = (
            self._encoders[which],
            np.zeros((len(distinct) + 1, self._encoders[which].dimension), np.float32),
        )
        # Not every encoder can be called by several threads at once.
        with self._lock:
            for begin in range(0, len(distinct), _ENCODE_BATCH):
                part = distinct[begin : begin + _ENCODE_BATCH]
                vectors[begin : begin + len(part)] = unit_rows(encoded(encoder, part, side, self._name))
        rows = {text: row for row, text in enumerate(distinct)}
        return vectors[[rows.get(text, len(distinct)) for text in texts]]


class FluencyScorer:
    """Scorer by fluency under language models of good text: log probabilities per word, in nats.

    With models of general text a score is the cross-entropy difference H(general) - H(good) (Moore and Lewis 2010).
    The scores of two sides are added (Axelrod et al. 2011).  They do not show whether one sentence translates
    the other.  Words are looked up as written, because models are estimated from text with Moses' escapes.

    Args:
        models: language models of good text of the source and of the target; None for a side that is ignored.
        general: the same of general text; None for no comparison.
        signature: signature of the models.

    Attributes:
        signature, probabilities, columns: see `PairScorer`.
    """

    def __init__(
        self,
        models: tuple[KenlmModel | None, KenlmModel | None],
        general: tuple[KenlmModel | None, KenlmModel | None],
        signature: str,
    ) -> None:
        self._models, self._general, self.signature = models, general, signature
        self.probabilities = False
        self.columns = 1

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Return the fluency of pairs; NaN for a pair with an empty side."""
        scores = np.zeros(len(sources))
        for lines, model, general in zip((sources, targets), self._models, self._general, strict=True):
            phrases, words = read_written_words(lines)
            scores[phrases.lengths == 0] = np.nan
            if model is not None:
                scores -= model.cross_entropies(phrases, words)
            if general is not None:
                scores += general.cross_entropies(phrases, words)
        return PairScores(scores.astype(np.float32))

    def truncated(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Mask:
        """Return that no pair is truncated."""
        return np.zeros(len(sources), np.bool_)


# Sentences per encoded batch and pairs per classified batch; fixed, so that p does not depend on threads.
BATCH = 2048


class PairModel(Protocol):
    """A classifier of sentence pairs.

    Attributes:
        dimension: n, size of its sentence vectors.
        search_dimension: d, size of its search vectors.
        identity: text that differs when its results differ.
    """

    @property
    def dimension(self) -> int:
        """Size of sentence vectors."""

    @property
    def search_dimension(self) -> int:
        """Size of search vectors."""

    @property
    def identity(self) -> str:
        """Text that differs when the results differ."""

    def encode(self, sentences: Sequence[str | bytes], side: Side) -> FloatArray:
        """Return the vectors by which N sentences are classified; float32, shape (N, n)."""

    def search_vectors(self, sentences: Sequence[str | bytes], side: Side) -> FloatArray:
        """Return the vectors by which N sentences are searched for, by cosine; float32, shape (N, d)."""

    def classify(
        self, sources: FloatArray, source_lengths: Int64Array, targets: FloatArray, target_lengths: Int64Array
    ) -> DoubleArray:
        """Return the probabilities that N pairs are parallel, by vectors and lengths in words; float64, shape (N,)."""


@dataclass(frozen=True)
class PairEncoder:
    """Encoder of both sides from one folder, or two encoders from two.

    Attributes:
        name: name in messages.
        identities: identities of the encoders of both sides.
        load: loads the encoders.
        model: the classifier, if the encoder belongs to one.
    """

    name: str
    identities: tuple[str, str]
    load: Callable[[], tuple[TextEncoder, TextEncoder]]
    model: PairModel | None = None


def find_pair_encoder(encoder: str, target_encoder: str | None = None) -> PairEncoder:
    """Find external sentence encoders, see `find_text_encoder`.

    Args:
        encoder: encoder of both sides, or of the source.
        target_encoder: encoder of the target into the same space, if it is another one.

    Raises:
        ModelError: a folder has no encoder, or is refused.
    """
    source = find_text_encoder(encoder)
    target = find_text_encoder(target_encoder) if target_encoder else source

    def load() -> tuple[TextEncoder, TextEncoder]:
        first = source.load()
        return first, first if target is source else target.load()

    name = encoder if target is source else f"{encoder} and {target_encoder}"
    return PairEncoder(name, (source.identity, target.identity), load)


def load_pair_model(folder: str | os.PathLike[str]) -> PairEncoder:
    """Load a classifier of sentence pairs that this package trained.

    Raises:
        ModelError: the folder has none.
    """
    from phrasetool.models.saved_model import load_saved_model

    model: Any = load_saved_model(folder)
    if not all(callable(getattr(model, name, None)) for name in ("encode", "classify")):
        raise ModelError(f"{folder}: not a classifier of sentence pairs", remedy="train a classifier of sentence pairs")
    return pair_encoder_of(model, os.fspath(folder))


def pair_encoder_of(model: PairModel, name: str) -> PairEncoder:
    """Return a loaded classifier as an encoder; `name` is its name in messages."""
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
        """Return search vectors of texts, float32."""
        return np.asarray(self._model.search_vectors(texts, side), np.float32)

    def over_long(self, texts: Sequence[str]) -> int:
        """Return the number of texts that the classifier truncates; 0 if it does not report it."""
        count = getattr(self._model, "over_long", lambda some: 0)
        return sum(int(count(texts[first : first + BATCH])) for first in range(0, len(texts), BATCH))

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which PyTorch computes a batch with one thread."""
        return _one_thread()


class ClassifiedPairs:
    """Pairs of rows of two texts, and the probabilities that they are parallel.

    Each sentence is encoded once; the vectors are on disk, in an unnamed file that exists as long as this object.

    Args:
        model: the classifier.
        texts: sentences of both sides.
        rows: int64, shape (N,), rows of the sources and of the targets of the pairs.
        tick: called with the number of sentences just encoded.
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
            needed, positions = np.unique(rows[side], return_inverse=True)
            self._places.append(positions.astype(np.int64))
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
        """Return the numbers of words of one side (0 or 1) of the pairs; shape (N,)."""
        return self._lengths[side][self._places[side]]

    def probabilities(
        self, chosen: Int64Array, lengths: tuple[Int64Array, Int64Array] | None = None
    ) -> Iterator[DoubleArray]:
        """Yield the probabilities of some pairs, batch by batch.

        Args:
            chosen: indices of M pairs.
            lengths: assumed numbers of words, shape (M,) each; None: the actual ones.

        Raises:
            ModelError: the model does not return probabilities.
        """
        known = lengths or (self.lengths(0)[chosen], self.lengths(1)[chosen])
        with _one_thread():
            for first in range(0, len(chosen), BATCH):
                part = slice(first, first + BATCH)
                rows = [self._places[side][chosen[part]] for side in range(2)]
                logits = np.asarray(
                    self._model.classify(
                        self._vectors[0][rows[0]], known[0][part], self._vectors[1][rows[1]], known[1][part]
                    ),
                    np.float64,
                )
                if logits.shape != rows[0].shape or not ((logits >= 0) & (logits <= 1)).all():
                    raise ModelError("the classifier did not return a probability for each pair")
                yield logits


def without_length(pairs: ClassifiedPairs, chosen: Int64Array) -> DoubleArray:
    """Return probabilities without the effect of lengths: means over the lengths of a few of the chosen pairs.

    Args:
        pairs: the classified pairs.
        chosen: indices of M pairs, the best first.

    Returns:
        float64, shape (M,).
    """
    total = np.zeros(len(chosen), np.float64)
    sampled = chosen[np.linspace(0, len(chosen) - 1, min(_DRAWS, len(chosen))).astype(np.int64)]
    for pair in sampled.tolist():
        lengths = tuple(np.full(len(chosen), pairs.lengths(side)[pair]) for side in range(2))
        total += np.concatenate(list(pairs.probabilities(chosen, (lengths[0], lengths[1]))))
    return total / max(len(sampled), 1)


def _one_thread() -> contextlib.AbstractContextManager[None]:
    """Return a context in which PyTorch uses one thread; it does nothing if PyTorch is not loaded."""
    return one_torch_thread() if "torch" in sys.modules else contextlib.nullcontext()
