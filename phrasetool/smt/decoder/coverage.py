"""How much of a text a phrase table can translate, and with which words.

A token counts as covered where it stands inside a source phrase of the table that occurs in its sentence.  Tables whose
one-word sources were pruned, and languages whose words go together, translate many tokens in longer phrases only, and
a decoder would take these; a token that no such phrase holds is left as it is, whatever the weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Int64Array, Phrases
from phrasetool.smt.decoder.table import TranslationTable, find_phrases


def covered_tokens(table: TranslationTable, sentences: Phrases) -> npt.NDArray[np.bool_]:
    """Which tokens of a text some entry of the table can translate.

    Args:
        table: entries; copies of unknown words do not count.
        sentences: the text, in ids of the table's source words.

    Returns:
        bool, one for each of `sentences.words`.
    """
    known = ~table.copies[table.first[:-1]]
    # Where phrases begin, less where they have ended.
    changes = np.zeros(len(sentences.words) + 1, np.int64)
    for size, starts, numbers in _occurrences(table, sentences):
        places = starts[known[numbers]]
        changes[places] += 1
        changes[places + size] -= 1
    return np.asarray(np.cumsum(changes[:-1]) > 0)


def offered_words(table: TranslationTable, sentences: Phrases, best: int) -> Phrases:
    """The target words that a table has for each sentence, whatever the weights of its scores.

    Args:
        table: entries; copies of unknown words do not count.
        sentences: S sentences, in ids of the table's source words.
        best: entries of each source phrase that are looked at: those with the highest sums of scores.

    Returns:
        S lists of distinct target words, ascending.
    """
    entries = _best_entries(table, best)
    targets = table.targets.select(entries)
    first = np.searchsorted(table.sources_of(entries), np.arange(len(table.first)))
    lines = np.repeat(np.arange(len(sentences)), sentences.lengths)
    words = len(table.target_symbols.words) + 1
    pairs = [np.zeros(0, np.int64)]
    for _, starts, numbers in _occurrences(table, sentences):
        used = np.unique(lines[starts] * len(table.first) + numbers)
        line, source = np.divmod(used, len(table.first))
        counts = first[source + 1] - first[source]
        ends = np.cumsum(counts)
        rows = np.arange(counts.sum()) + np.repeat(first[source] - ends + counts, counts)
        offered = targets.select(rows)
        pairs.append(np.unique(np.repeat(np.repeat(line, counts), offered.lengths) * words + offered.words))
    line, word = np.divmod(np.unique(np.concatenate(pairs)), words)
    return Phrases(np.searchsorted(line, np.arange(len(sentences) + 1)), word.astype(np.int32))


def _occurrences(table: TranslationTable, sentences: Phrases) -> Iterator[tuple[int, Int64Array, Int64Array]]:
    """Where source phrases of a table occur in a text: their words, their first tokens, and their numbers."""
    lengths = sentences.lengths
    left = np.repeat(sentences.offsets[1:], lengths) - np.arange(len(sentences.words))
    for size in range(1, min(int(table.index.longest[0]), int(lengths.max(initial=0))) + 1):
        starts = np.flatnonzero(left >= size)
        words = sentences.words[(starts[:, None] + np.arange(size)).ravel()]
        numbers = find_phrases(table.index, Phrases(np.arange(len(starts) + 1) * size, words))
        yield size, starts[numbers >= 0], numbers[numbers >= 0]


def _best_entries(table: TranslationTable, best: int) -> Int64Array:
    """The entries of each source with the highest sums of scores, without copies, ascending."""
    sources = table.entry_sources
    order = np.lexsort((-table.scores.sum(axis=1), sources))
    rank = np.arange(len(order)) - table.first[:-1][sources[order]]
    entries = order[rank < best]
    return np.sort(entries[~table.copies[entries]])
