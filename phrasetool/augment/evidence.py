"""Evidence for translations of unknown words: entries of known words, and proposals derived from them."""

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
# Maximum number of targets of a word, as in Moses by default.
MOST_TARGETS = 20
# Names of the sources of evidence, in the order of their columns.
COMPOUND, INFLECTION, MEANING, COPY = "compound", "inflection", "meaning", "copy"
EVIDENCE = (COMPOUND, INFLECTION, MEANING, COPY)


def has_letter(text: str) -> bool:
    """Return whether the text has a letter or a digit."""
    return _LETTER.search(text) is not None


def has_digit(text: str) -> bool:
    """Return whether the text has a digit."""
    return _DIGIT.search(text) is not None


def without_spaces(words: Iterable[str]) -> bool:
    """Return whether most words are in a script written without spaces, so that a program segmented the text."""
    ideographic = [_IDEOGRAPH.search(word) is not None for word in words if has_letter(word) and not has_digit(word)]
    return sum(ideographic) * 2 > len(ideographic)


@dataclass(frozen=True)
class WordEntry:
    """An entry whose source is a single word.

    Attributes:
        target: the target words, separated by spaces.
        scores: p(source | target), its lexical weight, p(target | source), its lexical weight.
    """

    target: str
    scores: tuple[float, float, float, float]

    @property
    def probability(self) -> float:
        """p(target | source)."""
        return self.scores[2]


class WordEntries(Mapping[str, Sequence[WordEntry]]):
    """Mapping from words to their entries, the most probable target first.

    Args:
        entries: entries of each word.
        counts: training count of each word.
    """

    def __init__(self, entries: Mapping[str, Sequence[WordEntry]], counts: Mapping[str, float]) -> None:
        self._entries = {
            word: sorted(candidates, key=lambda entry: (-entry.probability, entry.target))[:MOST_TARGETS]
            for word, candidates in entries.items()
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
        """Return the training count of a word; 0 if unknown."""
        return self._counts.get(word, 0.0)

    def lexical(self, word: str) -> list[WordEntry]:
        """Return the entries of a word whose targets have letters or digits, with probabilities normalised to 1."""
        entries = [entry for entry in self._entries[word] if has_letter(entry.target)]
        total = math.fsum(entry.probability for entry in entries)
        return [
            WordEntry(entry.target, (*entry.scores[:2], entry.probability / total, entry.scores[3]))
            for entry in entries
            if entry.probability > 0
        ]

    @cached_property
    def ordered(self) -> list[str]:
        """All words in alphabetical order."""
        return sorted(self._entries)


@dataclass(frozen=True)
class Proposal:
    """A proposed translation of an unknown word.

    Attributes:
        target: the target words, separated by spaces.
        weight: probability relative to the other proposals of the same source of evidence; above 0.
        inverse: p(source | target) of the entries from which the proposal is derived.
        lexical: the two lexical weights of these entries, in the order of Moses' scores.
        origin: description of these entries, for messages.
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
        """Name of the column of this source of evidence."""

    def proposals(self, word: str) -> Sequence[Proposal]:
        """Return translations of a word, the best first; empty if there is no evidence.

        Existing entries of the word are ignored, so that proposals can be evaluated on known words.
        """
