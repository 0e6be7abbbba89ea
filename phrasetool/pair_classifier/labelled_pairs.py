"""Labelled pairs: true sentence pairs, and wrong ones made from them.

Wrong targets are drawn from the same batch in training, and from all targets for development and test sets (five for
each true pair, as in the paper); others contain the right target or are a part of it.  No known translation of a source
becomes one of its wrong targets.
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
    """The distinct pairs of some texts.

    Args:
        sources, targets: N pairs, in numbers of distinct words.

    Attributes:
        source_numbers, target_numbers: which distinct text each is, int64, shape (N,).
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
        """Which targets of a batch of pairs are translations of which of its sources; bool, shape (B, B).

        Args:
            batch: numbers of pairs, shape (B,).
        """
        return self.translates(batch[:, None], batch[None])

    def translates(self, sources: Int64Array, targets: Int64Array) -> Mask:
        """Whether targets are translations of sources; bool, of their common shape.

        Args:
            sources, targets: numbers of the pairs that they are of.
        """
        keys = self._key(self.source_numbers[sources], self.target_numbers[targets])
        places = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        return np.asarray(self._pairs[places] == keys)

    def has(self, pair: int, target: Int32Array) -> bool:
        """Whether a text is a translation of the source of a pair.

        Args:
            pair: its number.
            target: words of the text.
        """
        number = self._by_words.get(np.ascontiguousarray(target, np.int32).tobytes())
        if number is None:
            return False
        key = int(self.source_numbers[pair]) * self._targets + number
        place = int(np.searchsorted(self._pairs, key))
        return place < len(self._pairs) and int(self._pairs[place]) == key


# Share of the words that a cut leaves.
_LEAST, _MOST = 0.35, 0.65
# Draws before a pair is given up: of a source with so many translations that chance finds no wrong target.
_TRIES = 20


def containment_negatives(
    targets: Phrases, pairs: Int64Array, known: KnownTranslations, rng: np.random.Generator
) -> tuple[Phrases, Int64Array]:
    """For each of some pairs a target that is wrong by containment: cut to 35 to 65 % of its words, or with another
    target joined to it, before or behind; half of each, as far as targets can be cut.

    Args:
        targets: of all N pairs.
        pairs: numbers of B of them.
        known: translations, none of which is given.
        rng: draws.

    Returns:
        The wrong targets, at most B, and the number of the pair of each.
    """
    negatives, kept = [], []
    for pair in pairs.tolist():
        for _ in range(_TRIES):
            made = _drawn(targets, pair, rng)
            if not known.has(pair, made):
                negatives.append(made)
                kept.append(pair)
                break
    offsets = prefix_sums([len(words) for words in negatives])
    words = np.concatenate([np.zeros(0, np.int32), *negatives])
    return Phrases(offsets, words), np.array(kept, np.int64)


def _drawn(targets: Phrases, pair: int, rng: np.random.Generator) -> Int32Array:
    """One that is wrong, or by chance right."""
    words = targets[pair]
    least, most = int(np.ceil(_LEAST * len(words))), int(np.floor(_MOST * len(words)))
    if rng.random() < 0.5 and least <= most:
        size = int(rng.integers(least, most + 1))
        first = int(rng.integers(0, len(words) - size + 1))
        return words[first : first + size]
    other = targets[int(rng.integers(len(targets)))]
    return np.concatenate([words, other] if rng.random() < 0.5 else [other, words])


def batch_negatives(wrong: Mask, count: int, rng: np.random.Generator) -> tuple[Int64Array, Int64Array]:
    """Draw wrong targets for each source, without repetition.

    Args:
        wrong: which of T targets are not translations of which of B sources, shape (B, T).
        count: targets for each source; fewer where there are not so many.
        rng: draws.

    Returns:
        Rows of sources and of targets, each of shape (K,), K at most B * count.
    """
    drawn = np.where(wrong, rng.random(wrong.shape), 2.0)
    chosen = np.argsort(drawn, axis=1)[:, :count]
    rows = np.repeat(np.arange(len(wrong)), chosen.shape[1])
    columns = chosen.ravel()
    good = wrong[rows, columns]
    return rows[good], columns[good]


def epoch_batches(pairs: int, size: int, rng: np.random.Generator) -> list[Int64Array]:
    """All pairs in random order, in batches of about one size: none is left with a pair or two to tell apart."""
    return [np.asarray(part) for part in np.array_split(rng.permutation(pairs), -(-pairs // size))]


# Makes wrong targets: of all targets, numbers of pairs, what is known, and a generator; see `containment_negatives`.
WrongTargets = Callable[
    [Phrases, Int64Array, KnownTranslations, np.random.Generator], tuple[Phrases, Int64Array]
]  # fmt: skip


@dataclass(frozen=True)
class LabelledPairs:
    """K pairs of N sources and M targets.

    Attributes:
        texts: sources and the targets that are their translations.
        targets: all M targets, in numbers of the same words: those of the texts first.
        rows, columns: source and target of each pair, int64, shape (K,).
        parallel: bool, shape (K,).
    """

    texts: TextPairs
    targets: Phrases
    rows: Int64Array
    columns: Int64Array
    parallel: Mask

    def __len__(self) -> int:
        return len(self.rows)


def random_pairs(texts: TextPairs, negatives: int, seed: int) -> LabelledPairs:
    """Every pair, and for each source random targets of the others that are not translations of it.

    Args:
        texts: true pairs.
        negatives: wrong ones for each; fewer where there are not so many.
        seed: of what is drawn.
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
    """Every pair, and for each a target that is wrong by containment.

    Args:
        texts: true pairs.
        seed: of what is drawn.
        wrong: makes the wrong targets.
    """
    known = KnownTranslations(texts.sources, texts.targets)
    numbers = np.arange(len(texts))
    made, pairs = wrong(texts.targets, numbers, known, np.random.default_rng([seed, 4]))
    targets = Phrases.concatenate([texts.targets, made])
    return _labelled(
        texts, targets, np.concatenate([numbers, pairs]),
        np.concatenate([numbers, len(texts) + np.arange(len(made))]),
    )  # fmt: skip


def _labelled(texts: TextPairs, targets: Phrases, rows: Int64Array, columns: Int64Array) -> LabelledPairs:
    return LabelledPairs(texts, targets, rows, columns, np.arange(len(rows)) < len(texts))


def encoded_logits(
    classifier: PairClassifier, pairs: LabelledPairs, sources: FloatArray | None = None
) -> tuple[DoubleArray, FloatArray]:
    """The logits of labelled pairs, shape (K,), and the vectors of the sources, for pairs of the same sources.

    Args:
        classifier: not in training.
        pairs: labelled pairs.
        sources: vectors of their sources, if they are known already.
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
