"""What is said of the pairs of a bitext, one by one: a probability by a classifier, or a cosine by an encoder.

The last bits of what is said depend on which pairs are looked at together, so a caller chooses blocks that depend on
the bitext alone.  Several threads may work on different blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phrasetool.errors import ModelError
from phrasetool.pair_classifier.model import ParallelModel
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array
from phrasetool.sentences import read_words
from phrasetool.text_encoders.margins import unit_rows
from phrasetool.text_encoders.text_encoder import SIDES, Side, TextEncoder, encoded

# Texts that an encoder sees at a time.
_BATCH = 256


@dataclass(frozen=True)
class Judgements:
    """What is said of N pairs.

    Attributes:
        scores: float32, shape (N,); NaN where a side has no word, or none that is known.
        blind: the same as if lengths said nothing; None if it was not asked for.
    """

    scores: FloatArray
    blind: FloatArray | None = None


class PairJudge(Protocol):
    """Says something of pairs.

    Attributes:
        signature: differs when what it says differs.
        longest: words of a sentence that are read; None where that is not known.
        columns: how many scores it gives of a pair: 2 with those without length.
    """

    signature: str
    longest: int | None
    columns: int

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Judgements:
        """Of N pairs; words between spaces, Moses' escapes as they are written."""


class ClassifierJudge:
    """The probability that a pair is parallel.

    Args:
        model: the classifier.
        lengths: words of the sources and targets of some pairs, shape (L,) each: probabilities without length are the
            mean over these lengths.  None: they are not asked for.

    Attributes:
        signature, longest, columns: see `PairJudge`.
    """

    def __init__(self, model: ParallelModel, lengths: tuple[Int64Array, Int64Array] | None = None) -> None:
        self._model, self._lengths = model, lengths
        self.longest: int | None = model.architecture.longest
        blind = "" if lengths is None else f"|lengths:{lengths[0].tolist()},{lengths[1].tolist()}"
        self.signature = model.signature + blind
        self.columns = 1 if lengths is None else 2
        # Made here: threads share it.
        _ = model.classifier

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Judgements:
        """See `PairJudge`."""
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
            return Judgements(scores)
        total = np.zeros(len(scores))
        for lengths in zip(*self._lengths, strict=True):
            total += probabilities(*(np.full(len(scores), length, np.int64) for length in lengths))
        blind = (total / len(self._lengths[0])).astype(np.float32)
        blind[silent] = np.nan
        return Judgements(scores, blind)


class CrossJudge:
    """Two classifiers, each of which judges the pairs that the other one was trained on.

    A classifier that judges its own training pairs knows the wrong ones by heart.

    Args:
        judges: of the pairs in even places and of those in odd places, counted from 0; both give as many scores.

    Attributes:
        signature, longest, columns: see `PairJudge`.
    """

    def __init__(self, judges: tuple[ClassifierJudge, ClassifierJudge]) -> None:
        self._judges = judges
        self.signature = "+".join(judge.signature for judge in judges)
        self.longest = judges[0].longest
        self.columns = judges[0].columns

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Judgements:
        """See `PairJudge`; the first pair is in an even place."""
        parts = [judge(sources[place::2], targets[place::2]) for place, judge in enumerate(self._judges)]
        scores = _alternating(parts[0].scores, parts[1].scores)
        if parts[0].blind is None or parts[1].blind is None:
            return Judgements(scores)
        return Judgements(scores, _alternating(parts[0].blind, parts[1].blind))


def _alternating(even: FloatArray, odd: FloatArray) -> FloatArray:
    both = np.empty(len(even) + len(odd), np.float32)
    both[::2], both[1::2] = even, odd
    return both


class EncoderJudge:
    """The cosine of the vectors of both sides.

    Args:
        encoders: of source and target.
        ready: from the words of a sentence, escapes undone, and its side to the text that is encoded.
        name: what messages call the encoders.
        signature: of encoders and `ready`.

    Attributes:
        signature, longest, columns: see `PairJudge`.

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

    def __call__(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> Judgements:
        """See `PairJudge`.

        Raises:
            UnicodeDecodeError: a sentence is not UTF-8.
        """
        first, second = (self._vectors(lines, side) for lines, side in zip((sources, targets), SIDES, strict=True))
        cosines = np.einsum("ij,ij->i", first, second).astype(np.float32)
        cosines[~(first.any(1) & second.any(1))] = np.nan
        return Judgements(np.clip(cosines, -1, 1))

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
            for begin in range(0, len(distinct), _BATCH):
                part = distinct[begin : begin + _BATCH]
                found[begin : begin + len(part)] = unit_rows(encoded(encoder, part, side, self._name))
        rows = {text: row for row, text in enumerate(distinct)}
        return found[[rows.get(text, len(distinct)) for text in texts]]
