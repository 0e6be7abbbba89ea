"""Numbers and names, which stay what they are."""

from __future__ import annotations

import re

from phrasetool.augment.evidence import Proposal
from phrasetool.augment.scripts import has_digit
from phrasetool.augment.word_entries import WordEntries

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*%?")
_MARKS = str.maketrans(".,", ",.")


class Copies:
    """An unknown word as its own translation; of a number with marks in it, in the form of the target language.

    Args:
        entries: known words; numbers among them show whether point and comma are exchanged.
    """

    name = "copy"

    def __init__(self, entries: WordEntries) -> None:
        exchanged = kept = same = words = 0
        for word in entries:
            best = max(entries[word], key=lambda entry: entry.probability).target
            if is_number(word) and word != word.translate(_MARKS):
                exchanged += best == word.translate(_MARKS)
                kept += best == word
            elif not has_digit(word):
                words += 1
                same += best == word
        self._exchange = exchanged > kept
        self._same = (same + 1) / (words + 2)

    def proposals(self, word: str) -> list[Proposal]:
        """Return the word itself, or a number with its separators exchanged, as the only proposal."""
        if is_number(word):
            written = word.translate(_MARKS) if self._exchange else word
            return [Proposal(written, 1.0, 1.0, (1.0, 1.0), word)]
        return [Proposal(word, self._same, 1.0, (1.0, 1.0), word)]


def is_number(word: str) -> bool:
    """Whether it is a number in digits."""
    return _NUMBER.fullmatch(word) is not None
