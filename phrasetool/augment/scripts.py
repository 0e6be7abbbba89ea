"""Letters of scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LETTER = re.compile(r"\w")
_DIGIT = re.compile(r"\d")
# Kana, and Chinese characters with their extensions.
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def has_letter(text: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return _LETTER.search(text) is not None


def has_digit(text: str) -> bool:
    """Whether there is a digit in it."""
    return _DIGIT.search(text) is not None


def without_spaces(words: Iterable[str]) -> bool:
    """Whether most words are of a script that is written without spaces: a program decided what a word is."""
    ideographic = [_IDEOGRAPH.search(word) is not None for word in words if has_letter(word) and not has_digit(word)]
    return sum(ideographic) * 2 > len(ideographic)
