"""Frames about phrases: nearest neighbours, similarities of entries, a map, and entries on which methods disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.neighbours import NearestPhrases
from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.pruning.measures import (
    COUNTS,
    LOSSES,
    PROBABILITIES,
    SCORED,
    SIGNIFICANCE,
    SIMILARITIES,
    Measure,
    Measures,
)
from phrasetool.text_splitting import split_words
from phrasetool.training.data import PhrasePairs
from phrasetool.unique_phrases import number_distinct
from phrasetool.vocabulary import Vocabulary

DIRECTIONS = ("source-to-target", "target-to-source")
_BINS = 40
_MAP_PHRASES = 200
_CHOSEN_PHRASES = 4

_NEIGHBOURS = ("phrase", "language", "model", "rank", "neighbour", "similarity")
_HISTOGRAM = ("system", "direction", "low", "high", "kept", "removed")
_SURPRISES = (
    "method", "kind", "source", "target", "count", "probability", "similarity", "significance", "loss", "rank",
)  # fmt: skip
_MAP = ("x", "y", "phrase", "translation", "frequency", "language")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _has_letters(text: str) -> bool:
    return all(any(c.isalnum() for c in word) for word in split_words(text))


def _frequencies(pairs: PhrasePairs, target: bool) -> Iterator[tuple[Int64Array, int, int]]:
    """Yield the distinct phrases of a side, the most frequent first: their pairs, the first pair, and their count."""
    numbers, firsts = number_distinct(pairs.targets if target else pairs.sources)
    totals = np.bincount(numbers, pairs.counts, len(firsts)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(firsts) + 1))
    for phrase in np.argsort(-totals, kind="stable"):
        members = order[bounds[phrase] : bounds[phrase + 1]]
        yield members, int(firsts[phrase]), int(totals[phrase])


def choose_phrases(pairs: PhrasePairs, target: bool) -> list[str]:
    """Return frequent phrases of several words with letters or digits, no two of which share a word."""
    side, vocabulary = (pairs.targets, pairs.target_vocabulary) if target else (pairs.sources, pairs.source_vocabulary)
    chosen: list[str] = []
    used_words: set[str] = set()
    for _, first, _ in _frequencies(pairs, target):
        if len(chosen) == _CHOSEN_PHRASES:
            break
        words = side[first]
        text = _text(vocabulary.phrase(words))
        if len(words) > 1 and (words > 0).all() and _has_letters(text) and not used_words & set(split_words(text)):
            chosen.append(text)
            used_words.update(split_words(text))
    return chosen


def neighbour_frame(
    models: Mapping[str, tuple[BilingualModel, PhrasePairs]], phrases: Sequence[str], count: int
) -> pd.DataFrame:
    """Return Table 3: the nearest phrases of the same language, by each model.

    Args:
        models: models by name, each with the phrases to search, in its own word ids.
        phrases: phrases of either language; the language of a phrase is the one in which the first model knows more of
            its words.  A model that knows none of the words has no row for a phrase.
        count: number of neighbours of each phrase.
    """
    rows: list[tuple[Any, ...]] = []
    for name, (model, pairs) in models.items():
        index = NearestPhrases(model, pairs.sources, pairs.targets)
        for phrase in phrases:
            target = _is_target(next(iter(models.values()))[0], phrase)
            words = (model.target_vocabulary if target else model.source_vocabulary).ids(phrase.encode())
            if not any(word > 0 for word in words):
                continue
            nearest, _ = index.nearest(words, target, count)
            for rank, neighbour in enumerate(nearest, 1):
                language = "target" if target else "source"
                rows.append((phrase, language, name, rank, _text(neighbour.text), neighbour.similarity))
    return pd.DataFrame(rows, columns=_NEIGHBOURS)


def _is_target(model: BilingualModel, phrase: str) -> bool:
    def known(vocabulary: Vocabulary) -> int:
        return sum(word > 0 for word in vocabulary.ids(phrase.encode()))

    return known(model.target_vocabulary) > known(model.source_vocabulary)


def histogram_frame(measures: Measures, kept: Mapping[str, Mask]) -> pd.DataFrame:
    """Return histograms of the similarities of the entries that systems keep and remove, without unscored entries.

    Args:
        measures: measures of the N entries, with similarities.
        kept: by system, the entries that are kept, bool, shape (N,).
    """
    scored = measures[SCORED]
    edges = np.linspace(-1, 1, _BINS + 1)
    rows: list[tuple[Any, ...]] = []
    for column, direction in enumerate(DIRECTIONS):
        values = np.clip(measures[SIMILARITIES][:, column], -1, 1)
        bins = np.clip(np.digitize(values, edges) - 1, 0, _BINS - 1)
        everything = np.bincount(bins[scored], minlength=_BINS)
        for system, mask in kept.items():
            stay = np.bincount(bins[scored & mask], minlength=_BINS)
            rows += [
                (system, direction, float(edges[i]), float(edges[i + 1]), int(stay[i]), int(everything[i] - stay[i]))
                for i in range(_BINS)
            ]
    return pd.DataFrame(rows, columns=_HISTOGRAM)


def map_frame(model: BilingualModel, pairs: PhrasePairs, count: int = _MAP_PHRASES, seed: int = 1) -> pd.DataFrame:
    """Return positions on a plane of the most frequent source phrases and their most frequent translations.

    Target vectors are first mapped to the space of the source vectors.  Neighbours on the plane are mostly neighbours
    in that space (t-SNE, van der Maaten and Hinton 2008; principal components for fewer than 10 points).

    Args:
        count: maximum number of source phrases; with their translations, there are at most twice as many points.
    """
    sources: list[int] = []
    targets: list[tuple[str, str]] = []
    frequencies: list[int] = []
    for members, _, total in _frequencies(pairs, target=False):
        if len(sources) == count:
            break
        best = int(members[np.argmax(pairs.counts[members])])
        texts = (
            _text(pairs.source_vocabulary.phrase(pairs.sources[best])),
            _text(pairs.target_vocabulary.phrase(pairs.targets[best])),
        )
        if all(_has_letters(text) for text in texts) and (pairs.sources[best] > 0).all():
            sources.append(best)
            targets.append(texts)
            frequencies.append(total)
    if not sources:
        return pd.DataFrame([], columns=_MAP)
    chosen = np.array(sources)
    scorer = model.scorer()
    points = np.concatenate(
        [scorer.encode_sources(pairs.sources.select(chosen))[0], scorer.encode_targets(pairs.targets.select(chosen))[1]]
    )
    # A target phrase that several sources share is one point.
    _, firsts = np.unique([text for _, text in targets], return_index=True)
    rows = np.concatenate([np.arange(len(chosen)), len(chosen) + np.sort(firsts)])
    plane = _plane(points[rows], seed)
    located = []
    for (x, y), row in zip(plane.tolist(), rows.tolist(), strict=True):
        source, target = targets[row % len(chosen)]
        side = (source, target, "source") if row < len(chosen) else (target, source, "target")
        located.append((x, y, side[0], side[1], frequencies[row % len(chosen)], side[2]))
    return pd.DataFrame(located, columns=_MAP)


def _plane(points: FloatArray, seed: int) -> npt.NDArray[np.float64]:
    """Project points of n dimensions to two; the result does not depend on the number of threads."""
    # Only libraries that are already loaded can be limited, so both imports come first.
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if len(points) < 10 or points.shape[1] < 2:
            return _principal(points)
        positions = TSNE(
            init=_principal(points) * 1e-2, perplexity=min(20.0, (len(points) - 1) / 3), random_state=seed, n_jobs=1
        ).fit_transform(points)
    return np.asarray(positions, np.float64)


def _principal(points: FloatArray) -> npt.NDArray[np.float64]:
    """Return the first two principal components, each with its largest value positive; a missing one is 0."""
    centred = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    positions = np.zeros((len(points), 2))
    values = centred @ axes[:2].T
    if len(values):
        values *= np.where(values[np.abs(values).argmax(0), np.arange(values.shape[1])] < 0, -1, 1)
    positions[:, : values.shape[1]] = values
    return positions


def surprising_entries(
    scores: Mapping[str, FloatArray], kept: Mapping[str, Mask], groups: Int64Array, count: int = 10
) -> dict[tuple[str, str], Int64Array]:
    """Return the entries whose rank by a method differs most from the mean rank by the other methods.

    Ranks are between 0 and 1.  Surprising removed entries are those that the other methods rank much higher on
    average, surprising kept ones those that they rank much lower.

    Args:
        scores: scores by method, float32, shape (N,); with a single method, the result is empty.
        kept: by method, the entries that are kept, bool, shape (N,).
        groups: number of the source of each entry, int64, shape (N,); each source occurs at most once in a list.
        count: maximum number of entries of a list.

    Returns:
        Entries by method and `removed` or `kept`, the most surprising first.
    """
    if len(scores) < 2:
        return {}
    total = np.zeros(len(groups))
    for score in scores.values():
        total += ranks_of(score)
    surprising: dict[tuple[str, str], Int64Array] = {}
    for method, score in scores.items():
        own = ranks_of(score)
        others = (total - own) / (len(scores) - 1)
        for kind, members, surprise in (
            ("removed", ~kept[method], others - own),
            ("kept", kept[method], own - others),
        ):
            rows = np.flatnonzero(members & (surprise > 0))
            rows = rows[np.argsort(-surprise[rows], kind="stable")]
            _, firsts = np.unique(groups[rows], return_index=True)
            surprising[method, kind] = rows[np.sort(firsts)[:count]]
    return surprising


def ranks_of(scores: FloatArray) -> npt.NDArray[np.float64]:
    """Return ranks of N entries from 0 for the lowest score to 1 for the highest; equal scores have their mean rank."""
    _, numbers, counts = np.unique(scores, return_inverse=True, return_counts=True)
    means: npt.NDArray[np.float64] = np.cumsum(counts) - (counts + 1) / 2
    return means[numbers] / max(len(scores) - 1, 1)


def surprise_frame(
    measures: Measures,
    surprising: Mapping[tuple[str, str], Int64Array],
    read: Callable[[Int64Array], Sequence[tuple[bytes, bytes]]],
) -> pd.DataFrame:
    """Return the entries of `surprising_entries` with their phrases and measures.

    Args:
        measures: measures of the N entries.
        surprising: a result of `surprising_entries`.
        read: returns source and target of entries, given their numbers in ascending order.
    """
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *surprising.values()]))
    texts = dict(zip(distinct.tolist(), read(distinct), strict=True))

    def value(measure: Measure[Any], row: int) -> float:
        return float(measures[measure][row].mean(dtype=np.float32)) if measure in measures else float("nan")

    rows = [
        (
            method, kind, _text(texts[row][0]), _text(texts[row][1]), value(COUNTS, row),
            value(PROBABILITIES, row), value(SIMILARITIES, row), value(SIGNIFICANCE, row),
            value(LOSSES, row), rank,
        )
        for (method, kind), entries in surprising.items()
        for rank, row in enumerate(entries.tolist(), 1)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=_SURPRISES)
