"""What a classifier knows of words: their number in its vocabulary, and the parts that they are made of.

The paper sums the vectors of a word's characters (Burmese, Thai).  So do we, of every language, with characters that
stand together: a word that training never saw still has known parts, which is what makes Chinese compounds and English
inflections readable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int64Array, Mask, Phrases
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary

# What a word begins and ends with: no text holds these.
_BEGIN, _END = "\x02", "\x03"


@dataclass(frozen=True)
class Lexicon:
    """What is known of U distinct words.

    Attributes:
        ids: int64, shape (U,), their numbers in the vocabulary; 0 where it lacks one.
        parts: U lists of numbers of known parts, int32.
    """

    ids: Int64Array
    parts: Phrases

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> Mask:
        """Which words are in the vocabulary or have a known part; bool, shape (U,)."""
        return np.asarray((self.ids != UNKNOWN) | (self.parts.lengths > 0))


def word_parts(word: bytes, longest: int) -> list[bytes]:
    """The distinct parts of a word of up to so many characters, those at its ends marked as such.

    Args:
        word: in UTF-8; other bytes count as characters.
        longest: characters of a part, a mark included.
    """
    text = f"{_BEGIN}{word.decode('utf-8', 'surrogateescape')}{_END}"
    found = {
        text[first : first + size]: None
        for size in range(1, longest + 1)
        for first in range(len(text) - size + 1)
        if text[first : first + size] not in (_BEGIN, _END)
    }
    return [part.encode("utf-8", "surrogateescape") for part in found]


def known_parts(words: Iterable[bytes], longest: int, most: int) -> Vocabulary:
    """The parts that several words share, those of most words first.

    Args:
        words: distinct.
        longest: see `word_parts`; 0 gives none.
        most: how many to keep at most.
    """
    counts: Counter[bytes] = Counter()
    for word in words if longest else ():
        counts.update(word_parts(word, longest))
    several = [(part, count) for part, count in counts.items() if count > 1 and part != UNKNOWN_WORD]
    shared = sorted(several, key=lambda pair: (-pair[1], pair[0]))[:most]
    return Vocabulary([UNKNOWN_WORD, *(part for part, _ in shared)], [0, *(count for _, count in shared)])


class LexiconMaker:
    """Looks words up.

    Args:
        vocabulary: of one language.
        parts: known ones.
        longest: characters of a part.
    """

    def __init__(self, vocabulary: Vocabulary, parts: Vocabulary, longest: int) -> None:
        self._ids = {word: i for i, word in enumerate(vocabulary.words)}
        self._parts = {part: i for i, part in enumerate(parts.words)}
        self._longest = longest
        self._ids.pop(UNKNOWN_WORD)
        self._parts.pop(UNKNOWN_WORD)

    def __call__(self, words: Sequence[bytes]) -> Lexicon:
        """What is known of distinct words, unescaped."""
        ids = np.fromiter((self._ids.get(word, UNKNOWN) for word in words), np.int64, len(words))
        if not self._longest:
            return Lexicon(ids, Phrases(np.zeros(len(words) + 1, np.int64), np.zeros(0, np.int32)))
        known = self._parts
        found = [[known[part] for part in word_parts(word, self._longest) if part in known] for word in words]
        return Lexicon(ids, Phrases.from_lists(found))
