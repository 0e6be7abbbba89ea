"""The four scores that Moses' training writes: p(f|e) lex(f|e) p(e|f) lex(e|f)."""

from __future__ import annotations

from phrasetool.errors import DataError

TRAINED = 4
INVERSE, DIRECT = 0, 2


def require_trained_scores(name: str, scores: int, line: int) -> None:
    """Refuse a table without the scores of Moses' training.

    Args:
        name: the table, as messages call it.
        scores: of its entries; -1 where there is none.
        line: where, from 1.

    Raises:
        DataError: there are too few.
    """
    if 0 <= scores < TRAINED:
        message = f"the entries have {scores} scores, expected the {TRAINED} of Moses' training"
        raise DataError(name, message, line)
