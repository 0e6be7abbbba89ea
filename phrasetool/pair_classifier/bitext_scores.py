"""Score the sentence pairs of a bitext, and encode sentences to mine, with a classifier or an external encoder.

`filter-bitext` scores the given pairs (`PairScorer`): the probability of a classifier, the cosine of an encoder, or the
fluency by language models.
`mine` searches for pairs by vectors of both languages in one space (`PairEncoder`), and classifies those that it found
(`ClassifiedPairs`).

The last bits of a score depend on the pairs that are scored together, so a caller chooses blocks that depend on the
bitext alone.  Several threads may work on different blocks.
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
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array
from phrasetool.smt.corpus.symbols import read_words, sentence_lengths
from phrasetool.smt.language_model.kenlm_model import KenlmModel
from phrasetool.text_encoders.encoders import find_text_encoder
from phrasetool.text_encoders.margins import unit_rows
from phrasetool.text_encoders.text_encoder import SIDES, Side, TextEncoder, encoded

# Texts that an encoder sees at a time.
_ENCODED_AT_ONCE = 256


@dataclass(frozen=True)
class PairScores:
    """Scores of N pairs.

    Attributes:
        scores: float32, shape (N,); NaN where a side has no word, or none that is known.
        blind: the same as if lengths said nothing; None if it was not asked for.
    """

    scores: FloatArray
    blind: FloatArray | None = None


class PairScorer(Protocol):
    """Says something of pairs.

    Attributes:
        signature: differs when what it says differs.
        longest: words of a sentence that are read; None where that is not known.
        columns: how many scores it gives of a pair: 2 with those without length.
    """

    signature: str
    longest: int | None
    columns: int

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Of N pairs; words between spaces, Moses' escapes as they are written."""


class ClassifierScorer:
    """The probability that a pair is parallel.

    Args:
        model: the classifier.
        lengths: words of the sources and targets of some pairs, shape (L,) each: probabilities without length are the
            mean over these lengths.  None: they are not asked for.

    Attributes:
        signature, longest, columns: see `PairScorer`.
    """

    def __init__(self, model: PairClassifierModel, lengths: tuple[Int64Array, Int64Array] | None = None) -> None:
        self._model, self._lengths = model, lengths
        self.longest: int | None = model.architecture.longest
        blind = "" if lengths is None else f"|lengths:{lengths[0].tolist()},{lengths[1].tolist()}"
        self.signature = model.signature + blind
        self.columns = 1 if lengths is None else 2
        # Made here: threads share it.
        _ = model.classifier

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Return the probabilities of pairs of sentences."""
        (first, first_words), (second, second_words) = read_words(sources), read_words(targets)
        vectors = (
            self._model.encode_texts(first, first_words, "source"),
            self._model.encode_texts(second, second_words, "target"),
        )
        silent = ~(vectors[0].any(1) & vectors[1].any(1))

        def probabilities(source_lengths: Int64Array, target_lengths: Int64Array) -> DoubleArray:
            return self._model.classify(vectors[0], source_lengths, vectors[1], target_lengths)

        scores = probabilities(first.lengths, second.lengths).astype(np.float32)
        scores[silent] = np.nan
        if self._lengths is None:
            return PairScores(scores)
        total = np.zeros(len(scores))
        for lengths in zip(*self._lengths, strict=True):
            total += probabilities(*(np.full(len(scores), length, np.int64) for length in lengths))
        blind = (total / len(self._lengths[0])).astype(np.float32)
        blind[silent] = np.nan
        return PairScores(scores, blind)


class CrossScorer:
    """Two classifiers, each of which judges the pairs that the other one was trained on.

    A classifier that judges its own training pairs knows the wrong ones by heart.

    Args:
        judges: of the pairs in even places and of those in odd places, counted from 0; both give as many scores.

    Attributes:
        signature, longest, columns: see `PairScorer`.
    """

    def __init__(self, judges: tuple[ClassifierScorer, ClassifierScorer]) -> None:
        self._judges = judges
        self.signature = "+".join(judge.signature for judge in judges)
        self.longest = judges[0].longest
        self.columns = judges[0].columns

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """See `PairScorer`; the first pair is in an even place."""
        parts = [judge(sources[place::2], targets[place::2]) for place, judge in enumerate(self._judges)]
        scores = _alternating(parts[0].scores, parts[1].scores)
        if parts[0].blind is None or parts[1].blind is None:
            return PairScores(scores)
        return PairScores(scores, _alternating(parts[0].blind, parts[1].blind))


def _alternating(even: FloatArray, odd: FloatArray) -> FloatArray:
    both = np.empty(len(even) + len(odd), np.float32)
    both[::2], both[1::2] = even, odd
    return both


class EncoderScorer:
    """The cosine of the vectors of both sides.

    Args:
        encoders: of source and target.
        ready: from the words of a sentence, escapes undone, and its side to the text that is encoded.
        name: what messages call the encoders.
        signature: of encoders and `ready`.

    Attributes:
        signature, longest, columns: see `PairScorer`.

    Raises:
        ModelError: the encoders are not of one dimension.
    """

    def __init__(
        self, encoders: tuple[TextEncoder, TextEncoder], ready: Callable[[str, int], str], name: str, signature: str
    ) -> None:
        if encoders[0].dimension != encoders[1].dimension:
            sizes = f"dimension {encoders[0].dimension} and {encoders[1].dimension}"
            raise ModelError(f"{name}: vectors have {sizes}; expected one space")
        self._encoders, self._ready, self._name = encoders, ready, name
        self.longest: int | None = None
        self.signature, self.columns = signature, 1
        self._lock = threading.Lock()

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """See `PairScorer`.

        Raises:
            UnicodeDecodeError: a sentence is not UTF-8.
        """
        first, second = (self._vectors(lines, side) for lines, side in zip((sources, targets), SIDES, strict=True))
        cosines = np.einsum("ij,ij->i", first, second).astype(np.float32)
        cosines[~(first.any(1) & second.any(1))] = np.nan
        return PairScores(np.clip(cosines, -1, 1))

    def _vectors(self, lines: Sequence[bytes], side: Side) -> FloatArray:
        which = SIDES.index(side)
        phrases, words = read_words(lines)
        plain = [b" ".join(words[word] for word in text.tolist()).decode() for text in phrases]
        texts = [self._ready(text, which) if text else "" for text in plain]
        distinct = sorted(set(texts) - {""}, key=lambda text: (len(text), text))
        encoder, found = (
            self._encoders[which],
            np.zeros((len(distinct) + 1, self._encoders[which].dimension), np.float32),
        )
        # Not every encoder can be called by several threads at once.
        with self._lock:
            for begin in range(0, len(distinct), _ENCODED_AT_ONCE):
                part = distinct[begin : begin + _ENCODED_AT_ONCE]
                found[begin : begin + len(part)] = unit_rows(encoded(encoder, part, side, self._name))
        rows = {text: row for row, text in enumerate(distinct)}
        return found[[rows.get(text, len(distinct)) for text in texts]]


class FluencyScorer:
    """Fluency of sentences by language models of good text: log probabilities per word, in nats.

    With models of general text a score is the cross-entropy difference H(general) - H(good) (Moore and Lewis 2010).
    The scores of two sides are added (Axelrod et al. 2011).  They do not show whether one sentence translates
    the other.

    Args:
        models: language models of good text of the source and of the target; None for a side that is not looked at.
        general: the same of general text; None for no comparison.
        signature: of the models.

    Attributes:
        signature, longest, columns: see `PairScorer`.
    """

    def __init__(
        self,
        models: tuple[KenlmModel | None, KenlmModel | None],
        general: tuple[KenlmModel | None, KenlmModel | None],
        signature: str,
    ) -> None:
        self._models, self._general, self.signature = models, general, signature
        self.longest: int | None = None
        self.columns = 1

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> PairScores:
        """Return the fluency of pairs; a pair whose side has no word gets NaN."""
        scores = np.zeros(len(sources))
        for lines, model, general in zip((sources, targets), self._models, self._general, strict=True):
            phrases, words = read_words(lines)
            scores[phrases.lengths == 0] = np.nan
            if model is not None:
                scores -= model.cross_entropies(phrases, words)
            if general is not None:
                scores += general.cross_entropies(phrases, words)
        return PairScores(scores.astype(np.float32))


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
    """Encoder of one folder, or encoders of two.

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
    """Find external sentence encoders, see `find_text_encoder`.

    Args:
        encoder: of both sides, or of the source.
        target_encoder: of the target, of the same space, if it is another.

    Raises:
        ModelError: no encoder, or it is refused.
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
    from phrasetool.models.saved_model import load_saved_model

    model: Any = load_saved_model(folder)
    if not all(callable(getattr(model, name, None)) for name in ("encode", "classify")):
        raise ModelError(f"{folder}: not a classifier of sentence pairs", remedy="train a classifier of sentence pairs")
    return pair_encoder_of(model, os.fspath(folder))


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
        """Return search vectors of texts, float32."""
        return np.asarray(self._model.search_vectors(texts, side), np.float32)

    def over_long(self, texts: Sequence[str]) -> int:
        """Number of texts that the classifier cuts, if it reports it."""
        count = getattr(self._model, "over_long", lambda some: 0)
        return sum(int(count(texts[first : first + BATCH])) for first in range(0, len(texts), BATCH))

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """One thread a batch."""
        return _one_thread()


class ClassifiedPairs:
    """Pairs of rows of two texts, and how probable it is that they are parallel.

    Each sentence is encoded once; the vectors are on disk, in a file without a name that exists as long as this object.

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
            lengths: numbers of words that are assumed, shape (M,); None: the actual ones.

        Raises:
            ModelError: the model gives something else than probabilities.
        """
        known = lengths or (self.lengths(0)[chosen], self.lengths(1)[chosen])
        with _one_thread():
            for first in range(0, len(chosen), BATCH):
                part = slice(first, first + BATCH)
                places = [self._places[side][chosen[part]] for side in range(2)]
                logits = np.asarray(
                    self._model.classify(
                        self._vectors[0][places[0]], known[0][part], self._vectors[1][places[1]], known[1][part]
                    ),
                    np.float64,
                )
                if logits.shape != places[0].shape or not ((logits >= 0) & (logits <= 1)).all():
                    raise ModelError("the classifier gave something else than a probability for each pair")
                yield logits


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
