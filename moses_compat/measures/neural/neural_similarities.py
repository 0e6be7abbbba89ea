"""What translators, or a classifier, say of entries as two similarities, for pruning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from moses_compat.measures.model_fit import FitCheck, TableSample, emptied
from moses_compat.measures.neural.opinion_queue import NeuralOpinions
from moses_compat.measures.neural.score_windows import WindowedScores
from moses_compat.measures.similarities import OneProcessReader, SimilarityReader
from moses_compat.tables.blocks import RawBlock
from phrasetool.errors import DataError
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import DoubleArray, EntryBlock


@dataclass(frozen=True)
class NeuralSimilarities:
    """Two numbers for each entry as a rule for similarities wants them: how probable a word is, in both directions.

    exp(score / (words of the translator's target + 1)), in (0, 1]: the geometric mean of the probabilities, or of the
    relative densities, of the words and the end.  With one translator both are alike.  A classifier gives one
    probability of a pair, and an encoder of syntax one cosine: that is both.

    Args:
        models: one, or a translator for each direction.
    """

    models: tuple[WindowedScores, ...]

    @property
    def signature(self) -> str:
        """Those of the translators."""
        return "+".join(model.signature for model in self.models)

    @property
    def check(self) -> FitCheck | None:
        """Of the first translator."""
        return self.models[0].check

    def reader(self, table: str) -> SimilarityReader:
        """See `SimilaritySource`."""
        return _BothReader(table, self.models)


class _BothReader(OneProcessReader):
    owner = "a translator"

    def __init__(self, table: str, models: tuple[WindowedScores, ...]) -> None:
        self._table, self._models = table, models
        self._readers = [model.reader(table) for model in models]

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        sample, taken = TableSample.take(raws)
        if sample:
            for model in self._models:
                model.orient(self._table, sample)
            if len(self._models) == 2 and self._models[0].backward == self._models[1].backward:
                raise DataError(
                    self._table, f"both models give {self._models[0].column}; one model a direction was expected"
                )
        raws = chain(emptied(taken), raws)
        for reader in self._readers:
            raws = reader.scored(raws)
        return raws

    def take(self, lines: int) -> list[NeuralOpinions]:
        both = [reader.take(lines) for reader in self._readers]
        return both[::-1] if self._models[0].backward else both

    def score(self, block: EntryBlock, columns: DoubleArray, taken: Any) -> Scores:
        models = self._models[:: -1 if self._models[0].backward else 1]
        each = [
            model.similarities(part.logs / part.words.astype(np.float32))
            for model, part in zip(models, taken, strict=True)
        ]
        opinion = np.logical_and.reduce([part.opinion for part in taken])
        similarities = np.column_stack([each[0], each[-1]]).astype(np.float32)
        similarities[~opinion] = 0
        return Scores(similarities, opinion)
