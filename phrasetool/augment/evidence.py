"""Where a translation of an unknown word can come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# In the order of their columns.
COMPOUND, INFLECTION, MEANING, COPY = "compound", "inflection", "meaning", "copy"
EVIDENCE = (COMPOUND, INFLECTION, MEANING, COPY)


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
