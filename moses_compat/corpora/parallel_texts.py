"""What translators learn from, in files: the two sides of a bitext, or phrase pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moses_compat.corpora.bitext import check_line_counts, check_two_sides
from moses_compat.corpora.texts import read_texts
from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.names import display_name
from moses_compat.files.streams import Input
from phrasetool.phrases import ByteArray, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.train.text_pairs import TextPairs
from phrasetool.vocabulary import has_escapes, unescape

_Progress = Callable[[int, int], None]


def read_parallel_texts(source: str, target: str, progress: _Progress = lambda position, texts: None) -> TextPairs:
    """Read both sides of a bitext, escapes undone.

    Args:
        source, target: files, compressed or not; `-` for standard input.
        progress: called with the bytes consumed and the lines read so far, for each side.

    Raises:
        DataError: a file cannot be read or holds nothing, a line is empty, or one file has more lines than the other.
        PhraseToolError: both are one file, or standard input.
    """
    check_two_sides(source, target)
    (sources, source_symbols), (targets, target_symbols) = (
        read_texts(path, progress, as_written=True) for path in (source, target)
    )
    check_line_counts(display_name(source), len(sources), display_name(target), len(targets))
    escaped = any(has_escapes(word) for word in target_symbols.words)
    sides = unescaped_words(sources, source_symbols.words), unescaped_words(targets, target_symbols.words)
    return TextPairs(sides[0][0], sides[1][0], sides[0][1], sides[1][1], escaped)


def read_own_texts(path: str, progress: _Progress = lambda position, texts: None) -> TextPairs:
    """Read a text as both sides of a bitext, escapes undone.

    Raises:
        DataError: the file cannot be read or holds nothing, or a line is empty.
    """
    texts, symbols = read_texts(path, progress, as_written=True)
    side, words = unescaped_words(texts, symbols.words)
    return TextPairs(side, side, words, words, any(has_escapes(word) for word in symbols.words))


def read_phrase_texts(
    path: str, max_length: int, min_count: float, progress: _Progress = lambda position, pairs: None
) -> TextPairs:
    """Read the distinct phrase pairs of a file, see `read_training_pairs`."""
    escaped = False

    def look(text: ByteArray) -> None:
        nonlocal escaped
        escaped = escaped or has_escapes(text.tobytes())

    with Input(path) as file:
        pairs = read_training_pairs(file, max_length=max_length, min_count=min_count, progress=progress, seen=look)
    words = pairs.source_vocabulary.words, pairs.target_vocabulary.words
    return TextPairs(pairs.sources, pairs.targets, *words, escaped)


def unescaped_words(texts: Phrases, words: list[bytes]) -> tuple[Phrases, list[bytes]]:
    """Texts in ids of distinct words without escapes, and these words, given texts in ids of words as written."""
    plain = Symbols()
    ids = np.array([plain.add(unescape(word)) for word in words], np.int32)
    return Phrases(texts.offsets, ids[texts.words] if len(ids) else texts.words), plain.words
