"""The words that Moses reads in a line of text where they are not those between the spaces.

Facts from moses/Word.cpp: the factors of a word, as in `word|TAG`, stand between bars, and a word has four at most.
From moses/Sentence.cpp: `<seg ...>` at the begin of a line and `<dlt .../>` are markup, whatever `[xml-input]` is.
From moses/Phrase.cpp: a word in square brackets is a non-terminal, at which decoding by phrases stops.
"""

from __future__ import annotations

import re

from moses_compat.files.notices import notice
from phrasetool.errors import DataError

_MOST_FACTORS = 4
# A word with a bar, and what of it is its first factor.
_FACTORED = re.compile(rb"([^ \t\n|]*)\|[^ \t\n]*")
_MARKUP = re.compile(rb"^[ \t]*(<seg)[^\n]*>|(<dlt)[^\n]*/>", re.IGNORECASE | re.MULTILINE)
_BRACKETED = re.compile(rb"(?<![^ \t\n])\[[^ \t\n]*\](?![^ \t\n])")
_NO_WORD = re.compile(rb"(?<!\S)\*EPS\*(?!\S)")


def surface_words(text: bytes, name: str = "the text") -> bytes:
    """A text in which each factored word is cut to its first factor; the same object if no word is factored.

    Args:
        text: a tokenised sentence a line.
        name: what messages call the text.

    Raises:
        DataError: a word begins with a bar, is `*EPS*` or stands in square brackets, and Moses would take it for no
            word; it has more factors than Moses allows; or a line has markup that Moses interprets.
    """
    _refuse_markup(text, name)
    if b"|" not in text:
        return text
    count = 0

    def first_factor(match: re.Match[bytes]) -> bytes:
        nonlocal count
        word = match[0].decode("utf-8", "replace")
        if not match[1]:
            message = f"the word {word} begins with a bar, which parts the factors of a word; write a bar as &#124;"
        elif match[0].count(b"|") >= _MOST_FACTORS:
            message = f"the word {word} has more than {_MOST_FACTORS} factors; Moses stops at it"
        else:
            count += 1
            return match[1]
        raise DataError(name, message, text.count(b"\n", 0, match.start()) + 1)

    cut = _FACTORED.sub(first_factor, text)
    notice(f"{name}: {count:,} words have factors, as in word|TAG; as by Moses, only the first of each is read")
    return cut


def _refuse_markup(text: bytes, name: str) -> None:
    """Refuse what Moses takes for markup, or for no word."""
    if b"<" in text and (match := _MARKUP.search(text)):
        tag = (match[1] or match[2]).decode()
        message = f"{tag} is markup to Moses, which does not translate it; take it out of the text"
        raise DataError(name, message, text.count(b"\n", 0, match.start(match.lastindex or 0)) + 1)
    if b"]" in text and (match := _BRACKETED.search(text)):
        word = match[0].decode("utf-8", "replace")
        message = f"the word {word} stands in brackets, and Moses stops at it; write the brackets as &#91; and &#93;"
        raise DataError(name, message, text.count(b"\n", 0, match.start()) + 1)
    if b"*EPS*" in text and (match := _NO_WORD.search(text)):
        raise DataError(
            name, "*EPS* is no word to Moses; take it out of the text", text.count(b"\n", 0, match.start()) + 1
        )
