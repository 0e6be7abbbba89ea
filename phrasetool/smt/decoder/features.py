"""The features of a derivation and their weights, by the names moses.ini gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from phrasetool.smt.decoder.orientation import ReorderingModel

Vector = npt.NDArray[np.float64]

# The score of a word no phrase covers, and the least a log score can be (Moses, TypeDef.h).
UNKNOWN_WORD_SCORE = -100.0
LOWEST_SCORE = -100.0


@dataclass(frozen=True)
class FeatureSet:
    """The feature functions of a model, and where each one's values stand in a feature vector.

    The order of a vector is that of a Moses n-best list: lexicalised reordering, distortion, language model, word
    penalty, phrase penalty, phrase-table scores.  The unknown-word penalty is not among them: it is not tuned and not
    listed.

    Args:
        table_scores: scores of a phrase-table entry.
        reordering: the reordering model, if there is one.
        names: what moses.ini calls the features; keys are those of `sizes`.
        unknown_weight: weight of the unknown-word penalty, -100 for every copied word.
    """

    table_scores: int
    reordering: ReorderingModel | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    unknown_weight: float = 1.0

    @property
    def sizes(self) -> dict[str, int]:
        """Values of each feature function, in order."""
        reordering = {"LexicalReordering": self.reordering.weights} if self.reordering else {}
        single = {"Distortion": 1, "LM": 1, "WordPenalty": 1, "PhrasePenalty": 1}
        return {**reordering, **single, "TranslationModel": self.table_scores}

    @property
    def slices(self) -> dict[str, slice]:
        """Where each feature function stands in a vector."""
        found, first = {}, 0
        for name, size in self.sizes.items():
            found[name] = slice(first, first + size)
            first += size
        return found

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def name(self, feature: str) -> str:
        """What moses.ini calls a feature function."""
        return self.names.get(feature, f"{feature}0")

    def default_weights(self) -> Vector:
        """The weights train-model.perl writes, float64, shape (F,)."""
        defaults = {
            "LexicalReordering": 0.3,
            "Distortion": 0.3,
            "LM": 0.5,
            "WordPenalty": -1.0,
            "PhrasePenalty": 0.2,
            "TranslationModel": 0.2,
        }
        return np.concatenate([np.full(size, defaults[name]) for name, size in self.sizes.items()])
