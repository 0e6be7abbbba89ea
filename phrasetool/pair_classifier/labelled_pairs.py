"""Pairs of a development or test set, true and wrong ones: five random wrong ones a true one, as the paper has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phrasetool.pair_classifier.classifier import SiameseClassifier
from phrasetool.pair_classifier.containment import containment_negatives
from phrasetool.pair_classifier.known_translations import KnownTranslations
from phrasetool.pair_classifier.token_inputs import SOURCE, TARGET
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask, Phrases
from phrasetool.train.text_pairs import TextPairs

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
    """Every pair, and for each source random targets of the others that are no translations of it.

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
    classifier: SiameseClassifier, pairs: LabelledPairs, sources: FloatArray | None = None
) -> tuple[DoubleArray, FloatArray]:
    """The logits of labelled pairs, shape (K,), and the vectors of the sources, for pairs of the same sources.

    Args:
        classifier: not in training.
        pairs: any.
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
