"""What a sentence is searched by: its words and the characters that stand together in them, as numbers.

A unit is a word, three or four neighbouring characters of one (its ends are characters), or a character of a script
that writes words with few of them.  Each has a number by a hash, the same in both languages, so that a name, a number
or a link that no training has seen is still the same unit on both sides.  All units count alike: a long word, which has
many, says more than a short one.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Sequence

from phrasetool.phrases import Phrases

_SIZES = (3, 4)
# What a word begins and ends with: no text holds these.
_BEGIN, _END = "\x02", "\x03"


def word_units(word: bytes) -> list[bytes]:
    """The units of a word, as bytes that differ where units do.

    Args:
        word: unescaped, in UTF-8; other bytes count as characters.  Upper and lower case are alike.
    """
    plain = word.decode("utf-8", "surrogateescape").lower()
    text = f"{_BEGIN}{plain}{_END}"
    found = [f"w{plain}"]
    found += [f"c{character}" for character in plain if unicodedata.east_asian_width(character) in "WF"]
    for size in _SIZES:
        found += [f"g{text[first : first + size]}" for first in range(len(text) - size + 1)]
    return [unit.encode("utf-8", "surrogateescape") for unit in found]


def lexicon_units(words: Sequence[bytes], buckets: int) -> Phrases:
    """The numbers of the units of distinct words, each below `buckets`, a power of two."""
    return Phrases.from_lists([[zlib.crc32(unit) & (buckets - 1) for unit in word_units(word)] for word in words])


def sentence_units(texts: Phrases, lexicon: Phrases) -> Phrases:
    """The units of N sentences, one word's after another's.

    Args:
        texts: in numbers of the lexicon's words.
        lexicon: of `lexicon_units`.
    """
    by_word = lexicon.select(texts.words)
    return Phrases(by_word.offsets[texts.offsets], by_word.words)
