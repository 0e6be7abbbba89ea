"""Translations of unknown words from all sources of evidence, weighted by their precision on known words."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.augment.compounds import Compounds, learn_compounds
from phrasetool.augment.evidence import (
    COMPOUND,
    COPY,
    EVIDENCE,
    INFLECTION,
    MEANING,
    Evidence,
    Proposal,
    WordEntries,
    has_digit,
    has_letter,
)
from phrasetool.augment.relatives import (
    SELDOM,
    TAUGHT,
    Doubles,
    Likeness,
    SharedTranslations,
    expected,
    learn_relatives,
    regression,
)
from phrasetool.phrases import FloatArray

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*%?")
_MARKS = str.maketrans(".,", ",.")
# A word gets at most MOST translations, each at least LEAST_SHARE as probable as the best.  Less probable ones mislead
# the decoder: on the development set of Multi30k German-English, BLEU was 42.3 with all twenty translations, 42.4 with
# a share of 0.1, 42.6 with 0.25, 42.7 with 0.5, 42.6 with 0.7, 42.5 with the best only, and 41.8 without new entries.
MOST = 20
LEAST_SHARE = 0.5
# Minimum probability of a correct target of a known word.
_RIGHT = 0.1
# Prior probability that a proposal is correct.
_FIRST = 0.05
_SMALLEST = 1e-12
# Number of words on which trust is measured; disjoint from those on which likeness is trained.
_MEASURED = 500


class Copies:
    """Copies of unknown words; numbers get the separators of the target language.

    Args:
        entries: known words; the numbers among them determine whether point and comma are exchanged.
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
    """Return whether a word is a number in digits."""
    return _NUMBER.fullmatch(word) is not None


@dataclass(frozen=True)
class Trust:
    """Probability that a proposal of a source of evidence is correct, measured on known words treated as unknown.

    Attributes:
        weights: coefficients of the logarithms of a proposal's weight and rank, and the intercept; see `regression`.
        words: number of words with proposals.
        first: share of first proposals that were correct.
    """

    weights: tuple[float, float, float]
    words: int
    first: float

    def of(self, proposals: Sequence[Proposal]) -> list[float]:
        """Return the probability of each proposal, from all proposals for a word, the best first."""
        if not proposals:
            return []
        probabilities: list[float] = expected(_features(proposals), np.array(self.weights)).tolist()
        return probabilities


def _features(proposals: Sequence[Proposal]) -> Doubles:
    return np.column_stack([
        np.log([max(proposal.weight, _SMALLEST) for proposal in proposals]), np.log(np.arange(1, len(proposals) + 1))
    ])  # fmt: skip


@dataclass(frozen=True)
class NewEntry:
    """A translation to add to a table.

    Attributes:
        target: the target words.
        scores: in the order of Moses: p(source | target), its lexical weight, p(target | source), its lexical weight.
        sources: index of each source of evidence that proposes the translation.
        origin: origin of the most trusted proposal.
    """

    target: str
    scores: tuple[float, float, float, float]
    sources: frozenset[int]
    origin: str


def measure_trust(evidence: Evidence, entries: WordEntries, taught: Sequence[str]) -> Trust:
    """Measure the trust in a source of evidence.

    Args:
        evidence: the source of evidence.
        entries: known words.
        taught: known words that are treated as unknown.
    """
    rows, right = [np.zeros((1, 2))], [_FIRST]
    words = first = 0
    for word in taught:
        good = {entry.target for entry in entries.lexical(word) if entry.probability >= _RIGHT}
        if proposals := evidence.proposals(word):
            rows.append(_features(proposals))
            right += [float(proposal.target in good) for proposal in proposals]
            words += 1
            first += proposals[0].target in good
    weights = regression(np.concatenate(rows), np.array(right))
    return Trust((float(weights[0]), float(weights[1]), float(weights[2])), words, first / max(1, words))


class Augmenter:
    """Translations of unknown words.

    Args:
        evidence: sources of evidence.
        trusts: trust in each source, by name.
    """

    def __init__(self, evidence: Sequence[Evidence], trusts: Mapping[str, Trust]) -> None:
        self.evidence, self.trusts = tuple(evidence), dict(trusts)

    def entries(self, word: str, known: Collection[str] = ()) -> list[NewEntry]:
        """Return the most trusted translations of a word; empty if there are no proposals.

        p(target | source) is the probability that at least one of the sources that propose the target is correct; the
        other scores are those of the most trusted proposal.

        Args:
            word: an unknown word, or a rare word to which entries are added.
            known: existing targets of the word, which are ranked with the others but not returned.
        """
        wrong: dict[str, float] = {}
        sources: dict[str, set[int]] = {}
        best: dict[str, tuple[float, Proposal]] = {}
        for number, source in enumerate(self.evidence):
            proposals = source.proposals(word)
            for proposal, trust in zip(proposals, self.trusts[source.name].of(proposals), strict=True):
                wrong[proposal.target] = wrong.get(proposal.target, 1.0) * (1 - trust)
                sources.setdefault(proposal.target, set()).add(number)
                if proposal.target not in best or best[proposal.target][0] < trust:
                    best[proposal.target] = trust, proposal
        entries = [
            NewEntry(
                target, (proposal.inverse, proposal.lexical[0], 1 - wrong[target], proposal.lexical[1]),
                frozenset(sources[target]), proposal.origin,
            )
            for target, (_, proposal) in best.items()
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


def learn_augmenter(
    entries: WordEntries, names: Sequence[str] = EVIDENCE, vectors: Mapping[str, FloatArray] | None = None,
    seed: int = 1,
) -> Augmenter:  # fmt: skip
    """Learn from known words how to translate unknown ones.

    Rare words, which resemble unknown words most, are treated as unknown: likeness is trained on some of them, and the
    precision of each source of evidence is measured on others.

    Args:
        entries: known words.
        names: names of the requested sources of evidence, from `EVIDENCE`.
        vectors: vectors of known and unknown words, from monolingual text; None: likeness uses letters only.
        seed: seed of the choice of rare words.

    Raises:
        ValueError: a source of evidence is unknown.
    """
    if unknown := [name for name in names if name not in EVIDENCE]:
        raise ValueError(f"unknown source of evidence {unknown[0]!r}; expected some of {', '.join(EVIDENCE)}")
    seldom = [word for word in entries.ordered if entries.count(word) <= SELDOM and has_letter(word)]
    drawn = [seldom[index] for index in np.random.default_rng(seed).permutation(len(seldom)).tolist()]
    taught = min(TAUGHT, len(drawn) // 2)
    evidence: dict[str, Evidence] = {}
    if COMPOUND in names:
        evidence[COMPOUND] = Compounds(entries, learn_compounds(entries))
    if INFLECTION in names or MEANING in names:
        relatives = learn_relatives(entries, Likeness(entries, vectors), drawn[:taught])
        for name in (INFLECTION, MEANING):
            evidence[name] = SharedTranslations(name, entries, relatives, alike=name == INFLECTION)
    if COPY in names:
        evidence[COPY] = Copies(entries)
    chosen = [evidence[name] for name in EVIDENCE if name in names]
    measured = drawn[taught : taught + _MEASURED]
    return Augmenter(chosen, {source.name: measure_trust(source, entries, measured) for source in chosen})
