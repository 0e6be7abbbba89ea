"""Lines, fields, tokens and words in the text of a table, and checks of words before they are written.

As in Moses' text loader, every occurrence of the three bytes `|||` separates fields, and runs of spaces and tabs
separate tokens.
"""

from __future__ import annotations

import codecs
import re

import numpy as np
import numpy.typing as npt

from phrasetool.errors import DataError, PhraseToolError
from phrasetool.kernels.bytes import CR, LF, PIPE, common_prefix, copy_bytes, is_blank, skip_blanks
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray, Int64Array, prefix_sums
from phrasetool.vocabulary import unescape

# Separator of the fields of a line.
BARS = b"|||"

_ONES = np.uint64(0x0101010101010101)
_LINE_FEEDS = np.uint64(LF) * _ONES
_HIGH_BITS = np.uint64(0x80) * _ONES

_LABEL = re.compile(rb"\[.+\]")
# Characters other than a space at which some readers split words or lines.
_PARTING = re.compile(rb"[\t\n\r\0]")
_BRACKETS = re.compile(rb"\[.*\]", re.DOTALL)
# Line ends of all conventions, and the tab that separates columns.
_LINE_ENDS = re.compile(r"[\t\n\r]")


@inner_kernel
def is_separator(text: ByteArray, i: int, end: int) -> bool:
    """Return whether text[i:end] begins with `|||`."""
    return text[i] == PIPE and i + 2 < end and text[i + 1] == PIPE and text[i + 2] == PIPE


@borrowing_kernel
def find_separator(text: ByteArray, start: int, end: int) -> int:
    """Return the position of the first `|||` in text[start:end], or -1."""
    i = start
    last = end - 2
    while i < last:
        if text[i] == PIPE and text[i + 1] == PIPE and text[i + 2] == PIPE:
            return i
        i += 1
    return -1


@exact_kernel
def find_separators(text: ByteArray, start: int, end: int, bars: Int64Array) -> int:
    """Store the positions of the first `|||` of text[start:end] in `bars`, padded with `end`; return their number."""
    count = 0
    i = start
    while count < len(bars):
        i = find_separator(text, i, end)
        if i < 0:
            break
        bars[count] = i
        count += 1
        i += 3
    bars[count:] = end
    return count


@inner_kernel
def content_end(text: ByteArray, start: int, end: int) -> int:
    """Return the end of the line text[start:end] without a trailing carriage return and line feed."""
    if end > start and text[end - 1] == LF:
        end -= 1
    if end > start and text[end - 1] == CR:
        end -= 1
    return end


@inner_kernel
def write_bars(out: ByteArray, place: int) -> int:
    """Write `|||`; return the position after it."""
    out[place] = out[place + 1] = out[place + 2] = PIPE
    return place + 3


@borrowing_kernel
def same_tokens(text: ByteArray, a: int, a_end: int, b: int, b_end: int) -> bool:
    """Return whether text[a:a_end] and text[b:b_end] consist of the same tokens."""
    # Comparing bytes almost always suffices: all are equal, or neither byte at the first difference is a blank.
    shorter = min(a_end - a, b_end - b)
    k = common_prefix(text, a, text, b, shorter)
    if k == a_end - a and k == b_end - b:
        return True
    if k < shorter and not is_blank(text[a + k]) and not is_blank(text[b + k]):
        return False
    while True:
        a = skip_blanks(text, a, a_end)
        b = skip_blanks(text, b, b_end)
        if a == a_end or b == b_end:
            return a == a_end and b == b_end
        while a < a_end and b < b_end and not is_blank(text[a]) and text[a] == text[b]:
            a += 1
            b += 1
        if (a < a_end and not is_blank(text[a])) or (b < b_end and not is_blank(text[b])):
            return False


def line_offsets_of(text: ByteArray) -> Int64Array:
    """Return the start of each line, and the end of the text; int64, shape (N + 1,)."""
    # The fast scan reads eight bytes at a time, which needs an aligned text.
    whole = len(text) // 8 * 8 if text.ctypes.data % 8 == 0 else 0
    return _line_offsets(text, text[:whole].view(np.uint64))


@exact_kernel
def _line_offsets(text: ByteArray, eights: npt.NDArray[np.uint64]) -> Int64Array:
    # The largest possible size; pages that are never written take no memory.
    offsets = np.empty(len(text) + 2, np.int64)
    offsets[0] = 0
    line = 0
    for k in range(len(eights)):
        # A byte that is LF is 0 here, and the subtraction borrows from its highest bit (Mycroft 1987).
        difference = eights[k] ^ _LINE_FEEDS
        if (difference - _ONES) & ~difference & _HIGH_BITS:
            for i in range(8 * k, 8 * k + 8):
                if text[i] == LF:
                    line += 1
                    offsets[line] = i + 1
    for i in range(8 * len(eights), len(text)):
        if text[i] == LF:
            line += 1
            offsets[line] = i + 1
    if offsets[line] < len(text):
        line += 1
        offsets[line] = len(text)
    return offsets[: line + 1].copy()


def _one_for_one(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "?" * (error.end - error.start), error.end


codecs.register_error("phrasetool-one-for-one", _one_for_one)


def valid_utf8(text: ByteArray) -> ByteArray:
    """Return the text itself if it is valid UTF-8, else a copy with a question mark for each invalid byte."""
    data = text.tobytes()
    try:
        data.decode()
    except UnicodeDecodeError:
        return np.frombuffer(data.decode("utf-8", "phrasetool-one-for-one").encode(), np.uint8)
    return text


@exact_kernel
def _gather(text: ByteArray, starts: Int64Array, ends: Int64Array, out: ByteArray) -> None:
    position = 0
    for i in range(len(starts)):
        position = copy_bytes(text, starts[i], ends[i], out, position)


def gather(text: ByteArray, starts: Int64Array, ends: Int64Array) -> tuple[ByteArray, Int64Array]:
    """Concatenate parts of a text, and return the result and their offsets; a part that starts at -1 is empty.

    Args:
        text: uint8.
        starts, ends: int64, shape (N,).

    Returns:
        uint8, and int64 of shape (N + 1,).
    """
    offsets = prefix_sums(ends - starts)
    out = np.empty(offsets[-1], np.uint8)
    _gather(text, np.ascontiguousarray(starts), np.ascontiguousarray(ends), out)
    return out, offsets


def phrase_text(phrase: bytes) -> str:
    """Decode a phrase into plain text.

    Labels such as `[X]` are removed, only the first factor of a word is kept, Moses' escapes are undone, and invalid
    UTF-8 becomes a replacement character.

    Args:
        phrase: tokens, separated by spaces or tabs.

    Returns:
        The words, with a space between them; empty if there are none.
    """
    words = [_word(token) for token in phrase.replace(b"\t", b" ").split(b" ") if token and not _LABEL.fullmatch(token)]
    return b" ".join(words).decode("utf-8", "replace")


def _word(token: bytes) -> bytes:
    if b"|" in token:
        token = token.partition(b"|")[0] or token
    return unescape(token) if b"&" in token else token


def text_error(word: bytes) -> str | None:
    """Return why a word cannot be written to a field of a table or an n-best list; None if it can.

    Args:
        word: the word, without spaces.
    """
    if BARS in word:
        return "separates the fields of a table; escape ||| as &#124;&#124;&#124;"
    if _PARTING.search(word):
        return "holds a control character, at which readers split words or lines"
    return None


def table_error(word: bytes) -> str | None:
    """Return why Moses cannot read a word in a phrase table; None if it can.

    Args:
        word: the word, without spaces; | separates its factors.
    """
    if _BRACKETS.fullmatch(word):
        return "is in brackets, which Moses reads as a label; escape it as &#91;...&#93;"
    return text_error(word)


def shown(word: bytes) -> str:
    """Return a word for a message, without characters that cannot be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in word.decode("utf-8", "replace"))


def check_text(name: str, text: bytes) -> None:
    """Reject a text with a word that cannot be copied to an n-best list.

    Args:
        name: name of the file, for the message.
        text: one sentence per line.

    Raises:
        DataError: a word contains `|||`; the message names the first such line.
    """
    position = text.find(BARS)
    if position >= 0:
        line = text.count(b"\n", 0, position) + 1
        raise DataError(name, "||| in a word, which separates the fields of an n-best list; escape it as &#124;", line)


def check_listed(number: int, text: bytes) -> None:
    """Reject a translation that cannot be written to an n-best list.

    Args:
        number: 0-based index of the sentence.
        text: the translation.

    Raises:
        PhraseToolError: the translation contains `|||` or a line feed.
    """
    if BARS in text or b"\n" in text:
        message = f"the translation of sentence {number + 1} holds |||, which separates the fields of an n-best list"
        raise PhraseToolError(message)


def has_separators(text: str) -> bool:
    """Return whether a reader of lines or of tab-separated columns may split a text."""
    return _LINE_ENDS.search(text) is not None


def holds_white_space(word: str) -> bool:
    """Return whether a word contains white space at which some readers would split it."""
    return any(map(str.isspace, word))


def is_number(token: bytes) -> bool:
    """Return whether Python parses a word as a number, including `nan` and `inf`."""
    try:
        float(token)
    except ValueError:
        return False
    return True


@exact_kernel
def strip_fields(text: ByteArray, starts: Int64Array, ends: Int64Array) -> None:
    """Move the starts and ends of fields past the blanks around their content."""
    for i in range(len(starts)):
        first, last = starts[i], ends[i]
        while first < last and is_blank(text[first]):
            first += 1
        while last > first and is_blank(text[last - 1]):
            last -= 1
        starts[i], ends[i] = first, last
