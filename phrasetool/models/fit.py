"""Compatibility of a model with pairs: the share of words it knows, and whether it ranks them above random pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from phrasetool.phrases import FloatArray, Int64Array, Mask, Phrases, prefix_sums
from phrasetool.ranking import CHANCE, pairwise_auc
from phrasetool.text_splitting import split_words
from phrasetool.unique_phrases import number_distinct
from phrasetool.vocabulary import UNKNOWN, Vocabulary

_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_LABEL = re.compile(rb"\[.+\]")
# Fewer words on a side, or fewer pairs, are too few to tell.
FEWEST = 300
# So many tell where none of them is known: of a table of its languages, a model knows 30 % and more.
_FEWEST_UNKNOWN = 20
# Fewer different words are too few: one that stands in many pairs makes them alike.
_FEWEST_WORDS = 20
# Measured on 2,000 entries of tables of five corpora (German, Czech, Spanish and Chinese; English) with models of four
# of them, in both directions.  Of the side that is known less, a model of the right languages knows 92 to 99 % of the
# words of its own corpus, and 30 and 65 % of others (everyday sentences against Python's manual); one of other
# languages 0 to 13 %, and up to 22 % where both are full of names that all languages share.  Its AUC is then 0.47 to
# 0.61, also of swapped languages; that of right ones is 0.96 to 0.99, 0.70 and 0.85 on other corpora, 0.73 after one
# iteration, and 0.59 of one that was trained for a moment on a hundred sentences: only chance itself can be refused.
HARDLY_KNOWN = 0.15
# Above these, nothing speaks for swapped sides.
WELL_KNOWN, GOOD = 0.6, 0.85
# By how much more must be known of swapped pairs; by half of it they must be told better from others.
CLEARLY = 0.3

# How well pairs fit together, the better the larger: of N sources and M targets it makes a function of two arrays of
# numbers, int64, of shape (K,) each, that gives an array of shape (K,).
Comparison: TypeAlias = Callable[[Phrases, Phrases], Callable[[Int64Array, Int64Array], FloatArray]]


@dataclass(frozen=True)
class ModelFit:
    """Compatibility measured on a sample of pairs.

    Attributes:
        pairs: of the sample.
        source_known, target_known: share of the running words, of those with letters, that the model knows; 1 if there
            are none.
        source_words, target_words: how many running words have letters.
        compared: pairs of which both sides have a known word with letters, but no word in common.
        different: how many known words differ in these pairs, on the side where it is fewer.
        auc: the chance that such a pair is more similar than its source with the target of another; None if there are
            no other targets.
    """

    pairs: int
    source_words: int
    target_words: int
    source_known: float
    target_known: float
    compared: int
    different: int
    auc: float | None

    @property
    def known(self) -> float:
        """On the side where fewer are known."""
        return min(self.source_known, self.target_known)

    @property
    def chance(self) -> float:
        """The AUC, one half where there is none."""
        return 0.5 if self.auc is None else self.auc

    @property
    def can_tell(self) -> bool:
        """Whether there are enough pairs for the AUC to say something."""
        return self.auc is not None and self.compared >= FEWEST and self.different >= _FEWEST_WORDS

    @property
    def known_words(self) -> str:
        """Return the shares of known words as a phrase for messages."""
        return f"knows {self.source_known:.1%} of the source's words and {self.target_known:.1%} of the target's"

    @property
    def words(self) -> str | None:
        """All of it, in words; None if the pairs are too few to tell."""
        if not self.can_tell:
            return None
        return f"{self.known_words}, and tells pairs from others with AUC {self.chance:.2f} ({self.pairs:,} entries)"

    def as_dict(self) -> dict[str, Any]:
        """For statistics."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def measure_fit(
    compare: Comparison | None,
    phrases: tuple[Phrases, Phrases],
    vocabularies: tuple[Vocabulary, Vocabulary],
    texts: tuple[Sequence[bytes], Sequence[bytes]] | None = None,
    seed: int = 1,
    shared: bool = False,
) -> ModelFit:
    """Measure on N pairs.

    Args:
        compare: similarities by the model; None: the AUC is not computed.
        phrases: sources and targets.
        vocabularies: what they are made of.
        texts: as they were written; without them, what is unknown counts as a word with letters.
        seed: of the other targets.
        shared: compare pairs that have a word on both sides, too: whole sentences nearly all have one, if a full stop.
    """
    known, words, lettered = [], [], []
    for side in range(2):
        letters = _with_letters(phrases[side], vocabularies[side])
        known.append(int(letters.sum()))
        unknown = int((phrases[side].words == UNKNOWN).sum())
        words.append(_count_words(texts[side]) if texts else known[-1] + unknown)
        sums = prefix_sums(letters)
        lettered.append(np.diff(sums[phrases[side].offsets]) > 0)
    apart = lettered[0] & lettered[1]
    chosen = np.flatnonzero(apart if shared else apart & ~_sharing(phrases, vocabularies))
    shares = [min(k / w, 1.0) if w else 1.0 for k, w in zip(known, words, strict=True)]
    auc = _auc(compare, phrases[0].select(chosen), phrases[1].select(chosen), seed) if compare else None
    # A word a row is the least that pairs of different meaning need.
    different = [int(np.count_nonzero(np.bincount(side.select(chosen).words))) for side in phrases]
    return ModelFit(len(phrases[0]), words[0], words[1], shares[0], shares[1], len(chosen), min(different), auc)


def has_letter(word: bytes) -> bool:
    """Whether this is more than punctuation and digits, which are the same in many languages."""
    return _LETTER.search(word) is not None


def _with_letters(phrases: Phrases, vocabulary: Vocabulary) -> Mask:
    """Which words are known and have letters; bool, flat."""
    ids, places = np.unique(phrases.words, return_inverse=True)
    good = np.array([i != UNKNOWN and has_letter(vocabulary.words[i]) for i in ids.tolist()], np.bool_)
    with_letters: Mask = good[places] if len(ids) else np.zeros(0, np.bool_)
    return with_letters


def _sharing(phrases: tuple[Phrases, Phrases], vocabularies: tuple[Vocabulary, Vocabulary]) -> Mask:
    """Which pairs have a word on both sides, such as a name: any model finds them similar.  bool, shape (N,)."""
    numbers: dict[bytes, int] = {}
    keys = []
    for side, vocabulary in zip(phrases, vocabularies, strict=True):
        ids, places = np.unique(side.words, return_inverse=True)
        words = np.array([numbers.setdefault(vocabulary.words[i], len(numbers)) for i in ids.tolist()], np.int64)
        rows = np.repeat(np.arange(len(side)), side.lengths)
        keys.append((rows, np.where(side.words == UNKNOWN, -1, words[places] if len(ids) else 0)))
    (rows, words), (other_rows, others) = keys
    size = len(numbers) + 1
    # By sorting, numpy would import its masked arrays first, 10 ms.
    both = np.isin(rows * size + words, (other_rows * size + others)[others >= 0], kind="table") & (words >= 0)
    sharing = np.zeros(len(phrases[0]), np.bool_)
    sharing[rows[both]] = True
    return sharing


def _count_words(texts: Sequence[bytes]) -> int:
    """Running words with letters."""
    counts = Counter(split_words(b" ".join(texts)))
    return sum(count for token, count in counts.items() if has_letter(token) and not _LABEL.fullmatch(token))


def _auc(compare: Comparison, sources: Phrases, targets: Phrases, seed: int) -> float | None:
    """The chance that a pair is more similar than its source with another target, ties counting one half."""
    numbers, firsts = number_distinct(targets)
    if len(firsts) < 2:
        return None
    rows = np.arange(len(sources))
    fits = compare(sources, targets.select(firsts))
    return pairwise_auc(fits(rows, numbers), numbers, lambda other: fits(rows, other), seed)


def finding(
    fit: ModelFit, swapped: Callable[[], ModelFit | None] = lambda: None, better: float = CLEARLY / 2
) -> str | None:
    """Why the model cannot be meant for the pairs; None if it may be, or if they are too few to tell.

    A few dozen words of a side are enough where it knows none of them.

    Args:
        fit: of the pairs.
        swapped: called, where the fit is poor, for that of the pairs with source and target swapped.
        better: by how much the AUC of swapped pairs must be higher; of pairs half of which are wrong, it cannot be as
            much higher as of others.
    """
    compared = fit.can_tell
    few = min(fit.source_words, fit.target_words) < FEWEST
    for side, known, words in zip(
        ("source", "target"), (fit.source_known, fit.target_known), (fit.source_words, fit.target_words), strict=True
    ):
        if few and not known and words >= _FEWEST_UNKNOWN:
            return f"it knows none of the {words:,} running words of the {side}"
    if few or (fit.known >= WELL_KNOWN and not (compared and fit.chance < GOOD)):
        return None
    turned = swapped()
    if (
        turned
        and turned.can_tell
        and turned.known > fit.known + CLEARLY
        and turned.chance > (fit.chance if compared else 0.5) + better
    ):
        return f"source and target look swapped: it {fit.known_words}, but the other way round it {turned.known_words}"
    if fit.known < HARDLY_KNOWN:
        return f"it {fit.known_words}: it was trained on other languages, or on other tokens"
    if compared and fit.chance < CHANCE:
        return f"it tells pairs from others hardly better than chance (AUC {fit.chance:.2f}; good models reach 0.9)"
    return None
