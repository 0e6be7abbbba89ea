"""The surface form of factored words: Moses reads `word|TAG` as the word where it is told of one factor.

Facts from moses/Word.cpp: the factors of a word stand between bars, and a word has four at most.
"""

from __future__ import annotations

import re

from moses_compat.files.notices import notice
from phrasetool.errors import DataError

_MOST_FACTORS = 4
# A word with a bar, and what of it is its first factor.
_FACTORED = re.compile(rb"([^ \t\n|]*)\|[^ \t\n]*")


def surface_words(text: bytes, name: str = "the text") -> bytes:
    """A text in which each factored word is cut to its first factor; the same object if no word is factored.

    Args:
        text: a tokenised sentence a line.
        name: what messages call the text.

    Raises:
        DataError: a word begins with a bar, and Moses would take it for no word; or it has more factors than Moses
            allows.
    """
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
