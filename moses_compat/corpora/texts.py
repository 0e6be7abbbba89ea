"""Texts of one language in files: one tokenised sentence per line, read as bytes, as word ids, or as text.

Facts from moses/Word.cpp: the factors of a word, as in `word|TAG`, are separated by bars, and a word has at most four.
From moses/Sentence.cpp: `<seg ...>` at the start of a line and `<dlt .../>` are markup, whatever `[xml-input]` is.
From moses/Phrase.cpp: a word in square brackets is a non-terminal, at which phrase-based decoding fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from moses_compat.files.paths import display_name, notice
from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.text_splitting import single_spaced, split_lines, split_words
from phrasetool.vocabulary import unescape

# lmplz reads these as spaces (lm/builder/corpus_count.cc).
_LMPLZ_BLANKS = bytes.maketrans(b"\r\0", b"  ")


def line_blocks(path: str) -> Iterator[bytes]:
    """Yield the text of a file in blocks of whole lines, each line with its line feed.

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: the file cannot be read.
    """
    with Input(path) as file:
        for text in file.whole_lines():
            yield text if text.endswith(b"\n") else text + b"\n"


def _as_lmplz_reads(block: bytes) -> bytes:
    return block.translate(_LMPLZ_BLANKS) if b"\r" in block or b"\0" in block else block


def corpus_blocks(paths: Sequence[str], forbidden: Sequence[bytes] = ()) -> Iterator[bytes]:
    """Yield a language model's corpus in blocks of lines (see `line_blocks`), with CR and NUL bytes as spaces.

    Args:
        paths: files, compressed or not; `-` for standard input.
        forbidden: words that must not occur.

    Raises:
        DataError: a file cannot be read, a forbidden word occurs, or the corpus is empty, see `refuse_empty`.
    """
    lines = words = 0
    forbidden_word = re.compile(rb"(?<![^ \t\n])(?:%b)(?![^ \t\n])" % b"|".join(map(re.escape, forbidden)))
    for path in paths:
        lines_before = lines
        for block in map(_as_lmplz_reads, line_blocks(path)):
            if any(word in block for word in forbidden) and (match := forbidden_word.search(block)):
                line = lines - lines_before + block.count(b"\n", 0, match.start()) + 1
                raise _own_word(path, match[0], line)
            lines += block.count(b"\n")
            words = words or len(block.strip(b" \t\n"))
            yield block
    refuse_empty(paths, lines, words)


def _own_word(path: str, word: bytes, line: int) -> DataError:
    message = f"the word {word.decode(errors='replace')} is the language model's own and may not occur in a corpus"
    return DataError(display_name(path), message, line)


def refuse_empty(paths: Sequence[str], lines: int, words: int) -> None:
    """Check that a corpus has words.

    Raises:
        DataError: the corpus has no lines, or no words in its lines.
    """
    if not lines:
        raise DataError(", ".join(map(display_name, paths)), "the corpus is empty")
    if not words:
        message = "the corpus has no words; expected one tokenised sentence per line"
        raise DataError(", ".join(map(display_name, paths)), message)


def read_sentences(path: str) -> bytes:
    """Read a text to translate, one sentence per line.

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: the file cannot be read, or contains a carriage return, which neither words nor line ends may have.
    """
    with Input(path) as file:
        text = file.read_all()
    _refuse_carriage_returns(text, file.name)
    return text


def _refuse_carriage_returns(text: bytes, name: str) -> None:
    if (position := text.find(b"\r")) >= 0:
        message = "a carriage return in the sentence; expected lines that end with a line feed, and words without one"
        raise DataError(name, message, text.count(b"\n", 0, position) + 1)


def corpus_sentences(paths: Sequence[str], symbols: Symbols, forbidden: Sequence[bytes] = ()) -> Iterator[Phrases]:
    """Yield the sentences of a language model's corpus, a few thousand at a time; new words are added to the symbols.

    Words are split as lmplz splits them: unlike in other texts, a carriage return or a NUL byte separates words.

    Args:
        paths: files, compressed or not; `-` for standard input.
        symbols: words as ids.
        forbidden: words that must not occur.

    Raises:
        DataError: a file cannot be read, or a forbidden word occurs.
    """
    ids = np.array([symbols.add(word) for word in forbidden], np.int32)
    for path in paths:
        lines = 0
        for text in map(_as_lmplz_reads, line_blocks(path)):
            sentences = symbols.read_lines(text)
            if len(positions := np.flatnonzero(np.isin(sentences.words, ids))):
                line = int(np.searchsorted(sentences.offsets, positions[0], "right"))
                raise _own_word(path, symbols.words[sentences.words[positions[0]]], lines + line)
            yield sentences
            lines += len(sentences)


def read_corpus(path: str, symbols: Symbols) -> Phrases:
    """Read the sentences of a file; new words are added to the symbols.

    Raises:
        DataError: the file cannot be read.
    """
    return Phrases.concatenate([symbols.read_lines(text) for text in line_blocks(path)])


def unescaped_sentences(paths: Sequence[str]) -> Iterator[list[bytes]]:
    """Yield the lines of files as words, without Moses' escapes.

    Args:
        paths: files, compressed or not; `-` for standard input.

    Raises:
        DataError: a file cannot be read.
    """
    for path in paths:
        with Input(path) as source:
            for line in split_lines(source.read_all()):
                yield split_words(unescape(line) if b"&" in line else line)


def read_texts(
    path: str, progress: Callable[[int, int], None] = lambda position, texts: None, as_written: bool = False
) -> tuple[Phrases, Symbols]:
    """Read texts and their distinct words, without Moses' escapes.

    Args:
        path: the file, compressed or not; `-` for standard input.
        progress: called with the numbers of bytes and texts read so far.
        as_written: keep the escapes in the words.

    Returns:
        The texts in ids of the symbols, and the symbols.

    Raises:
        DataError: the file cannot be read or is empty, or a line is empty.
    """
    symbols = Symbols()
    parts: list[Phrases] = []
    read = 0
    with Input(path) as file:
        for block in file.whole_lines():
            part = symbols.read_lines(unescape(block) if b"&" in block and not as_written else block)
            if not part.lengths.all():
                line = read + int(np.argmin(part.lengths)) + 1
                raise DataError(file.name, "the line is empty; leave out lines without a word", line)
            parts.append(part)
            read += len(part)
            progress(file.position(), read)
        if not read:
            raise DataError(file.name, "the file contains no text")
    return Phrases.concatenate(parts), symbols


def read_text_lines(path: str) -> list[str]:
    """Read the lines of a file, without line ends; bytes that are not UTF-8 become distinct characters (surrogates).

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: the file cannot be read or has no lines.
    """
    with Input(path) as file:
        data = file.read_all()
        if not data:
            raise DataError(file.name, "the file has no lines")
    return split_lines(data.decode("utf-8", "surrogateescape"))


def read_line_texts(
    path: str, progress: Callable[[int, int], None] = lambda position, lines: None, whole: bool = True
) -> list[str]:
    """Read the lines of a file, without Moses' escapes, with single spaces between words.

    Args:
        path: the file, compressed or not; `-` for standard input.
        progress: called with the numbers of bytes and lines read so far.
        whole: if true, an empty line is an error; otherwise empty lines are left out.

    Raises:
        DataError: the file cannot be read or has no words, or a line is empty or not UTF-8.
    """
    lines: list[str] = []
    number = 0
    with Input(path) as file:
        for block in file.whole_lines():
            plain = unescape(block) if b"&" in block else block
            for line in split_lines(plain):
                number += 1
                try:
                    text = single_spaced(line.decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise DataError(
                        file.name, f"not UTF-8 ({error.reason} at byte {error.start + 1})", number
                    ) from error
                if text:
                    lines.append(text)
                elif whole:
                    raise DataError(file.name, "the line is empty; leave out lines without a word", number)
            progress(file.position(), number)
        if not lines:
            raise DataError(file.name, "the file contains no text")
    return lines


def unescaped_words(texts: Phrases, words: list[bytes]) -> tuple[Phrases, list[bytes]]:
    """Map texts in ids of words as written to ids of distinct words without escapes; return both texts and words."""
    plain = Symbols()
    ids = np.array([plain.add(unescape(word)) for word in words], np.int32)
    return Phrases(texts.offsets, ids[texts.words] if len(ids) else texts.words), plain.words


_MOST_FACTORS = 4
_MOST_WORDS = 10_000
# A word and the space after it are two bytes at least.
_LONG_LINE = re.compile(rb"[^\n]{%d,}" % (2 * _MOST_WORDS))
# A word with a bar; the group is its first factor.
_FACTORED = re.compile(rb"([^ \t\n|]*)\|[^ \t\n]*")
_MARKUP = re.compile(rb"^[ \t]*(<seg)[^\n]*>|(<dlt)[^\n]*/>", re.IGNORECASE | re.MULTILINE)
_BRACKETED = re.compile(rb"(?<![^ \t\n])\[[^ \t\n]*\](?![^ \t\n])")
_NO_WORD = re.compile(rb"(?<!\S)\*EPS\*(?!\S)")


def surface_words(text: bytes, name: str = "the text") -> bytes:
    """Cut each factored word of a text to its first factor; return the same object if no word is factored.

    Args:
        text: one tokenised sentence per line.
        name: the name of the text in messages.

    Raises:
        DataError: a word begins with a bar, is `*EPS*` or in square brackets, so that Moses would not read it as a
            word; it has more factors than Moses allows; a line has markup that Moses interprets, or more than 10,000
            words.
    """
    _refuse_markup(text, name)
    _refuse_long_lines(text, name)
    if b"|" not in text:
        return text
    count = 0

    def first_factor(match: re.Match[bytes]) -> bytes:
        nonlocal count
        word = match[0].decode("utf-8", "replace")
        if not match[1]:
            message = f"the word {word} begins with a bar, which separates the factors of a word; write a bar as &#124;"
        elif match[0].count(b"|") >= _MOST_FACTORS:
            message = f"the word {word} has more than {_MOST_FACTORS} factors; Moses stops at it"
        else:
            count += 1
            return match[1]
        raise DataError(name, message, text.count(b"\n", 0, match.start()) + 1)

    cut = _FACTORED.sub(first_factor, text)
    notice(f"{name}: {count:,} words have factors, as in word|TAG; as in Moses, only the first of each is read")
    return cut


def check_sentences(text: bytes, name: str) -> None:
    """Check that a text can be translated before it is copied to a file with another name.

    Args:
        text: one tokenised sentence per line.
        name: the name of the text in messages.

    Raises:
        DataError: a line has a carriage return, markup that Moses interprets, or more than 10,000 words.
    """
    _refuse_carriage_returns(text, name)
    _refuse_markup(text, name)
    _refuse_long_lines(text, name)


def _refuse_long_lines(text: bytes, name: str) -> None:
    """Raise DataError for a sentence that is too long to search: memory and time grow with the cube of its words."""
    for match in _LONG_LINE.finditer(text):
        if (words := len(split_words(match[0]))) > _MOST_WORDS:
            message = f"the sentence has {words:,} words; at most {_MOST_WORDS:,} are translated: split it"
            raise DataError(name, message, text.count(b"\n", 0, match.start()) + 1)


def _refuse_markup(text: bytes, name: str) -> None:
    """Raise DataError for tokens that Moses reads as markup, as a non-terminal or as the empty word."""
    if b"<" in text and (match := _MARKUP.search(text)):
        tag = (match[1] or match[2]).decode()
        message = f"{tag} is markup to Moses, which does not translate it; remove it from the text"
        raise DataError(name, message, text.count(b"\n", 0, match.start(match.lastindex or 0)) + 1)
    if b"]" in text and (match := _BRACKETED.search(text)):
        word = match[0].decode("utf-8", "replace")
        message = f"the word {word} is in brackets, and Moses stops at it; write the brackets as &#91; and &#93;"
        raise DataError(name, message, text.count(b"\n", 0, match.start()) + 1)
    if b"*EPS*" in text and (match := _NO_WORD.search(text)):
        message = "Moses does not read *EPS* as a word; remove it from the text"
        raise DataError(name, message, text.count(b"\n", 0, match.start()) + 1)
