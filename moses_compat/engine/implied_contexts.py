"""Contexts that a pruned language model lacks and kenlm adds when it reads the ARPA file.

SRILM may prune the 2-gram `b c` and keep the 3-grams `a b c` and `b c d`.  When kenlm reads `a b c`, it adds `b c` with
the probability that back-off gives it and a back-off of 0 (lm/search_hashed.cc, `FindLower` and `AdjustLower`), so that
`b c d` has a context.  A context that no earlier n-gram ends with stays an error, as the file may be damaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.smt.decoder.table import PhraseIndex, find_phrases, index_phrases
from phrasetool.smt.language_model.automaton import NgramError
from phrasetool.smt.language_model.ngrams import NgramTable


def with_implied_contexts(tables: Sequence[NgramTable]) -> list[NgramTable]:
    """The tables of a back-off model with all contexts that kenlm adds.

    Args:
        tables: as in `BackoffModel`, each in the order of the file.

    Raises:
        NgramError: a context is missing, and no n-gram up to the one that needs it ends with it.
    """
    found = list(tables)
    # From long n-grams to short ones, as what is added needs contexts, too.
    for order in range(len(found), 2, -1):
        table, shorter = found[order - 1], found[order - 2]
        contexts = _phrases(table.words[:, :-1])
        index = _index(shorter.words)
        rows = np.flatnonzero(find_phrases(index, contexts) < 0)
        if not len(rows):
            continue
        _check_implied(table.words[: len(tables[order - 1])], rows[rows < len(tables[order - 1])], order)
        missing = np.unique(table.words[rows, :-1], axis=0).astype(np.int32)
        zeros = np.zeros(len(missing), np.float32)
        # Probabilities follow when all shorter n-grams are there.
        found[order - 2] = NgramTable(
            np.concatenate([shorter.words, missing]), np.concatenate([shorter.log_probabilities, zeros]),
            np.concatenate([shorter.backoffs, zeros]),
        )  # fmt: skip
    for order in range(2, len(found)):
        if len(found[order - 1]) > len(tables[order - 1]):
            _score_added(found, order, len(tables[order - 1]))
    return found


def _phrases(words: Int32Array) -> Phrases:
    return Phrases(np.arange(len(words) + 1) * words.shape[1], np.ascontiguousarray(words, np.int32).reshape(-1))


def _index(words: Int32Array) -> PhraseIndex:
    return index_phrases(_phrases(words))[0]


def _check_implied(words: Int32Array, rows: Int64Array, order: int) -> None:
    """Refuse n-grams in these rows whose context no n-gram up to them ends with."""
    endings, first_rows = np.unique(words[:, 1:], axis=0, return_index=True)
    place = find_phrases(_index(endings), _phrases(words[rows, :-1]))
    late = (place < 0) | (first_rows[place] > rows)
    if late.any():
        message = f"the first {order - 1} words of this {order}-gram are no {order - 1}-gram"
        raise NgramError(order, int(rows[late][0]), message, lacks_context=True)


def _score_added(tables: list[NgramTable], order: int, first: int) -> None:
    """Give the n-grams of an order from a row on the probabilities of back-off, in single precision as kenlm."""
    table = tables[order - 1]
    indexes = [_index(one.words) for one in tables[: order - 1]]

    def row(words: Int32Array) -> int:
        return int(find_phrases(indexes[len(words) - 1], _phrases(words[None]))[0])

    for added in range(first, len(table)):
        words = table.words[added]
        # The longest ending that is an n-gram; that of one word always is.
        start = next(start for start in range(1, order) if row(words[start:]) >= 0)
        score = np.float32(tables[order - start - 1].log_probabilities[row(words[start:])])
        for begin in range(start - 1, -1, -1):
            context = row(words[begin:-1])
            if context >= 0:
                score = np.float32(score + tables[order - begin - 2].backoffs[context])
        table.log_probabilities[added] = score
