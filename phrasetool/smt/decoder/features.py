"""The features of a derivation and their weights, by the names moses.ini gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from phrasetool.smt.decoder.orientation import ReorderingModel

Vector = npt.NDArray[np.float64]
DIGITS = "0123456789"

# The score of a word no phrase covers, and the least a log score can be (Moses, TypeDef.h).
UNKNOWN_WORD_SCORE = -100.0
LOWEST_SCORE = -100.0


def numbered(feature: str, place: int) -> str:
    """The key of one of several feature functions of a kind: `LM`, `LM1`, `LM2` and so on."""
    return f"{feature}{place}" if place else feature


@dataclass(frozen=True)
class FeatureSet:
    """The feature functions of a model, and where each one's values stand in a feature vector.

    The order of a vector is that of a Moses n-best list: lexicalised reordering, distortion, language models, word
    penalty, phrase penalty, phrase-table scores.  The unknown-word penalty is not among them: it is not tuned and not
    listed.

    Args:
        tables: scores of an entry of each phrase table, in the ini's order.
        reordering: the reordering model, if there is one.
        names: what moses.ini calls the features; keys are those of `sizes`.
        unknown_weight: weight of the unknown-word penalty, -100 for every copied word.
        language_models: how many there are.
        has_distortion: whether Distortion is among the features; without it Moses recombines hypotheses that end at
            different source words, unless there is a reordering model.
    """

    tables: tuple[int, ...]
    reordering: ReorderingModel | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    unknown_weight: float = 1.0
    language_models: int = 1
    has_distortion: bool = True

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Values of each feature function, in order; see `numbered` for the keys of several of a kind."""
        return {
            **({"LexicalReordering": self.reordering.weights} if self.reordering else {}),
            "Distortion": 1,
            **{numbered("LM", i): 1 for i in range(self.language_models)},
            "WordPenalty": 1,
            "PhrasePenalty": 1,
            **{numbered("TranslationModel", i): size for i, size in enumerate(self.tables)},
        }

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each feature function stands in a vector."""
        slices, first = {}, 0
        for name, size in self.sizes.items():
            slices[name] = slice(first, first + size)
            first += size
        return slices

    @property
    def language_part(self) -> slice:
        """Where the language models stand in a vector."""
        first = self.slices["LM"].start
        return slice(first, first + self.language_models)

    @property
    def table_part(self) -> slice:
        """Where the scores of all phrase tables stand in a vector."""
        return slice(len(self) - sum(self.tables), len(self))

    def table_columns(self, table: int) -> slice:
        """Where the scores of a phrase table stand among those of all, by its place in the ini."""
        first = sum(self.tables[:table])
        return slice(first, first + self.tables[table])

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def name(self, feature: str) -> str:
        """What moses.ini calls a feature function."""
        return self.names.get(feature, feature if feature[-1].isdigit() else f"{feature}0")

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
        return np.concatenate([np.full(size, defaults[name.rstrip(DIGITS)]) for name, size in self.sizes.items()])
