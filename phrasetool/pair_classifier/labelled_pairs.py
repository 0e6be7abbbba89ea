"""Labelled pairs: true sentence pairs, and negative pairs made from them.

Negative targets are drawn from the same batch in training, and from all targets for development and test sets (five per
true pair, as in the paper); others contain the correct target or are a part of it.  A known translation of a source is
never one of its negative targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phrasetool.pair_classifier.inputs import SOURCE, TARGET
from phrasetool.pair_classifier.network import PairClassifier
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array, Mask, Phrases, prefix_sums
from phrasetool.training.data import TextPairs
from phrasetool.unique_phrases import number_distinct


class KnownTranslations:
    """Look-up of the distinct pairs of a bitext.

    Args:
        sources, targets: N pairs, in indices of distinct words.

    Attributes:
        source_numbers, target_numbers: index of the distinct text of each source and target, int64, shape (N,).
    """

    def __init__(self, sources: Phrases, targets: Phrases) -> None:
        self.source_numbers, _ = number_distinct(sources)
        self.target_numbers, firsts = number_distinct(targets)
        self._targets = len(firsts)
        self._pairs = np.unique(self._key(self.source_numbers, self.target_numbers))
        self._by_words = {targets[first].tobytes(): number for number, first in enumerate(firsts.tolist())}

    def _key(self, sources: Int64Array, targets: Int64Array) -> Int64Array:
        return np.asarray(sources * self._targets + targets)

    def among(self, batch: Int64Array) -> Mask:
        """Return which targets (columns) of a batch are translations of which sources (rows); bool, shape (B, B).

        Args:
            batch: indices of pairs, shape (B,).
        """
        return self.translates(batch[:, None], batch[None])

    def translates(self, sources: Int64Array, targets: Int64Array) -> Mask:
        """Return whether targets are translations of sources; bool, of the shape to which both broadcast.

        Args:
            sources, targets: indices of the pairs that they belong to.
        """
        keys = self._key(self.source_numbers[sources], self.target_numbers[targets])
        positions = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        return np.asarray(self._pairs[positions] == keys)

    def has(self, pair: int, target: Int32Array) -> bool:
        """Return whether a text is a translation of the source of a pair.

        Args:
            pair: index of the pair.
            target: words of the text.
        """
        number = self._by_words.get(np.ascontiguousarray(target, np.int32).tobytes())
        if number is None:
            return False
        key = int(self.source_numbers[pair]) * self._targets + number
        position = int(np.searchsorted(self._pairs, key))
        return position < len(self._pairs) and int(self._pairs[position]) == key


# Minimum and maximum share of words that a truncated target keeps.
_LEAST, _MOST = 0.35, 0.65
# Attempts before a pair is skipped, whose source has so many translations that no negative target is found.
_TRIES = 20


def containment_negatives(
    targets: Phrases, pairs: Int64Array, known: KnownTranslations, rng: np.random.Generator
) -> tuple[Phrases, Int64Array]:
    """Return for each of some pairs a target that is wrong by containment.

    The target is cut to 35 to 65 % of its words, or another target is put before or behind it; half of each, as far as
    targets are long enough to be cut.

    Args:
        targets: targets of all N pairs.
        pairs: indices of B pairs.
        known: known translations, which are never returned.
        rng: random generator.

    Returns:
        The negative targets, at most B, and the index of the pair of each.
    """
    negatives, kept = [], []
    for pair in pairs.tolist():
        for _ in range(_TRIES):
            negative = _drawn(targets, pair, rng)
            if not known.has(pair, negative):
                negatives.append(negative)
                kept.append(pair)
                break
    offsets = prefix_sums([len(words) for words in negatives])
    words = np.concatenate([np.zeros(0, np.int32), *negatives])
    return Phrases(offsets, words), np.array(kept, np.int64)


def _drawn(targets: Phrases, pair: int, rng: np.random.Generator) -> Int32Array:
    """Return a cut or joined target, which may be a known translation by chance."""
    words = targets[pair]
    least, most = int(np.ceil(_LEAST * len(words))), int(np.floor(_MOST * len(words)))
    if rng.random() < 0.5 and least <= most:
        size = int(rng.integers(least, most + 1))
        first = int(rng.integers(0, len(words) - size + 1))
        return words[first : first + size]
    second = targets[int(rng.integers(len(targets)))]
    return np.concatenate([words, second] if rng.random() < 0.5 else [second, words])


def batch_negatives(wrong: Mask, count: int, rng: np.random.Generator) -> tuple[Int64Array, Int64Array]:
    """Draw negative targets for each source, without repetition.

    Args:
        wrong: mask of the targets (T columns) that are not translations of the sources (B rows), shape (B, T).
        count: targets per source; fewer if the source has fewer negatives.
        rng: random generator.

    Returns:
        Indices of sources and of targets, shape (K,) each, K at most B * count.
    """
    drawn = np.where(wrong, rng.random(wrong.shape), 2.0)
    chosen = np.argsort(drawn, axis=1)[:, :count]
    rows = np.repeat(np.arange(len(wrong)), chosen.shape[1])
    columns = chosen.ravel()
    good = wrong[rows, columns]
    return rows[good], columns[good]


def epoch_batches(pairs: int, size: int, rng: np.random.Generator) -> list[Int64Array]:
    """Return all pairs in random order, in batches of nearly equal size, so that the last one is not tiny."""
    return [np.asarray(part) for part in np.array_split(rng.permutation(pairs), -(-pairs // size))]


# Makes negatives from all targets, indices of pairs, known translations and a generator; see `containment_negatives`.
WrongTargets = Callable[
    [Phrases, Int64Array, KnownTranslations, np.random.Generator], tuple[Phrases, Int64Array]
]  # fmt: skip


@dataclass(frozen=True)
class LabelledPairs:
    """K labelled pairs of N sources and M targets.

    Attributes:
        texts: sources and their true targets.
        targets: all M targets, in indices of the same words; those of `texts` come first.
        rows, columns: index of the source and of the target of each pair, int64, shape (K,).
        parallel: label of each pair, bool, shape (K,).
    """

    texts: TextPairs
    targets: Phrases
    rows: Int64Array
    columns: Int64Array
    parallel: Mask

    def __len__(self) -> int:
        return len(self.rows)


def random_pairs(texts: TextPairs, negatives: int, seed: int) -> LabelledPairs:
    """Return all true pairs, and each source with random targets of other pairs that are not translations of it.

    Args:
        texts: true pairs.
        negatives: negatives per source; fewer if there are not enough.
        seed: random seed.
    """
    known = KnownTranslations(texts.sources, texts.targets)
    rng = np.random.default_rng([seed, 3])
    rows, columns = [np.arange(len(texts))], [np.arange(len(texts))]
    for pair in range(len(texts)):
        others = rng.permutation(len(texts))[: 4 * negatives + 8]
        wrong = ~known.among(np.concatenate([[pair], others]))[0, 1:]
        chosen = others[wrong][:negatives]
        rows.append(np.full(len(chosen), pair))
        columns.append(chosen)
    return _labelled(texts, texts.targets, np.concatenate(rows), np.concatenate(columns))


def contained_pairs(texts: TextPairs, seed: int, wrong: WrongTargets = containment_negatives) -> LabelledPairs:
    """Return all true pairs, and each source with a target that is wrong by containment.

    Args:
        texts: true pairs.
        seed: random seed.
        wrong: makes the negative targets.
    """
    known = KnownTranslations(texts.sources, texts.targets)
    numbers = np.arange(len(texts))
    negatives, pairs = wrong(texts.targets, numbers, known, np.random.default_rng([seed, 4]))
    targets = Phrases.concatenate([texts.targets, negatives])
    return _labelled(
        texts, targets, np.concatenate([numbers, pairs]),
        np.concatenate([numbers, len(texts) + np.arange(len(negatives))]),
    )  # fmt: skip


def _labelled(texts: TextPairs, targets: Phrases, rows: Int64Array, columns: Int64Array) -> LabelledPairs:
    return LabelledPairs(texts, targets, rows, columns, np.arange(len(rows)) < len(texts))


def encoded_logits(
    classifier: PairClassifier, pairs: LabelledPairs, sources: FloatArray | None = None
) -> tuple[DoubleArray, FloatArray]:
    """Return the logits of labelled pairs, shape (K,), and the vectors of the sources, for reuse.

    Args:
        classifier: classifier in evaluation mode.
        pairs: labelled pairs.
        sources: vectors of the sources, if they have been computed already.
    """
    texts = pairs.texts
    if sources is None:
        sources = classifier.sentence_vectors(SOURCE, texts.sources, texts.source_words)
    targets = classifier.sentence_vectors(TARGET, pairs.targets, texts.target_words)
    rows, columns = pairs.rows, pairs.columns
    logits = classifier.pair_logits(
        sources[rows], texts.sources.lengths[rows], targets[columns], pairs.targets.lengths[columns]
    )
    return logits, sources
