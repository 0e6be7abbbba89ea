"""Bitexts in files: a sentence a line, words between spaces; the n-th lines of both files are translations.

The aligner and the extractor read words as they are written (`read_sentence_pairs`, `read_bitext`); models read words
without Moses' escapes (`read_parallel_texts`, `read_phrase_texts`) or whole lines (`read_line_pairs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

import numpy as np

from moses_compat.corpora.alignments import read_alignments
from moses_compat.corpora.texts import line_blocks, read_line_texts, read_texts, unescaped_words
from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.paths import STANDARD, display_name, same_file
from moses_compat.files.streams import Input
from moses_compat.lines.words import shown, table_fault, text_fault
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import ByteArray, Phrases
from phrasetool.smt.aligning.alignments import Alignments, Bitext
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.text_splitting import single_spaced, split_lines
from phrasetool.training.data import TextPairs
from phrasetool.vocabulary import has_escapes
from phrasetool.watch import Watch

# Seven corpora of 8,000 to 65,000 sentence pairs have none that is two equal sentences, and 6 to 25 % that are equally
# long; of English and the same text normalised, 63 % are equal.
_MANY_COPIES = 0.9


def read_bitext_side(path: str, symbols: Symbols) -> Phrases:
    """Read the sentences of one language; new words are added to the symbols.

    Args:
        path: the file, compressed or not; `-` for standard input.
        symbols: words as ids.

    Raises:
        DataError: a line is empty, or a word cannot be in a table, see `text_fault`.
    """
    with Input(path) as file:
        sentences = Phrases.concatenate([symbols.read_lines(text) for text in file.whole_lines()])
        name = file.name
    lengths = sentences.lengths
    if not lengths.all():
        raise DataError(name, "the sentence is empty; leave out pairs with an empty side", int(np.argmin(lengths)) + 1)
    faulty = [number for number, word in enumerate(symbols.words) if text_fault(word)]
    if faulty and len(places := np.flatnonzero(np.isin(sentences.words, faulty))):
        line = int(np.searchsorted(sentences.offsets, places[0], "right"))
        word = symbols.words[sentences.words[places[0]]]
        raise DataError(name, f"the word {shown(word)} {text_fault(word)}", line)
    return sentences


def warn_of_labels(names: tuple[str, str], bitext: tuple[Phrases, Phrases, Symbols, Symbols], watch: Watch) -> None:
    """Warn of words that Moses cannot read in a table, though phrasetool can; see `table_fault`.

    Args:
        names: of its files.
        bitext: of `read_sentence_pairs`.
        watch: is warned.
    """
    for name, sentences, symbols in zip(names, bitext[:2], bitext[2:], strict=True):
        faulty = [number for number, word in enumerate(symbols.words) if table_fault(word)]
        if faulty and len(places := np.flatnonzero(np.isin(sentences.words, faulty))):
            line = int(np.searchsorted(sentences.offsets, places[0], "right"))
            word = symbols.words[sentences.words[places[0]]]
            watch.warn(f"{display_name(name)}:{line}: the word {shown(word)} {table_fault(word)}")


def check_two_sides(source: str, target: str) -> None:
    """Refuse one file, or standard input, as both sides of a bitext.

    Raises:
        PhraseToolError: they are.
    """
    if source == target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides of a bitext")
    if same_file(source, target):
        raise PhraseToolError(f"{target}: is the file of the source, too; expected its translation")


def check_line_counts(first: str, first_lines: int, second: str, second_lines: int) -> None:
    """Refuse two files that must have as many lines as each other and do not.

    Raises:
        DataError: names the end of the shorter one.
    """
    if first_lines != second_lines:
        short, long = (first, second) if first_lines < second_lines else (second, first)
        fewer, more = sorted((first_lines, second_lines))
        raise DataError(short, f"the file ends after {fewer} lines, but {long} has {more}", fewer + 1)


def read_sentence_pairs(source: str, target: str) -> tuple[Phrases, Phrases, Symbols, Symbols]:
    """Read both sides of a bitext.

    Returns:
        Source sentences, target sentences, source words, target words.

    Raises:
        DataError: see `read_bitext_side`; or the files have different numbers of lines, or none.
        PhraseToolError: both are one file, or standard input.
    """
    check_two_sides(source, target)
    source_symbols, target_symbols = Symbols(), Symbols()
    sources, targets = read_bitext_side(source, source_symbols), read_bitext_side(target, target_symbols)
    check_line_counts(source, len(sources), target, len(targets))
    if not len(sources):
        raise DataError(source, "the bitext has no sentence")
    return sources, targets, source_symbols, target_symbols


def warn_of_copies(names: tuple[str, str], bitext: tuple[Phrases, Phrases, Symbols, Symbols], watch: Watch) -> None:
    """Warn if nearly all sentence pairs of a bitext are two equal sentences.

    Args:
        names: of its files.
        bitext: of `read_sentence_pairs`.
        watch: is warned.
    """
    sources, targets, source_symbols, target_symbols = bitext
    alike = np.flatnonzero(sources.lengths == targets.lengths)
    # Few pairs of real sentences are equally long.
    if len(alike) <= _MANY_COPIES * len(sources):
        return
    ids = np.array([source_symbols.id(word) for word in target_symbols.words], np.int32)
    first, second = sources.select(alike), targets.select(alike)
    copies = int(np.logical_and.reduceat(first.words == ids[second.words], first.offsets[:-1]).sum())
    if copies > _MANY_COPIES * len(sources):
        watch.warn(
            f"{copies:,} of {len(sources):,} sentences of {display_name(names[1])} are the same as in "
            f"{display_name(names[0])}; expected their translations"
        )


def read_bitext(source: str, target: str, alignment: str) -> Bitext:
    """Read a bitext with its word alignment in Pharaoh form.

    Raises:
        DataError: see `read_sentence_pairs` and `read_alignments`; or no words are aligned.
        PhraseToolError: two of them are standard input.
    """
    if alignment == STANDARD and STANDARD in (source, target):
        raise PhraseToolError("standard input: cannot be both a side of the bitext and its alignment")
    sources, targets, source_symbols, target_symbols = read_sentence_pairs(source, target)
    alignments = read_alignments(alignment, sources.lengths, targets.lengths)
    if not len(alignments.source):
        raise DataError(alignment, "aligns no word of the bitext; expected points such as 0-0 1-2")
    return Bitext(sources, targets, alignments, source_symbols, target_symbols)


def read_directions(forward: str, reverse: str) -> tuple[Alignments, Alignments]:
    """Read the alignments of one bitext in both directions.

    Raises:
        DataError: see `read_alignments`; or the files have different numbers of lines.
        PhraseToolError: both are standard input.
    """
    if forward == reverse == STANDARD:
        raise PhraseToolError("standard input: cannot be both directions")
    first, second = read_alignments(forward), read_alignments(reverse)
    check_line_counts(forward, len(first), reverse, len(second))
    return first, second


def shared_pairs(bitext: tuple[str, str], texts: Mapping[str, tuple[bytes, bytes]]) -> dict[str, tuple[int, int]]:
    """Which texts share sentence pairs with a bitext: by name, how many do, and of how many.

    Sentences are the same if their words are; pairs of two sentences without words do not count.  Texts that share none
    are left out.

    Args:
        bitext: files of its two sides.
        texts: name -> source and target.
    """
    pairs = {name: [pair for pair in zip(*map(_words, sides), strict=True) if any(pair)]
             for name, sides in texts.items()}  # fmt: skip
    wanted = {pair for found in pairs.values() for pair in found}
    sides = (chain.from_iterable(map(_words, line_blocks(path))) for path in bitext)
    seen = wanted.intersection(zip(*sides, strict=False))
    counts = {name: (sum(pair in seen for pair in found), len(found)) for name, found in pairs.items()}
    return {name: (shared, of) for name, (shared, of) in counts.items() if shared}


def _words(text: bytes) -> list[bytes]:
    return [single_spaced(line) for line in split_lines(text)]


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


def read_line_pairs(
    source: str, target: str, progress: _Progress = lambda position, lines: None
) -> tuple[list[str], list[str]]:
    """Both sides of a bitext, see `read_line_texts`.

    Raises:
        DataError: a file cannot be read or holds nothing, a line is empty, or one file has more lines than the other.
        PhraseToolError: both are one file, or standard input.
    """
    check_two_sides(source, target)
    sources, targets = read_line_texts(source, progress), read_line_texts(target, progress)
    check_line_counts(display_name(source), len(sources), display_name(target), len(targets))
    return sources, targets
