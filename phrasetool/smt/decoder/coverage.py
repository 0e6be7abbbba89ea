"""How much of a text a phrase table can translate.

A token counts as covered where it stands inside a source phrase of the table that occurs in its sentence.  Tables whose
one-word sources were pruned, and languages whose words go together, translate many tokens in longer phrases only, and
a decoder would take these; a token that no such phrase holds is left as it is, whatever the weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Phrases
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
    lengths = sentences.lengths
    left = np.repeat(sentences.offsets[1:], lengths) - np.arange(len(sentences.words))
    for size in range(1, min(int(table.index.longest[0]), int(lengths.max(initial=0))) + 1):
        starts = np.flatnonzero(left >= size)
        words = sentences.words[(starts[:, None] + np.arange(size)).ravel()]
        numbers = find_phrases(table.index, Phrases(np.arange(len(starts) + 1) * size, words))
        found = starts[(numbers >= 0) & known[numbers]]
        changes[found] += 1
        changes[found + size] -= 1
    return np.asarray(np.cumsum(changes[:-1]) > 0)
