"""All sources of evidence together: what is proposed for a word, and how far it is to be trusted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.augment.evidence import Evidence, Proposal
from phrasetool.augment.logistic import Doubles, expected, regression
from phrasetool.augment.word_entries import WordEntries

# Translations written for a word: at most MOST, each at least LEAST_SHARE as probable as the best.  Less probable ones
# mislead the decoder: on the development set of Multi30k German-English, all twenty gave 42.3 BLEU, a
# tenth of the best 42.4, a quarter 42.6, a half 42.7, seven tenths 42.6, the best alone 42.5 (no new entries 41.8).
MOST = 20
LEAST_SHARE = 0.5
# A target of a known word is right if it has this share of its translations.
_RIGHT = 0.1
# Trust in a source of evidence before anything was measured.
_FIRST = 0.05
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Trust:
    """How probably a proposal of a source of evidence is right, measured on known words that it took for unknown.

    Attributes:
        weights: of the logarithm of the proposal's weight, of that of its rank, and what is added; see `regression`.
        words: how many words there were proposals for.
        first: the share of first proposals that were right.
    """

    weights: tuple[float, float, float]
    words: int
    first: float

    def of(self, proposals: Sequence[Proposal]) -> list[float]:
        """The probability of each, given all proposals for a word, the best first."""
        if not proposals:
            return []
        probabilities: list[float] = expected(_features(proposals), np.array(self.weights)).tolist()
        return probabilities


def _features(proposals: Sequence[Proposal]) -> Doubles:
    return np.column_stack([
        np.log([max(one.weight, _SMALLEST) for one in proposals]), np.log(np.arange(1, len(proposals) + 1))
    ])  # fmt: skip


@dataclass(frozen=True)
class NewEntry:
    """A translation that a table gets.

    Attributes:
        target: its words.
        scores: in the order of Moses: p(source | target), its lexical weight, p(target | source), its lexical weight.
        sources: number of each source of evidence that proposes it.
        origin: what the most trusted of them took it from.
    """

    target: str
    scores: tuple[float, float, float, float]
    sources: frozenset[int]
    origin: str


def measure_trust(evidence: Evidence, entries: WordEntries, taught: Sequence[str]) -> Trust:
    """Measure a source of evidence.

    Args:
        evidence: it.
        entries: known words.
        taught: those that are taken for unknown.
    """
    rows, right = [np.zeros((1, 2))], [_FIRST]
    words = first = 0
    for word in taught:
        good = {entry.target for entry in entries.lexical(word) if entry.probability >= _RIGHT}
        if found := evidence.proposals(word):
            rows.append(_features(found))
            right += [float(one.target in good) for one in found]
            words += 1
            first += found[0].target in good
    weights = regression(np.concatenate(rows), np.array(right))
    return Trust((float(weights[0]), float(weights[1]), float(weights[2])), words, first / max(1, words))


class Augmenter:
    """Translations of unknown words.

    Args:
        evidence: sources of it.
        trusts: of each.
    """

    def __init__(self, evidence: Sequence[Evidence], trusts: Mapping[str, Trust]) -> None:
        self.evidence, self.trusts = tuple(evidence), dict(trusts)

    def entries(self, word: str, known: Collection[str] = ()) -> list[NewEntry]:
        """The most trusted translations; none where no source has anything to say.

        p(target | source) is the chance that one of the sources that propose it is right; the other scores are those of
        the entries that the most trusted of them took it from.

        Args:
            word: an unknown one, or a rare one that is to have more.
            known: targets that it has already: they count among the most trusted, and are left out.
        """
        wrong: dict[str, float] = {}
        sources: dict[str, set[int]] = {}
        best: dict[str, tuple[float, Proposal]] = {}
        for number, source in enumerate(self.evidence):
            proposals = source.proposals(word)
            for one, trust in zip(proposals, self.trusts[source.name].of(proposals), strict=True):
                wrong[one.target] = wrong.get(one.target, 1.0) * (1 - trust)
                sources.setdefault(one.target, set()).add(number)
                if one.target not in best or best[one.target][0] < trust:
                    best[one.target] = trust, one
        entries = [
            NewEntry(
                target, (one.inverse, one.lexical[0], 1 - wrong[target], one.lexical[1]),
                frozenset(sources[target]), one.origin,
            )
            for target, (_, one) in best.items()
        ]  # fmt: skip
        entries.sort(key=lambda entry: (-entry.scores[2], entry.target))
        entries = [entry for entry in entries[:MOST] if entry.scores[2] >= LEAST_SHARE * entries[0].scores[2]]
        total = max(1.0, math.fsum(entry.scores[2] for entry in entries))
        return [
            NewEntry(
                entry.target, (*entry.scores[:2], entry.scores[2] / total, entry.scores[3]), entry.sources, entry.origin
            )
            for entry in entries
            if entry.target not in known
        ]
