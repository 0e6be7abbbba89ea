"""Which target words a phrase table has for the spans of sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moses_compat.corpora.training_pairs import pair_places
from moses_compat.files.streams import Input
from moses_compat.tables.blocks import blocks
from moses_compat.tables.parser import tokenise
from phrasetool.errors import DataError
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import find_phrases, index_phrases, spans_of
from phrasetool.vocabulary import UNKNOWN, Vocabulary

_BLOCK_BYTES = 1 << 22
# Longer source phrases are not looked up; Moses' default of what is extracted.
_LONGEST = 7


def span_words(
    path: str,
    sentences: Phrases,
    symbols: Symbols,
    vocabulary: Vocabulary,
    progress: Callable[[int, int], None] = lambda position, entries: None,
) -> list[Int64Array]:
    """The words of all targets that a table has for the spans of each sentence, ascending; unknown words are left out.

    Args:
        path: the table, or pairs `source ||| target`, compressed or not.
        sentences: N sentences, in ids of the symbols.
        symbols: source words, written as in the table.
        vocabulary: of the target.
        progress: called with the bytes consumed and the lines read so far.

    Raises:
        DataError: the file cannot be read, a line has no `|||`, or no entry is of the text and the vocabulary.
    """
    index, _ = index_phrases(spans_of(sentences, _LONGEST))
    found = [np.zeros(0, np.int64)]
    lines = 0
    with Input(path) as file:
        for text in blocks(file, _BLOCK_BYTES):
            fields = pair_places(text)
            if len(faulty := np.flatnonzero(fields[:, 1] < 0)):
                raise DataError(file.name, "expected `source ||| target`, found no |||", lines + int(faulty[0]) + 1)
            places = find_phrases(index, symbols.read_fields(text, fields[:, 0], fields[:, 1], add=False))
            wanted = np.flatnonzero(places >= 0)
            starts, ends = np.ascontiguousarray(fields[wanted].T)[2:]
            targets = tokenise(text, starts, ends, vocabulary)
            pairs = np.repeat(places[wanted], targets.lengths) * len(vocabulary) + targets.words
            found.append(np.unique(pairs[targets.words != UNKNOWN]))
            lines += len(fields)
            progress(file.position(), lines)
        name = file.name
    known = np.unique(np.concatenate(found))
    if len(sentences.words) and not len(known):
        raise DataError(
            name, f"none of its {lines:,} entries has a source of the text and a target that the model knows"
        )
    firsts = np.searchsorted(known // len(vocabulary), np.arange(len(index.offsets)))
    words = known % len(vocabulary)

    def allowed(sentence: int) -> Int64Array:
        spans = find_phrases(index, spans_of(sentences.part(sentence, sentence + 1), _LONGEST))
        return np.unique(np.concatenate([words[:0], *(words[firsts[i] : firsts[i + 1]] for i in np.unique(spans))]))

    return [allowed(sentence) for sentence in range(len(sentences))]
