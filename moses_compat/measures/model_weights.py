"""What a moses.ini says an entry of a phrase table is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_compat.ini.lines import FeatureLine
from moses_compat.ini.moses_ini import MosesIni
from moses_compat.ini.moses_sections import overwritten
from phrasetool.phrases import FloatArray


@dataclass(frozen=True)
class TableWeights:
    """The weights of a model that make the score of an entry.

    Attributes:
        scores: float32, shape (C,), of the score columns.
        phrase_penalty: of one more phrase.
        distortion: of a jump by a word.
        name: of the table's feature in the ini, for messages.
        size: the sum of the sizes of all weights of the model; scores divided by it do not depend on their scale.
    """

    scores: FloatArray
    phrase_penalty: float = 0.0
    distortion: float = 0.0
    name: str = "the model"
    size: float = 1.0

    def total(self, logs: FloatArray) -> FloatArray:
        """What N entries add to the score of the model.

        Args:
            logs: float32, shape (N, C), natural logarithms of their scores.

        Returns:
            float32, shape (N,).
        """
        # Column by column: a product of matrices may add in an order that depends on the number of entries.
        total = np.full(len(logs), self.phrase_penalty, np.float64)
        for column, weight in enumerate(self.scores.astype(np.float64)):
            total += weight * logs[:, column]
        return total.astype(np.float32)


def weights_of(ini: MosesIni, table: FeatureLine) -> TableWeights:
    """The weights that an ini of version 1 or 2 gives the entries of one of its phrase tables.

    Args:
        ini: the ini.
        table: the feature of the table; see `ini_tables.choose_table`.

    Returns:
        The weights; 0 for the phrase penalty or the distortion if the ini has no such feature.

    Raises:
        DataError: a feature has no weights, or not as many as it needs.
    """
    ini = overwritten(ini)
    scores = np.array(_weights(ini, table), np.float32)
    single = {"PhrasePenalty": 0.0, "Distortion": 0.0}
    for feature in ini.features:
        if feature.kind in single:
            values = _weights(ini, feature)
            if len(values) != 1:
                raise ini.error(
                    f"{feature.name} has {len(values)} weights; expected one", ini.weight_lines.get(feature.name)
                )
            single[feature.kind] += values[0]
    size = sum(
        abs(value)
        for feature in ini.features
        if feature.kind != "UnknownWordPenalty"
        for value in ini.weights.get(feature.name, ())
    )
    return TableWeights(scores, single["PhrasePenalty"], single["Distortion"], table.name, size or 1.0)


def _weights(ini: MosesIni, feature: FeatureLine) -> list[float]:
    if feature.name not in ini.weights:
        raise ini.error(
            f"[weight] has no line {feature.name}=, and Moses would take 1 for every weight; give it one", feature.line
        )
    return ini.weights[feature.name]
