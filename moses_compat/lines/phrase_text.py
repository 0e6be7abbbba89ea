"""A phrase of a table as text to read: without labels, factors and escapes."""

from __future__ import annotations

import re

from phrasetool.vocabulary import unescape

_LABEL = re.compile(rb"\[.+\]")


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
