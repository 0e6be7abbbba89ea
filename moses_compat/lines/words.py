"""Words of a phrase as text, and checks that words can be written to a table, an n-best list or a dictionary."""

from __future__ import annotations

import re

from moses_compat.lines.separators import BARS
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.vocabulary import unescape

_LABEL = re.compile(rb"\[.+\]")
# What parts words or lines for some reader, but for the space between words.
_PARTING = re.compile(rb"[\t\n\r\0]")
_BRACKETS = re.compile(rb"\[.*\]", re.DOTALL)
# What ends lines in any way of reading them, and the tab that parts columns.
_LINE_ENDS = re.compile(r"[\t\n\r]")


def phrase_text(phrase: bytes) -> str:
    """What a phrase says.

    Labels such as `[X]` are left out, of a word with factors the first is taken, Moses' escapes are undone, and what is
    not UTF-8 becomes a replacement character.

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


def text_fault(word: bytes) -> str | None:
    """Why a word cannot be between bars, as in a table or an n-best list; None if it can.

    Args:
        word: without spaces.
    """
    if BARS in word:
        return "separates the fields of a table; escape ||| as &#124;&#124;&#124;"
    if _PARTING.search(word):
        return "holds a control character, at which readers part words or lines"
    return None


def table_fault(word: bytes) -> str | None:
    """Why Moses cannot read a word in a phrase table; None if it can.

    Args:
        word: without spaces; | parts its factors.
    """
    if _BRACKETS.fullmatch(word):
        return "stands in brackets, which Moses takes for a label; escape it as &#91;...&#93;"
    return text_fault(word)


def shown(word: bytes) -> str:
    """A word for a message, without characters that cannot be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in word.decode("utf-8", "replace"))


def check_text(name: str, text: bytes) -> None:
    """Refuse a text with a word that cannot be copied to an n-best list.

    Args:
        name: of its file.
        text: a sentence a line.

    Raises:
        DataError: naming the line of the first such word.
    """
    place = text.find(BARS)
    if place >= 0:
        line = text.count(b"\n", 0, place) + 1
        raise DataError(name, "||| in a word, which separates the fields of an n-best list; escape it as &#124;", line)


def check_listed(number: int, text: bytes) -> None:
    """Refuse a translation that cannot be in an n-best list.

    Args:
        number: of the sentence, from 0.
        text: the translation.

    Raises:
        PhraseToolError: it holds bars or a line end.
    """
    if BARS in text or b"\n" in text:
        message = f"the translation of sentence {number + 1} holds |||, which separates the fields of an n-best list"
        raise PhraseToolError(message)


def parts_lines(text: str) -> bool:
    """Whether a reader of lines, or of columns with tabs between, may part a text."""
    return _LINE_ENDS.search(text) is not None


def holds_white_space(word: str) -> bool:
    """Whether a reader that splits lines at any white space parts a word."""
    return any(map(str.isspace, word))


def is_number(token: bytes) -> bool:
    """Whether Python reads a word as a number, `nan` and `inf` among them."""
    try:
        float(token)
    except ValueError:
        return False
    return True
