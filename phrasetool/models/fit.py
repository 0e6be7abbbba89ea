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
# Minimum number of words on a side, and of pairs, for a judgement.
FEWEST = 300
# Number of words that suffices if none of them is known: of a table of its languages, a model knows 30 % or more.
_MIN_UNKNOWN_WORDS = 20
# Minimum number of distinct words: a word that occurs in many pairs makes them similar.
_FEWEST_WORDS = 20
# Share of known words below which a model is of other languages.  Measured on 2,000 entries of tables of five corpora
# (German, Czech, Spanish and Chinese; English) with models of four of them, in both directions.  On the side with fewer
# known words, a model of the right languages knows 92 to 99 % of the words of its own corpus, and 30 and 65 % of those
# of other corpora (everyday sentences against Python's manual); a model of other languages knows 0 to 13 %, and up to
# 22 % where both are full of names that all languages share.  The AUC of the latter, or with swapped languages, is 0.47
# to 0.61; that of right models is 0.96 to 0.99, on other corpora 0.70 and 0.85, after one iteration 0.73, and after a
# moment's training on a hundred sentences 0.59: only an AUC at chance level can be rejected.
MIN_KNOWN_SHARE = 0.15
# Share of known words and AUC above which nothing suggests swapped sides.
WELL_KNOWN, GOOD = 0.6, 0.85
# Minimum increase of the share of known words if the sides are swapped; the AUC must increase by half of it.
MIN_SWAP_GAIN = 0.3

# Similarity of pairs, larger for better matches: maps N sources and M targets to a function that maps two arrays of
# their numbers, int64, of shape (K,) each, to an array of shape (K,).
Comparison: TypeAlias = Callable[[Phrases, Phrases], Callable[[Int64Array, Int64Array], FloatArray]]


@dataclass(frozen=True)
class ModelCompatibility:
    """Compatibility measured on a sample of pairs.

    Attributes:
        pairs: number of pairs in the sample.
        source_known, target_known: share of the running words with letters that the model knows; 1 if there are none.
        source_words, target_words: number of running words with letters.
        compared: number of pairs whose sides have a known word with letters each, and (unless `shared`, see
            `measure_fit`) no word in common.
        different: number of distinct words in these pairs, on the side with fewer.
        auc: probability that such a pair is more similar than its source with the target of another; None if there are
            no other targets, or if it was not computed.
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
        """Share of known words on the side where it is smaller."""
        return min(self.source_known, self.target_known)

    @property
    def chance(self) -> float:
        """The AUC, or one half if there is none."""
        return 0.5 if self.auc is None else self.auc

    @property
    def is_conclusive(self) -> bool:
        """Whether there are enough pairs for a meaningful AUC."""
        return self.auc is not None and self.compared >= FEWEST and self.different >= _FEWEST_WORDS

    @property
    def known_words(self) -> str:
        """Shares of known words as a phrase for messages."""
        return f"knows {self.source_known:.1%} of the source's words and {self.target_known:.1%} of the target's"

    @property
    def words(self) -> str | None:
        """The measurement as a phrase for messages; None if there are too few pairs for it."""
        if not self.is_conclusive:
            return None
        ranking = f"ranks true pairs above random ones with AUC {self.chance:.2f}"
        return f"{self.known_words}, and {ranking} ({self.pairs:,} entries)"

    def as_dict(self) -> dict[str, Any]:
        """Return the values for statistics, rounded to four digits."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def measure_fit(
    compare: Comparison | None,
    phrases: tuple[Phrases, Phrases],
    vocabularies: tuple[Vocabulary, Vocabulary],
    texts: tuple[Sequence[bytes], Sequence[bytes]] | None = None,
    seed: int = 1,
    shared: bool = False,
) -> ModelCompatibility:
    """Measure the compatibility of a model with N pairs.

    Args:
        compare: similarities by the model; None: the AUC is not computed.
        phrases: sources and targets.
        vocabularies: vocabularies of the sources and of the targets.
        texts: the original text of the phrases; without it, all unknown words count as words with letters.
        seed: seed of the choice of other targets.
        shared: also compare pairs that share a word, as nearly all whole sentences do, if only a full stop.
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
    # Pairs of different meaning need at least one distinct word each.
    different = [int(np.count_nonzero(np.bincount(side.select(chosen).words))) for side in phrases]
    return ModelCompatibility(
        len(phrases[0]), words[0], words[1], shares[0], shares[1], len(chosen), min(different), auc
    )


def has_letter(word: bytes) -> bool:
    """Return whether a word has letters; punctuation and digits are the same in many languages."""
    return _LETTER.search(word) is not None


def _with_letters(phrases: Phrases, vocabulary: Vocabulary) -> Mask:
    """Return which words are known and have letters; bool, flat."""
    ids, inverse = np.unique(phrases.words, return_inverse=True)
    good = np.array([i != UNKNOWN and has_letter(vocabulary.words[i]) for i in ids.tolist()], np.bool_)
    with_letters: Mask = good[inverse] if len(ids) else np.zeros(0, np.bool_)
    return with_letters


def _sharing(phrases: tuple[Phrases, Phrases], vocabularies: tuple[Vocabulary, Vocabulary]) -> Mask:
    """Return which pairs share a word, such as a name, so that any model finds them similar; bool, shape (N,)."""
    numbers: dict[bytes, int] = {}
    keys = []
    for side, vocabulary in zip(phrases, vocabularies, strict=True):
        ids, inverse = np.unique(side.words, return_inverse=True)
        words = np.array([numbers.setdefault(vocabulary.words[i], len(numbers)) for i in ids.tolist()], np.int64)
        rows = np.repeat(np.arange(len(side)), side.lengths)
        keys.append((rows, np.where(side.words == UNKNOWN, -1, words[inverse] if len(ids) else 0)))
    (rows, words), (other_rows, others) = keys
    size = len(numbers) + 1
    # With sorting, numpy would first import its masked arrays, which takes 10 ms.
    both = np.isin(rows * size + words, (other_rows * size + others)[others >= 0], kind="table") & (words >= 0)
    sharing = np.zeros(len(phrases[0]), np.bool_)
    sharing[rows[both]] = True
    return sharing


def _count_words(texts: Sequence[bytes]) -> int:
    """Return the number of running words with letters, without labels in brackets."""
    counts = Counter(split_words(b" ".join(texts)))
    return sum(count for token, count in counts.items() if has_letter(token) and not _LABEL.fullmatch(token))


def _auc(compare: Comparison, sources: Phrases, targets: Phrases, seed: int) -> float | None:
    """Return the probability that a pair is more similar than its source with another target; ties count one half."""
    numbers, firsts = number_distinct(targets)
    if len(firsts) < 2:
        return None
    rows = np.arange(len(sources))
    fits = compare(sources, targets.select(firsts))
    return pairwise_auc(fits(rows, numbers), numbers, lambda other: fits(rows, other), seed)


def mismatch_reason(
    fit: ModelCompatibility,
    swapped: Callable[[], ModelCompatibility | None] = lambda: None,
    better: float = MIN_SWAP_GAIN / 2,
) -> str | None:
    """Return why the model is incompatible with the pairs; None if it may be compatible, or with too few pairs.

    A few dozen words of a side are enough if the model knows none of them.

    Args:
        fit: measurement of the pairs.
        swapped: measures the pairs with source and target swapped; called if `fit` is poor.
        better: minimum increase of the AUC for swapped pairs; if half of the pairs are wrong, the possible increase is
            smaller.
    """
    compared = fit.is_conclusive
    few = min(fit.source_words, fit.target_words) < FEWEST
    for side, known, words in zip(
        ("source", "target"), (fit.source_known, fit.target_known), (fit.source_words, fit.target_words), strict=True
    ):
        if few and not known and words >= _MIN_UNKNOWN_WORDS:
            return f"it knows none of the {words:,} running words of the {side}"
    if few or (fit.known >= WELL_KNOWN and not (compared and fit.chance < GOOD)):
        return None
    flipped = swapped()
    if (
        flipped
        and flipped.is_conclusive
        and flipped.known > fit.known + MIN_SWAP_GAIN
        and flipped.chance > (fit.chance if compared else 0.5) + better
    ):
        return f"source and target look swapped: it {fit.known_words}, but the other way round it {flipped.known_words}"
    if fit.known < MIN_KNOWN_SHARE:
        return f"it {fit.known_words}: it was trained on other languages, or with another tokenisation"
    if compared and fit.chance < CHANCE:
        return f"it ranks true pairs hardly better than chance (AUC {fit.chance:.2f}; good models reach 0.9)"
    return None
