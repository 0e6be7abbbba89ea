"""Bitexts in files: a sentence a line, words between spaces; the n-th lines of both files are translations."""

from __future__ import annotations

import numpy as np

from moses_compat.alignment_text import read_alignments
from moses_compat.streams import STANDARD, Input
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.bitext import SEPARATOR, Bitext
from phrasetool.smt.symbols import Symbols

_CHUNK = 1 << 24


def read_sentences(path: str, symbols: Symbols) -> Phrases:
    """Read the sentences of one language; new words are added to the symbols.

    Args:
        path: the file, compressed or not; `-` for standard input.
        symbols: words as ids.

    Raises:
        DataError: a line is empty, or a word is written `|||`, which separates the fields of a table.
    """
    parts: list[Phrases] = []
    with Input(path) as file:
        pending = b""
        while chunk := file.read(_CHUNK):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                parts.append(symbols.read_lines(pending + chunk[:cut]))
                pending = chunk[cut:]
            else:
                pending += chunk
        if pending:
            parts.append(symbols.read_lines(pending))
        name = file.name
    offsets = np.zeros(sum(len(part) for part in parts) + 1, np.int64)
    np.cumsum(np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)]), out=offsets[1:])
    sentences = Phrases(offsets, np.concatenate([np.zeros(0, np.int32), *(part.words for part in parts)]))
    lengths = sentences.lengths
    if not lengths.all():
        raise DataError(name, "the sentence is empty; leave out pairs with an empty side", int(np.argmin(lengths)) + 1)
    separator = symbols.id(SEPARATOR)
    if separator >= 0 and len(places := np.flatnonzero(sentences.words == separator)):
        line = int(np.searchsorted(offsets, places[0], "right"))
        raise DataError(name, "the word ||| separates the fields of a table; escape it as &#124;&#124;&#124;", line)
    return sentences


def read_sentence_pairs(source: str, target: str) -> tuple[Phrases, Phrases, Symbols, Symbols]:
    """Read both sides of a bitext.

    Returns:
        Source sentences, target sentences, source words, target words.

    Raises:
        DataError: see `read_sentences`; or the files have different numbers of lines, or none.
        PhraseToolError: both are standard input.
    """
    if source == target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides of a bitext")
    source_symbols, target_symbols = Symbols(), Symbols()
    sources, targets = read_sentences(source, source_symbols), read_sentences(target, target_symbols)
    if len(sources) != len(targets):
        short, long = (source, target) if len(sources) < len(targets) else (target, source)
        fewer, more = sorted((len(sources), len(targets)))
        raise DataError(short, f"the file ends after {fewer} lines, but {long} has {more}", fewer + 1)
    if not len(sources):
        raise DataError(source, "the bitext has no sentence")
    return sources, targets, source_symbols, target_symbols


def read_bitext(source: str, target: str, alignment: str) -> Bitext:
    """Read a bitext with its word alignment in Pharaoh form.

    Raises:
        DataError: see `read_sentence_pairs` and `alignment_text.read_alignments`.
        PhraseToolError: two of them are standard input.
    """
    if alignment == STANDARD and STANDARD in (source, target):
        raise PhraseToolError("standard input: cannot be both a side of the bitext and its alignment")
    sources, targets, source_symbols, target_symbols = read_sentence_pairs(source, target)
    alignments = read_alignments(alignment, sources.lengths, targets.lengths)
    return Bitext(sources, targets, alignments, source_symbols, target_symbols)
