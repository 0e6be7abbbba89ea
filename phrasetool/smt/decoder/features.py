"""The features of a derivation and their weights, by their names in moses.ini; orientations of lexicalised reordering.

**Orientations** (Koehn et al. 2005).  The state is the previous phrase's span, as for Moses' `wbe` and `phrase` models;
`hier` models look at blocks of phrases and are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array

# Model types, as the kernel below takes them.
MSD, MSLR, MONOTONICITY, LEFT_RIGHT = range(4)
_TYPES = {
    "msd": (MSD, ("monotone", "swap", "discontinuous")),
    "mslr": (MSLR, ("monotone", "swap", "discontinuous-left", "discontinuous-right")),
    "monotonicity": (MONOTONICITY, ("monotone", "not monotone")),
    "leftright": (LEFT_RIGHT, ("right", "left")),
}
_DIRECTIONS = {"backward": ("backward",), "forward": ("forward",), "bidirectional": ("backward", "forward")}
Vector = npt.NDArray[np.float64]
DIGITS = "0123456789"

# The score of a word that no phrase covers, and the lowest log score (Moses, TypeDef.h).
UNKNOWN_WORD_SCORE = -100.0
LOWEST_SCORE = -100.0


@exact_kernel
def orientation_of(kind: int, previous_start: int, previous_end: int, start: int, end: int) -> int:
    """Return the orientation of the span start..end after previous_start..previous_end (both inclusive).

    The span before the first phrase is -1..-1: the first phrase is monotone if it starts at 0, else discontinuous to
    the right (Moses, LRState.cpp).
    """
    monotone = start == previous_end + 1
    if kind == MONOTONICITY:
        return 0 if monotone else 1
    right = start > previous_end
    if kind == LEFT_RIGHT:
        return 0 if right else 1
    if monotone:
        return 0
    if previous_start == end + 1:
        return 1
    if kind == MSD:
        return 2
    return 3 if right else 2


@dataclass(frozen=True)
class ReorderingModel:
    """Kind of the lexicalised reordering model that a table holds.

    Args:
        kind: MSD, MSLR, MONOTONICITY or LEFT_RIGHT.
        directions: `backward`, `forward` or both, in the order of their columns.
        source_only: the probabilities are conditioned on the source phrase alone (`f`, not `fe`).
        collapsed: one weight per direction instead of one per orientation (`collapseff`).
    """

    kind: int
    directions: tuple[str, ...]
    source_only: bool = False
    collapsed: bool = False

    @classmethod
    def parse(cls, text: str) -> ReorderingModel:
        """Read a type as in moses.ini, e.g. `wbe-msd-bidirectional-fe-allff`.

        Raises:
            ValueError: a part is unknown or not supported.
        """
        kind, directions, source_only, collapsed = None, _DIRECTIONS["backward"], None, False
        for part in text.split("-"):
            if part in _TYPES:
                kind = _TYPES[part][0]
            elif part in _DIRECTIONS:
                directions = _DIRECTIONS[part]
            elif part in ("f", "fe"):
                source_only = part == "f"
            elif part in ("allff", "collapseff"):
                collapsed = part == "collapseff"
            elif part not in ("wbe", "phrase"):
                raise ValueError(f"reordering type {text!r}: {part!r} is not supported")
        if kind is None:
            raise ValueError(f"reordering type {text!r} must contain one of {', '.join(_TYPES)}")
        if source_only is None:
            # Moses stops at such a type.
            raise ValueError(f"reordering type {text!r} must contain fe or f, the phrases that condition it")
        if collapsed and len(directions) > 1:
            # Moses always reads the forward probabilities from the second column on.
            raise ValueError(f"reordering type {text!r}: collapseff is supported for a single direction only")
        return cls(kind, directions, source_only, collapsed)

    @property
    def orientations(self) -> int:
        """Number of orientations per direction."""
        return len(next(names for kind, names in _TYPES.values() if kind == self.kind))

    @property
    def columns(self) -> int:
        """Number of scores per line of the table."""
        return self.orientations * len(self.directions)

    @property
    def weights(self) -> int:
        """Number of weights of the model."""
        return len(self.directions) if self.collapsed else self.columns

    @property
    def column_weights(self) -> Int32Array:
        """Index of the weight of each column, int32, shape (columns,)."""
        return np.arange(self.columns, dtype=np.int32) // (self.orientations if self.collapsed else 1)

    def first_column(self, direction: str) -> int:
        """Return the first column of a direction, or -1 if the model does not have it."""
        return self.directions.index(direction) * self.orientations if direction in self.directions else -1


def numbered(feature: str, place: int) -> str:
    """Return the key of one of several feature functions of a kind: `LM`, `LM1`, `LM2` and so on."""
    return f"{feature}{place}" if place else feature


@dataclass(frozen=True)
class FeatureSet:
    """The feature functions of a model, and the positions of their values in a feature vector.

    The order of a vector is that of a Moses n-best list for an ini of train-model.perl: lexicalised reordering,
    distortion, language models, word penalty, phrase penalty, phrase-table scores.  The unknown-word penalty is not
    included: it is neither tuned nor listed.

    Args:
        tables: number of scores per entry of each phrase table, in the order of moses.ini.
        reordering: the reordering model, if there is one.
        names: names of the features in moses.ini, by the keys of `sizes`.
        unknown_weight: weight of the unknown-word penalty, which is -100 for every copied word.
        language_models: number of language models.
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
        """Number of values of each feature function, in order; see `numbered` for the keys of several of a kind."""
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
        """Slice of each feature function in a vector."""
        slices, first = {}, 0
        for name, size in self.sizes.items():
            slices[name] = slice(first, first + size)
            first += size
        return slices

    @property
    def language_part(self) -> slice:
        """Slice of the language models in a vector."""
        first = self.slices["LM"].start
        return slice(first, first + self.language_models)

    @property
    def table_part(self) -> slice:
        """Slice of the scores of all phrase tables in a vector."""
        return slice(len(self) - sum(self.tables), len(self))

    def table_columns(self, table: int) -> slice:
        """Return the slice of a phrase table's scores among those of all tables, by its position in moses.ini."""
        first = sum(self.tables[:table])
        return slice(first, first + self.tables[table])

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def name(self, feature: str) -> str:
        """Return the name of a feature function in moses.ini."""
        return self.names.get(feature, feature if feature[-1].isdigit() else f"{feature}0")

    def default_weights(self) -> Vector:
        """Return the weights that train-model.perl writes, float64, shape (F,)."""
        defaults = {
            "LexicalReordering": 0.3,
            "Distortion": 0.3,
            "LM": 0.5,
            "WordPenalty": -1.0,
            "PhrasePenalty": 0.2,
            "TranslationModel": 0.2,
        }
        return np.concatenate([np.full(size, defaults[name.rstrip(DIGITS)]) for name, size in self.sizes.items()])
