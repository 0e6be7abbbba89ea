"""Evidence for the translation of an unknown word: the entries of known words, and the proposals made from them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

_LETTER = re.compile(r"\w")
_DIGIT = re.compile(r"\d")
# Kana, and Chinese characters with their extensions.
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# Targets of a word that matter: Moses takes no more by default.
MOST_TARGETS = 20
# In the order of their columns.
COMPOUND, INFLECTION, MEANING, COPY = "compound", "inflection", "meaning", "copy"
EVIDENCE = (COMPOUND, INFLECTION, MEANING, COPY)


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


@dataclass(frozen=True)
class Proposal:
    """A translation of an unknown word.

    Attributes:
        target: its words, separated by spaces.
        weight: how probable it is compared with the source's other proposals; above 0.
        inverse: p(source | target) of the entries that it comes from.
        lexical: the two lexical weights of these, in the order of Moses' scores.
        origin: what it comes from, for people.
    """

    target: str
    weight: float
    inverse: float
    lexical: tuple[float, float]
    origin: str


class Evidence(Protocol):
    """A source of evidence."""

    @property
    def name(self) -> str:
        """Name of the source's column."""

    def proposals(self, word: str) -> Sequence[Proposal]:
        """Translations of a word, the best first; none where the source has no evidence.

        The word's own entries, if it has any, are not looked at: what is proposed of known words shows how good
        proposals are.
        """
