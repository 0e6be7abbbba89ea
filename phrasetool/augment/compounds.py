"""Unknown words that are made of known ones.

Splits are chosen as by Koehn and Knight (2003), "Empirical methods for compound splitting": the geometric mean of the
counts of the parts decides.  What stands between parts (`s`, `en`, a hyphen), and what a part loses (`Schule` in
`Schulhaus`), is learnt from known words whose translations are those of two parts.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from phrasetool.augment.evidence import Proposal, WordEntries, WordEntry, has_letter, without_spaces
from phrasetool.text_splitting import split_words

_LEAST = 3
_MOST_PARTS = 4
# Letters that may stand between two parts, and that a part may lose.
_MOST_ADDED, _MOST_CUT = 3, 2
# A link counts if so many known words have it, and this share of all that are made of two.
_LEAST_WORDS, _LEAST_SHARE = 3, 0.01
# Targets of a word that are compared, or put together.
_TARGETS = 5
_SPLITS = 2
_MOST_PROPOSALS = 20


@dataclass(frozen=True)
class Link:
    """How a part goes into a compound.

    Attributes:
        cut: letters that it loses at its end.
        added: letters between it and the next part.
    """

    cut: str = ""
    added: str = ""


@dataclass(frozen=True)
class CompoundRules:
    """How a language makes words of words.

    Attributes:
        links: those that are known, and the share of compounds that each is found in.
        turned: whether the translation begins with the last part.
        least: letters that a part has at least.
    """

    links: Mapping[Link, float] = field(default_factory=lambda: {Link(): 1.0})
    turned: bool = False
    least: int = _LEAST


def learn_compounds(entries: WordEntries) -> CompoundRules:
    """The rules of the source language.

    Args:
        entries: known words; those whose targets have a word of one part's targets and another of the other's tell.
    """
    if without_spaces(entries):
        return CompoundRules(least=1)
    stems = _stems(entries)
    tokens = {
        word: {token for entry in entries.lexical(word)[:_TARGETS] for token in split_words(entry.target)}
        for word in entries
    }
    counts: Counter[Link] = Counter()
    turns: Counter[bool] = Counter()
    for word in entries:
        explanations: list[tuple[int, Link, bool]] = []
        for first, cut, added, second in _two_parts(word, entries, stems):
            turned = _order(entries, word, tokens[first], tokens[second])
            if turned is not None:
                explanations.append((len(cut) + len(added), Link(cut, added), turned))
        if explanations:
            # The explanation of a word with the fewest changed letters counts.
            _, link, turned = min(explanations, key=lambda one: one[0])
            counts[link] += 1
            turns[turned] += 1
    least_count = max(_LEAST_WORDS, _LEAST_SHARE * counts.total())
    counts[Link()] += 1
    links = {
        link: count / counts.total() for link, count in counts.most_common() if count >= least_count or link == Link()
    }
    return CompoundRules(links, turns[True] > turns[False])


def _stems(entries: WordEntries) -> dict[str, list[tuple[str, str]]]:
    """Stem -> the words that it is of, and what they lose."""
    words_by_stem: dict[str, list[tuple[str, str]]] = {}
    for word in filter(has_letter, entries):
        for size in range(_MOST_CUT + 1):
            if len(word) - size >= _LEAST:
                words_by_stem.setdefault(word[: len(word) - size], []).append((word, word[len(word) - size :]))
    return words_by_stem


def _two_parts(
    word: str, entries: WordEntries, stems: dict[str, list[tuple[str, str]]]
) -> Iterator[tuple[str, str, str, str]]:
    """First part, what it loses, what is added, second part."""
    for place in range(_LEAST, len(word) - _LEAST + 1):
        if word[place:] in entries:
            for size in range(min(_MOST_ADDED, place - _LEAST) + 1):
                added = word[place - size : place]
                for first, cut in stems.get(word[: place - size], ()):
                    # A letter that is cut and added again is not a change.
                    if first != word and not (cut and added and cut[0] == added[0]):
                        yield first, cut, added, word[place:]


def _order(entries: WordEntries, word: str, one: set[str], other: set[str]) -> bool | None:
    """Whether a target of the word has a token of the second part before one of the first; None if it has not both."""
    for entry in entries.lexical(word)[:_TARGETS]:
        targets = split_words(entry.target)
        left = [place for place, target in enumerate(targets) if target in one - other]
        right = [place for place, target in enumerate(targets) if target in other - one]
        if left and right:
            return right[0] < left[0]
    return None


class Compounds:
    """Translations put together from those of the parts.

    Args:
        entries: known words.
        rules: how parts go together.
    """

    name = "compound"

    def __init__(self, entries: WordEntries, rules: CompoundRules) -> None:
        self._entries, self._rules = entries, rules
        self._stems: dict[str, list[tuple[str, Link]]] = {}
        for word in entries:
            for link in rules.links:
                kept = len(word) - len(link.cut)
                if word.endswith(link.cut) and kept >= rules.least and has_letter(word):
                    self._stems.setdefault(word[:kept] + link.added, []).append((word, link))

    def splits(self, word: str) -> list[tuple[str, ...]]:
        """Known words that make up a word, two and more, the best split first."""
        weights: dict[tuple[str, ...], float] = {}
        for parts, weight in self._parts(word, 0, _MOST_PARTS):
            mean = weight / len(parts)
            weights[parts] = max(mean, weights.get(parts, mean))
        return sorted(weights, key=lambda parts: (-weights[parts], parts))

    def _parts(self, word: str, first: int, left: int) -> Iterator[tuple[tuple[str, ...], float]]:
        """Parts from a letter on, and the logarithm of the product of their counts and of the shares of their links."""
        if first and word[first:] in self._entries and len(word) - first >= self._rules.least:
            yield (word[first:],), self._weight(word[first:])
        if left > 1:
            for last in range(first + self._rules.least, len(word) - self._rules.least + 1):
                for part, link in self._stems.get(word[first:last], ()):
                    own = self._weight(part) + math.log(self._rules.links[link])
                    for rest, weight in self._parts(word, last, left - 1) if part != word else ():
                        yield (part, *rest), own + weight

    def _weight(self, part: str) -> float:
        return math.log(max(self._entries.count(part), 0.5))

    def proposals(self, word: str) -> list[Proposal]:
        """Return the most probable products of the translations of a word's parts, the best first."""
        proposals: dict[str, Proposal] = {}
        for parts in self.splits(word)[:_SPLITS]:
            choices = [self._entries.lexical(part)[:_TARGETS] for part in parts]
            for chosen in itertools.product(*choices):
                made = _together(chosen[:: -1 if self._rules.turned else 1], " + ".join(parts))
                if made.target not in proposals or proposals[made.target].weight < made.weight:
                    proposals[made.target] = made
        return sorted(proposals.values(), key=lambda one: (-one.weight, one.target))[:_MOST_PROPOSALS]


def _together(parts: Sequence[WordEntry], origin: str) -> Proposal:
    """The product of the scores."""
    inverse, first, weight, second = (math.prod(part.scores[column] for part in parts) for column in range(4))
    return Proposal(" ".join(part.target for part in parts), weight, inverse, (first, second), origin)
