"""Tokens put together again, as the texts look that encoders were trained on.

Moses' rules (detokenizer.perl), as far as phrases need them: what stands before and after a space, and languages that
are written without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_WITHOUT_SPACES = {"zh", "ja", "th", "lo", "km", "my", "bo", "yue"}
_TO_THE_LEFT = re.compile(r"[,.?!:;)\]}%»”’…]+")
_TO_THE_RIGHT = re.compile(r"[(\[{¿¡«„“‘$£€]+")
# The ends of contractions: Moses parts them from the word before in English, from the word behind in these.
_ENGLISH_END = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll|t))", re.IGNORECASE)
_ELIDED = re.compile(r"[^\W\d_]+['’]")
_ELIDING = {"fr", "it", "ca", "ga"}
_ASCII = re.compile(r"[\x20-\x7e]+")


def detokeniser(language: str) -> Callable[[str], str]:
    """What puts the tokens of a phrase together.

    Args:
        language: two or three letters.

    Raises:
        ValueError: it is no code of a language.
    """
    if not re.fullmatch(r"[a-z]{2,3}", language):
        raise ValueError(f"{language!r} is no language, expected a code such as de, en or zh")
    if language in _WITHOUT_SPACES:
        return _without_spaces
    return lambda text: _with_spaces(text, language)


def _without_spaces(text: str) -> str:
    """No spaces but between words of Latin letters."""
    found = ""
    for token in text.split(" "):
        found += (" " if found and _ASCII.fullmatch(token) and _ASCII.fullmatch(found[-1]) else "") + token
    return found


def _with_spaces(text: str, language: str) -> str:
    found, glued, quotes = "", True, 0
    for token in text.split(" "):
        left = bool(_TO_THE_LEFT.fullmatch(token)) or (language == "en" and bool(_ENGLISH_END.fullmatch(token)))
        # Moses' tokeniser marks hyphens that stood within a word.
        hyphen = token == "@-@"
        closing = token in ('"', "'") and quotes % 2 == 1
        found += ("" if glued or left or hyphen or closing else " ") + ("-" if hyphen else token)
        opening = token in ('"', "'") and not closing
        quotes += token in ('"', "'")
        elided = language in _ELIDING and bool(_ELIDED.fullmatch(token))
        glued = hyphen or opening or elided or bool(_TO_THE_RIGHT.fullmatch(token))
    return found
