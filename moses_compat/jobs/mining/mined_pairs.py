"""Files of sentence pairs: what was mined, with scores, and gold pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.phrases import DoubleArray
from phrasetool.text_splitting import single_spaced, split_lines, split_words

COPY = b"copy"
_Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class MinedPairs:
    """A file of `phrasetool mine`.

    Attributes:
        scores: float64, shape (N,).
        pairs: N sources and targets, sentences or their names.
    """

    scores: DoubleArray
    pairs: list[_Pair]


def read_mined(path: str) -> MinedPairs:
    """Read pairs with scores: score, source and target between tabs; what follows is not looked at.

    Raises:
        DataError: the file cannot be read, or a line is something else.
    """
    scores, pairs = [], []
    for number, line in _lines(path):
        fields = line.split(b"\t")
        if len(fields) < 3:
            raise DataError(path, "expected a score, a source and a target, with tabs between", number)
        try:
            score = float(fields[0])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            shown = fields[0].decode("utf-8", "replace")
            raise DataError(path, f"{shown!r} is not a score; expected a finite number", number)
        scores.append(score)
        pairs.append((_words(fields[1]), _words(fields[2])))
    return MinedPairs(np.array(scores, np.float64), pairs)


def read_gold(path: str) -> set[_Pair]:
    """Read right pairs: source and target between a tab; a score before them, as in mined pairs, is not looked at.

    Raises:
        DataError: the file cannot be read, has no pair, or a line is something else.
    """
    found = set()
    for number, line in _lines(path):
        fields = line.split(b"\t")
        if len(fields) >= 3 and _is_number(fields[0]):
            fields = fields[1:]
        if len(fields) < 2 or not _words(fields[0]) or not _words(fields[1]):
            raise DataError(path, "expected a source and a target, with a tab between", number)
        found.add((_words(fields[0]), _words(fields[1])))
    if not found:
        raise DataError(path, "there is no pair in it")
    return found


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _words(field: bytes) -> bytes:
    """Blanks are not told apart."""
    return single_spaced(field)


def _lines(path: str) -> list[tuple[int, bytes]]:
    with Input(path) as file:
        return [(number, line) for number, line in enumerate(split_lines(file.read_all()), 1) if split_words(line)]
