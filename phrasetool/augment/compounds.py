"""Translation of unknown compounds of known words.

Splits are ranked by the geometric mean of the counts of the parts, as in Koehn and Knight (2003), "Empirical methods
for compound splitting".  Letters between parts (`s`, `en`, a hyphen), and letters that a part loses (`Schule` in
`Schulhaus`), are learnt from known words whose translations consist of those of two parts.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from phrasetool.augment.evidence import Proposal, WordEntries, WordEntry, has_letter, without_spaces
from phrasetool.text_splitting import split_words

# Minimum number of letters of a part.
_LEAST = 3
_MOST_PARTS = 4
# Maximum numbers of letters between two parts, and that a part may lose.
_MOST_ADDED, _MOST_CUT = 3, 2
# Minimum number of known compounds that have a link, and their minimum share of all known compounds.
_LEAST_WORDS, _LEAST_SHARE = 3, 0.01
# Maximum number of targets of a word that are compared or combined.
_TARGETS = 5
_SPLITS = 2
_MOST_PROPOSALS = 20


@dataclass(frozen=True)
class Link:
    """Change of a part in a compound.

    Attributes:
        cut: letters that the part loses at its end.
        added: letters between the part and the next one.
    """

    cut: str = ""
    added: str = ""


@dataclass(frozen=True)
class CompoundRules:
    """Rules of compounding in a language.

    Attributes:
        links: the known links, and the share of compounds with each.
        turned: whether the translation begins with the last part.
        least: minimum number of letters of a part.
    """

    links: Mapping[Link, float] = field(default_factory=lambda: {Link(): 1.0})
    turned: bool = False
    least: int = _LEAST


def learn_compounds(entries: WordEntries) -> CompoundRules:
    """Learn the rules of the source language.

    Args:
        entries: known words; the rules are learnt from words whose target has a token of each part's targets.
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
            _, link, turned = min(explanations, key=lambda explanation: explanation[0])
            counts[link] += 1
            turns[turned] += 1
    least_count = max(_LEAST_WORDS, _LEAST_SHARE * counts.total())
    counts[Link()] += 1
    links = {
        link: count / counts.total() for link, count in counts.most_common() if count >= least_count or link == Link()
    }
    return CompoundRules(links, turns[True] > turns[False])


def _stems(entries: WordEntries) -> dict[str, list[tuple[str, str]]]:
    """Return a mapping from stems to their words and the letters that these lose."""
    words_by_stem: dict[str, list[tuple[str, str]]] = {}
    for word in filter(has_letter, entries):
        for size in range(_MOST_CUT + 1):
            if len(word) - size >= _LEAST:
                words_by_stem.setdefault(word[: len(word) - size], []).append((word, word[len(word) - size :]))
    return words_by_stem


def _two_parts(
    word: str, entries: WordEntries, stems: dict[str, list[tuple[str, str]]]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield splits in two: first part, letters that it loses, letters that are added, second part."""
    for start in range(_LEAST, len(word) - _LEAST + 1):
        if word[start:] in entries:
            for size in range(min(_MOST_ADDED, start - _LEAST) + 1):
                added = word[start - size : start]
                for first, cut in stems.get(word[: start - size], ()):
                    # A letter that is cut and added again is not a change.
                    if first != word and not (cut and added and cut[0] == added[0]):
                        yield first, cut, added, word[start:]


def _order(entries: WordEntries, word: str, one: set[str], other: set[str]) -> bool | None:
    """Return whether a target of the word has the second part before the first; None if no target has both."""
    for entry in entries.lexical(word)[:_TARGETS]:
        targets = split_words(entry.target)
        left = [index for index, target in enumerate(targets) if target in one - other]
        right = [index for index, target in enumerate(targets) if target in other - one]
        if left and right:
            return right[0] < left[0]
    return None


class Compounds:
    """Translations of compounds, combined from those of the parts.

    Args:
        entries: known words.
        rules: the rules of compounding.
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
        """Return the splits of a word into two or more known words, the best first."""
        weights: dict[tuple[str, ...], float] = {}
        for parts, weight in self._parts(word, 0, _MOST_PARTS):
            mean = weight / len(parts)
            weights[parts] = max(mean, weights.get(parts, mean))
        return sorted(weights, key=lambda parts: (-weights[parts], parts))

    def _parts(self, word: str, first: int, left: int) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield splits of the word from `first` on, and the log of the product of part counts and link shares."""
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
                proposal = _together(chosen[:: -1 if self._rules.turned else 1], " + ".join(parts))
                if proposal.target not in proposals or proposals[proposal.target].weight < proposal.weight:
                    proposals[proposal.target] = proposal
        return sorted(proposals.values(), key=lambda entry: (-entry.weight, entry.target))[:_MOST_PROPOSALS]


def _together(parts: Sequence[WordEntry], origin: str) -> Proposal:
    """Return the concatenated targets of the parts, with the products of their scores."""
    inverse, first, weight, second = (math.prod(part.scores[column] for part in parts) for column in range(4))
    return Proposal(" ".join(part.target for part in parts), weight, inverse, (first, second), origin)
