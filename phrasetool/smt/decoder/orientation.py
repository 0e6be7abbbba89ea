"""Orientations of lexicalised reordering (Koehn et al. 2005), and where their scores stand in a table.

The state is the previous phrase's span, as for Moses' `wbe` and `phrase` models; `hier` models look at blocks of
phrases and are not supported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array

# Model types, as the kernel below knows them.
MSD, MSLR, MONOTONICITY, LEFT_RIGHT = range(4)
_TYPES = {
    "msd": (MSD, ("monotone", "swap", "discontinuous")),
    "mslr": (MSLR, ("monotone", "swap", "discontinuous-left", "discontinuous-right")),
    "monotonicity": (MONOTONICITY, ("monotone", "not monotone")),
    "leftright": (LEFT_RIGHT, ("right", "left")),
}
_DIRECTIONS = {"backward": ("backward",), "forward": ("forward",), "bidirectional": ("backward", "forward")}


@exact_kernel
def orientation_of(kind: int, previous_start: int, previous_end: int, start: int, end: int) -> int:
    """The orientation of the span start..end after previous_start..previous_end (both inclusive).

    Before the first phrase the previous span is -1..-1: it is monotone after that if it starts at 0, else
    discontinuous to the right (Moses, LRState.cpp).
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
        directions: of `backward`, `forward`, in the order of their columns.
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
        kind, directions, source_only, collapsed = None, _DIRECTIONS["backward"], False, False
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
            raise ValueError(f"reordering type {text!r} names none of {', '.join(_TYPES)}")
        if collapsed and len(directions) > 1:
            # Moses reads the forward probabilities from the second column on, whatever there is.
            raise ValueError(f"reordering type {text!r}: collapseff is supported for one direction alone")
        return cls(kind, directions, source_only, collapsed)

    @property
    def orientations(self) -> int:
        """Orientations per direction."""
        return len(next(names for kind, names in _TYPES.values() if kind == self.kind))

    @property
    def columns(self) -> int:
        """Scores a line of the table has."""
        return self.orientations * len(self.directions)

    @property
    def weights(self) -> int:
        """Weights the model has."""
        return len(self.directions) if self.collapsed else self.columns

    @property
    def column_weights(self) -> Int32Array:
        """int32, shape (columns,): which weight each column takes."""
        return np.arange(self.columns, dtype=np.int32) // (self.orientations if self.collapsed else 1)

    def first_column(self, direction: str) -> int:
        """Where the columns of a direction begin, or -1 if the model does not have it."""
        return self.directions.index(direction) * self.orientations if direction in self.directions else -1
