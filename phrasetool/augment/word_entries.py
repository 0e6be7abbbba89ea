"""Entries of single words in a phrase table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from phrasetool.augment.scripts import has_letter

# Targets of a word that matter: Moses takes no more by default.
MOST_TARGETS = 20


@dataclass(frozen=True)
class WordEntry:
    """An entry whose source is one word.

    Attributes:
        target: the words, separated by spaces.
        scores: p(source | target), its lexical weight, p(target | source), its lexical weight.
    """

    target: str
    scores: tuple[float, float, float, float]

    @property
    def probability(self) -> float:
        """p(target | source)."""
        return self.scores[2]


class WordEntries(Mapping[str, Sequence[WordEntry]]):
    """Word -> its entries, the most probable target first.

    Args:
        entries: of each word.
        counts: how often each word was seen in training.
    """

    def __init__(self, entries: Mapping[str, Sequence[WordEntry]], counts: Mapping[str, float]) -> None:
        self._entries = {
            word: sorted(found, key=lambda entry: (-entry.probability, entry.target))[:MOST_TARGETS]
            for word, found in entries.items()
        }
        self._counts = counts

    def __getitem__(self, word: str) -> Sequence[WordEntry]:
        return self._entries[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, word: object) -> bool:
        return word in self._entries

    def count(self, word: str) -> float:
        """How often a word was seen in training; 0 for others."""
        return self._counts.get(word, 0.0)

    def lexical(self, word: str) -> list[WordEntry]:
        """The entries of a word whose targets have letters or digits, with probabilities that add up to 1."""
        entries = [entry for entry in self._entries[word] if has_letter(entry.target)]
        total = math.fsum(entry.probability for entry in entries)
        return [
            WordEntry(entry.target, (*entry.scores[:2], entry.probability / total, entry.scores[3]))
            for entry in entries
            if entry.probability > 0
        ]

    @cached_property
    def ordered(self) -> list[str]:
        """All words, by their letters."""
        return sorted(self._entries)
