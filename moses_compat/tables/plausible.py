"""Whether what was given as a table can be meant: nothing, a table of another kind, or another file altogether."""

from __future__ import annotations

import re

import numpy as np

from moses_compat.files.kinds import HEAD_BYTES, guess, refuse
from moses_compat.files.streams import Input
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.parser import count_scores
from phrasetool.errors import DataError
from phrasetool.text_splitting import single_spaced, split_lines, split_words

PHRASE_TABLE = "a phrase table"
REORDERING_TABLE = "a reordering table"
_POINTS = re.compile(rb"(\d+-\d+ ?)+")
# Probabilities have six digits; those of an orientation add up to 1.  In the reordering table of Multi30k (1,117,535
# lines) no sum is further from it than 3e-6.
_SUM = 1e-4
_PENALTY = (b"2.718", b"2.71828", b"2.718281828")
# Where two lines have the same scores they say nothing; a table of a few lines may have them by chance.
_FEWEST_DIFFERENT = 3


def check_plausible(source: Input, scan: TableScan, expected: str = PHRASE_TABLE) -> None:
    """Refuse what cannot be meant, by the first lines, which stay to be read.

    Args:
        source: at its beginning.
        scan: with `allow_empty` a table may have no line; with `force` a table that looks like one of the other kind is
            a warning.
        expected: one of the constants above.

    Raises:
        DataError: there is no line, or blank ones only; the file is of another kind; or a table looks like one of the
            other kind.
    """
    head = source.peek(HEAD_BYTES)
    if not head.strip(b" \t\r\n"):
        if len(head) < HEAD_BYTES and not scan.allow_empty:
            nothing = "holds blank lines only" if head else "is empty"
            raise DataError(source.name, f"{nothing}; expected {expected}", remedy="allow an empty input")
        return
    refuse(source.name, head)
    whole = head[: head.rfind(b"\n") + 1] if len(head) == HEAD_BYTES else head
    if count_scores(np.frombuffer(whole or head, np.uint8)) < 0:
        if expected == PHRASE_TABLE and (kind := guess(head)) is not None:
            raise DataError(source.name, f"looks like {kind}")
        return
    found = looks_like(whole)
    if found is None or found == expected:
        return
    scan.refuse(DataError(source.name, f"looks like {found}; expected {expected}", remedy="go on"))


def looks_like(head: bytes) -> str | None:
    """Which of the two kinds of tables these lines are certainly of, or None if they may be of either.

    A reordering table has three fields, and in the third the probabilities of three or four orientations (two, for
    some), of one or two directions: each set adds up to 1.  A phrase table has alignments and counts, or ends with the
    phrase penalty; one of three fields without it can be told by nothing.

    Args:
        head: the first lines of a table.
    """
    rows = [
        [single_spaced(field) for field in line.split(b"|||")] for line in split_lines(head) if line.count(b"|||") >= 2
    ]
    if not rows:
        return None
    if all(len(row) > 4 and row[4] for row in rows) or all(len(row) > 3 and _POINTS.fullmatch(row[3]) for row in rows):
        return PHRASE_TABLE
    scores = [split_words(row[2]) for row in rows]
    if all(len(row) > 3 and row[-1] in _PENALTY for row in scores):
        return PHRASE_TABLE
    if any(len(row) > 3 for row in rows) or len({tuple(row) for row in scores}) < _FEWEST_DIFFERENT:
        return None
    return REORDERING_TABLE if _orientations(scores) else None


def _orientations(scores: list[list[bytes]]) -> bool:
    """Whether all scores are probabilities of orientations."""
    try:
        values = np.array([[float(score) for score in row] for row in scores])
    except ValueError:
        return False
    if values.ndim != 2 or (values < 0).any():
        return False
    sizes = {2: (2,), 3: (3,), 4: (4, 2), 6: (3,), 8: (4,)}.get(values.shape[1], ())
    return any(bool((np.abs(values.reshape(len(values), -1, size).sum(axis=2) - 1) < _SUM).all()) for size in sizes)
