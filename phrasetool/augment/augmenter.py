"""Translations of unknown words: all sources of evidence, each weighted by how often it is right on known words."""

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
# Words that trust is measured on; others than those that likeness is learnt from.
_MEASURED = 500


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


def learn_augmenter(
    entries: WordEntries, names: Sequence[str] = EVIDENCE, vectors: Mapping[str, FloatArray] | None = None,
    seed: int = 1,
) -> Augmenter:  # fmt: skip
    """Learn from known words how unknown ones are translated.

    Words that were seen seldom are taken for unknown, as they are most like them: some teach which likeness tells, and
    on others it is measured how far each source of evidence is right.

    Args:
        entries: known words.
        names: of the requested sources, some of `EVIDENCE`.
        vectors: of known and unknown words, from monolingual text; likeness is that of letters alone without.
        seed: of the words that are drawn.

    Raises:
        ValueError: an unknown source.
    """
    if unknown := [name for name in names if name not in EVIDENCE]:
        raise ValueError(f"unknown source of evidence {unknown[0]!r}; expected some of {', '.join(EVIDENCE)}")
    seldom = [word for word in entries.ordered if entries.count(word) <= SELDOM and has_letter(word)]
    drawn = [seldom[place] for place in np.random.default_rng(seed).permutation(len(seldom)).tolist()]
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
