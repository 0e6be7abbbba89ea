"""Nearest phrases (Table 3 of the BRAE paper), and the ranks of true translations among candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.errors import PhraseToolError
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.scoring import BilingualScorer
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.ranking import area_under_curve, replace_words
from phrasetool.unique_phrases import distinct_phrases, number_distinct


@dataclass(frozen=True)
class Neighbour:
    """A phrase and its similarity, in [-1, 1]."""

    text: bytes
    similarity: float


class NearestPhrases:
    """Distinct phrases of both languages with their vectors.

    Args:
        model: model that encodes them.
        sources, targets: phrases of the two languages, in the model's word ids; duplicates are allowed.
    """

    def __init__(self, model: BilingualModel, sources: Phrases, targets: Phrases) -> None:
        self._model = model
        self._scorer = model.scorer()
        self._phrases = (_distinct_known(sources), _distinct_known(targets))
        self._vectors = (
            self._scorer.encode_sources(self._phrases[0])[0],
            self._scorer.encode_targets(self._phrases[1])[0],
        )

    def nearest(self, words: Sequence[int], target: bool, count: int) -> tuple[list[Neighbour], list[Neighbour]]:
        """Return the nearest phrases of the same language (without the phrase itself), and of the other language.

        The former are listed with their cosines, the latter with their similarities, as `BilingualScorer` returns them.

        Args:
            words: the phrase, in word ids.
            target: whether the phrase is of the target language.
            count: number of phrases of each language.
        """
        phrase = Phrases.from_lists([list(words)])
        encode = self._scorer.encode_targets if target else self._scorer.encode_sources
        own, across = encode(phrase)
        same_side, other_side = (1, 0) if target else (0, 1)
        return (
            self._best(own[0], same_side, count, np.asarray(words)),
            self._best(across[0], other_side, count, None),
        )

    def _best(
        self, vector: FloatArray, side: int, count: int, leave_out: npt.NDArray[np.integer] | None
    ) -> list[Neighbour]:
        similarities = self._vectors[side] @ vector
        order = np.argsort(-similarities, kind="stable")[: count + 1]
        if leave_out is None:
            self._scorer.calibrate(similarities[None])
        vocabulary = self._model.target_vocabulary if side else self._model.source_vocabulary
        nearest: list[Neighbour] = []
        for i in order:
            if leave_out is not None and np.array_equal(self._phrases[side][i], leave_out):
                continue
            nearest.append(Neighbour(vocabulary.phrase(self._phrases[side][i]), float(similarities[i])))
        return nearest[:count]


def _distinct_known(phrases: Phrases) -> Phrases:
    """Return the distinct phrases that have words, none of them unknown."""
    distinct = distinct_phrases(phrases)[1]
    unknown = np.zeros(len(distinct) + 1, np.int64)
    np.add.at(unknown, np.repeat(np.arange(len(distinct)), distinct.lengths), distinct.words == 0)
    return distinct.select(np.flatnonzero((unknown[:-1] == 0) & (distinct.lengths > 0)))


def language_of(model: BilingualModel, text: bytes, side: str = "auto") -> str:
    """Return the language of a phrase: `source` or `target`.

    Args:
        model: model with the vocabularies of both.
        text: the phrase, words separated by spaces.
        side: the required language; `auto`: the one whose vocabulary has more of its words, the source on a tie.

    Raises:
        PhraseToolError: none of its words is in the vocabulary of that language.
    """
    sides = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    known = {name: sum(word > 0 for word in vocabulary.ids(text)) for name, vocabulary in sides.items()}
    if side == "auto":
        side = "target" if known["target"] > known["source"] else "source"
    if not known[side]:
        shown = text.decode("utf-8", "replace")
        raise PhraseToolError(f"no word of {shown!r} is in the model's vocabulary of the {side} language")
    return side


@dataclass(frozen=True)
class RetrievalQuality:
    """Measures on held-out pairs.

    Attributes:
        pairs: number of ranked pairs.
        candidates: number of targets among which each true target was ranked.
        accuracy_at_1, accuracy_at_10: share of pairs whose true target is ranked first, among the first ten.
        mean_reciprocal_rank: mean of 1 / rank.
        any_translation_at_1: share of pairs whose best target belongs to the source in some pair of the lot (a source
            may have several translations there, of which only one can be first).
        auc_random_words: probability that a true target scores above one whose words were replaced by random ones.
        auc_other_targets: probability that a true target scores above another target of the pairs.
    """

    pairs: int
    candidates: int
    accuracy_at_1: float
    accuracy_at_10: float
    mean_reciprocal_rank: float
    any_translation_at_1: float
    auc_random_words: float
    auc_other_targets: float


def evaluate_pairs(
    scorer: BilingualScorer,
    sources: Phrases,
    targets: Phrases,
    target_vocabulary: int,
    *,
    written: tuple[Phrases, Phrases] | None = None,
    candidates: int = 1000,
    seed: int = 1,
) -> RetrievalQuality:
    """Rank each pair's target among the targets of its lot by the mean of both similarities.

    Pairs are shuffled and cut into lots of `candidates`; the last lot is filled up with pairs of the one before, which
    are not ranked again.  A candidate that scores as high as the true target counts as above it, unless it is the same
    phrase.

    Args:
        scorer: scorer of the model.
        sources, targets: N pairs.
        target_vocabulary: size of the target vocabulary, from which random words are drawn.
        written: the same sources and targets in ids that tell all words apart, so that phrases which differ only in
            unknown words are different; None if phrases with the same word ids are the same.
        candidates: size of a lot; at most N are used.
        seed: seed of the shuffle and the random words.
    """
    rng = np.random.default_rng(seed)
    size = min(candidates, len(sources))
    order = rng.permutation(len(sources))
    written_sources, written_targets = written or (sources, targets)
    numbers = number_distinct(written_sources.select(order))[0], number_distinct(written_targets.select(order))[0]
    sources, targets = sources.select(order), targets.select(order)
    own = scorer.score_pairs(sources, targets).mean(1)
    random = scorer.score_pairs(sources, replace_words(targets, target_vocabulary, rng)).mean(1)
    s, t = scorer.encode_sources(sources), scorer.encode_targets(targets)
    ranks, valid, above = [], [], []
    for first in range(0, len(sources), size):
        start = min(first, len(sources) - size)
        lot = slice(start, start + size)
        similarities = np.zeros((size, size), np.float32)
        for mine, others in ((s[1], t[0]), (s[0], t[1])):
            direction = mine[lot] @ others[lot].T
            scorer.calibrate(direction)
            similarities += direction
        lot_ranks, lot_valid, lot_above = _rank_lot(similarities, (numbers[0][lot], numbers[1][lot]))
        ranks.append(lot_ranks[first - start :])
        valid.append(lot_valid[first - start :])
        above.append(lot_above)
    rank = np.concatenate(ranks)
    return RetrievalQuality(
        pairs=len(rank),
        candidates=size,
        accuracy_at_1=float((rank == 1).mean()),
        accuracy_at_10=float((rank <= 10).mean()),
        mean_reciprocal_rank=float((1 / rank).mean()),
        any_translation_at_1=float(np.concatenate(valid).mean()),
        auc_random_words=area_under_curve(own, random),
        auc_other_targets=float(np.mean(above)),
    )


def _rank_lot(
    similarities: FloatArray, numbers: tuple[Int64Array, Int64Array]
) -> tuple[Int64Array, npt.NDArray[np.bool_], float]:
    """Return the ranks of true targets in a lot, whether a valid target ranks first, and AUC of true against others.

    Args:
        similarities: sums of both similarities of sources and targets, shape (C, C); row i belongs to column i.
        numbers: numbers of the distinct sources and targets, shape (C,) each.
    """
    true = similarities.diagonal()
    is_other = numbers[1][:, None] != numbers[1][None, :]
    ranks = 1 + ((similarities >= true[:, None]) & is_other).sum(1)
    # A target phrase is valid if it forms a pair with this source in any row.
    valid = {(int(a), int(b)) for a, b in zip(*numbers, strict=True)}
    best = similarities.argmax(1)
    good = np.array([(int(numbers[0][i]), int(numbers[1][j])) in valid for i, j in enumerate(best)])
    return ranks, good, area_under_curve(true, similarities[is_other])
