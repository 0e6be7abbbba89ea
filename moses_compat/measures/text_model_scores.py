"""Scores of entries by models of texts: a syntactic encoder, and a classifier of sentence pairs.

A syntactic encoder computes the cosine of both sides, and the probability of the tags of one side given the other: the
geometric mean over the tags and the end.  A classifier computes the probability that both sides are parallel.

Each distinct phrase of a window is encoded once.  For the table of the reference run, whose sources are sorted, this
encodes 9 % more phrases than encoding each distinct phrase of the table once, but no vectors have to be stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.similarities import BACKWARD, COSINE, LikelihoodRequest
from moses_compat.measures.windowed_scores import ScoredEntries, TextPiece, TextScores
from phrasetool.kernels.lstm_states import one_blas_thread
from phrasetool.nn.device import one_torch_thread
from phrasetool.pair_classifier.bitext_scores import ClassifierScorer
from phrasetool.pair_classifier.model import PairClassifierModel, fit_of_pairs
from phrasetool.phrases import FloatArray
from phrasetool.syntax.model import SyntaxModel, check_languages, syntax_fit, tag_log_probabilities
from phrasetool.tagger.model import TaggerModel


class ParallelScores(TextScores[PairClassifierModel]):
    """Probabilities of a classifier; a similarity source with one column, their logarithm."""

    def __init__(
        self, model: PairClassifierModel, check: FitCheck | None = None, threads: int = 1, folder: str | None = None
    ) -> None:
        super().__init__(model, check, threads, folder)
        self._classify = ClassifierScorer(model)

    @property
    def column(self) -> str:
        """Name of the score column."""
        return "p(parallel)"

    @property
    def held(self) -> str:
        """Name of the column's content in messages."""
        return "the probabilities"

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """Check whether the classifier matches the entries."""

        def fit(swapped: bool) -> Any:
            return fit_of_pairs(self.model, piece.sources, piece.targets, swapped, sentences=False)

        check.judge(table, fit(False), lambda: fit(True))

    def score(self, window: TextPiece) -> FloatArray:
        """Return the logarithms of the probabilities of a window."""
        with one_torch_thread():
            probabilities = self._classify(window.sources, window.targets).scores
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probabilities), np.float32)

    def scored_entries(self, window: TextPiece, scores: FloatArray) -> ScoredEntries:
        """Return the scores of a window, and count pairs that are too long."""
        longest = self.model.architecture.longest
        lengths = (max(a.count(b" "), b.count(b" ")) for a, b in zip(window.sources, window.targets, strict=True))
        self.too_long += sum(length >= longest for length in lengths)
        return super().scored_entries(window, scores)


class SyntaxScores(TextScores[SyntaxModel]):
    """Cosines of a syntactic encoder: a similarity source with one column, cosine - 1; its exponential is written."""

    @property
    def column(self) -> str:
        """Name of the score column."""
        return "exp(cosine - 1) of syntax"

    def one_thread(self) -> AbstractContextManager[object]:
        """Return a context that limits matrix products to one thread; torch is not needed."""
        return one_blas_thread()

    def similarities(self, logs: FloatArray) -> FloatArray:
        """Return the cosines."""
        return logs + np.float32(1)

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """Check whether the encoder matches the entries; swapped sides match equally well."""
        check.judge(table, syntax_fit(self.model, piece.sources, piece.targets), lambda: None)

    def score(self, window: TextPiece) -> FloatArray:
        """Return the cosines of a window, minus 1."""
        with self.one_thread():
            return self.model.cosines(window.sources, window.targets) - np.float32(1)

    def scored_entries(self, window: TextPiece, scores: FloatArray) -> ScoredEntries:
        """Return the scores of a window, and count pairs that are too long."""
        unscored = np.flatnonzero(np.isnan(scores)).tolist()
        if unscored:
            sides = [self.model.too_long([side[i] for i in unscored]) for side in (window.sources, window.targets)]
            self.too_long += int(np.logical_or(*sides).sum())
        return super().scored_entries(window, scores)


class SyntaxLikelihood(SyntaxScores):
    """Logarithms of probabilities of parts of speech; a similarity source with one column.

    Args:
        model: the encoder with its decoder.
        tagger: tags the side that is predicted.
        language: language of that side.
        backward: whether sources instead of targets are predicted.
        first: whether this is the first source of its model, which runs the check for all its sources.
        check, threads, folder: see `WindowedScores`.
    """

    def __init__(
        self, model: SyntaxModel, tagger: TaggerModel, language: str, backward: bool, first: bool,
        check: FitCheck | None = None, threads: int = 1, folder: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(model, check, threads, folder)
        self._tagger, self._language, self._backward, self._first = tagger, language, backward, first

    @property
    def signature(self) -> str:
        """Signature of the encoder and the tagger."""
        return f"{self.model.signature}|{self._tagger.signature}|predicted:{self._language}"

    @property
    def column(self) -> str:
        """Name of the score column."""
        return "p(tags of source | target)" if self._backward else "p(tags of target | source)"

    def similarities(self, logs: FloatArray) -> FloatArray:
        """Return the probabilities."""
        return np.exp(logs)

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """Check whether the encoder matches the entries; only the first source of a model does this."""
        if self._first:
            super().judge(check, table, piece)

    def score(self, window: TextPiece) -> FloatArray:
        """Return the logarithms of the probabilities of a window."""
        sides = window.sources, window.targets
        read, written = sides[::-1] if self._backward else sides
        with self.one_thread():
            return tag_log_probabilities(self.model, self._tagger, read, written, self._language)

    def scored_entries(self, window: TextPiece, scores: FloatArray) -> ScoredEntries:
        """Return the scores of a window; only the first source of a model counts pairs that are too long."""
        return (
            super().scored_entries(window, scores) if self._first else TextScores.scored_entries(self, window, scores)
        )


def syntax_sources(
    check: FitCheck, threads: int, folders: Sequence[str | None], request: LikelihoodRequest
) -> list[SyntaxScores]:
    """Return the similarity sources of a syntactic encoder, in the order of their columns.

    Args:
        check, threads: see `SyntaxScores`.
        folders: folder of each source.
        request: columns to compute.

    Raises:
        ModelError: the encoder or the tagger cannot be loaded.
        ValueError: the encoder or the tagger does not support a language.
    """
    model, tagger = SyntaxModel.load(check.folder), TaggerModel.load(request.tagger)
    sources: list[SyntaxScores] = []
    for number, (kind, folder) in enumerate(zip(request.kinds, folders, strict=True)):
        if kind == COSINE:
            sources.append(SyntaxScores(model, check, threads, folder))
            continue
        language = request.languages[0 if kind == BACKWARD else 1]
        check_languages(model, tagger, language)
        sources.append(SyntaxLikelihood(model, tagger, language, kind == BACKWARD, not number, check, threads, folder))
    return sources
