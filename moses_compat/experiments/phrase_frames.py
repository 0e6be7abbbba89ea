"""Frames about phrases: who is near whom, what similar entries are, a map, and the entries that methods disagree on."""

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
    OPINION,
    PROBABILITIES,
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
    """Distinct phrases of a side, the most frequent first: the pairs it is in, the first of them, how often seen."""
    numbers, firsts = number_distinct(pairs.targets if target else pairs.sources)
    totals = np.bincount(numbers, pairs.counts, len(firsts)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(firsts) + 1))
    for phrase in np.argsort(-totals, kind="stable"):
        members = order[bounds[phrase] : bounds[phrase + 1]]
        yield members, int(firsts[phrase]), int(totals[phrase])


def choose_phrases(pairs: PhrasePairs, target: bool, count: int = _CHOSEN_PHRASES) -> list[str]:
    """Frequent phrases of two words or more, all of letters or digits, none with a word of another."""
    side, vocabulary = (pairs.targets, pairs.target_vocabulary) if target else (pairs.sources, pairs.source_vocabulary)
    chosen: list[str] = []
    seen: set[str] = set()
    for _, first, _ in _frequencies(pairs, target):
        if len(chosen) == count:
            break
        words = side[first]
        text = _text(vocabulary.phrase(words))
        if len(words) > 1 and (words > 0).all() and _has_letters(text) and not seen & set(split_words(text)):
            chosen.append(text)
            seen.update(split_words(text))
    return chosen


def neighbour_frame(
    models: Mapping[str, tuple[BilingualModel, PhrasePairs]], phrases: Sequence[str], count: int
) -> pd.DataFrame:
    """Table 3: the nearest phrases of the same language, by each model.

    Args:
        models: by name, each with the phrases to search, in its own word ids.
        phrases: of either language: the one of which the first model knows more words.  A model that knows none of a
            phrase's words has no row for it.
        count: neighbours of each.
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
            for rank, found in enumerate(nearest, 1):
                language = "target" if target else "source"
                rows.append((phrase, language, name, rank, _text(found.text), found.similarity))
    return pd.DataFrame(rows, columns=_NEIGHBOURS)


def _is_target(model: BilingualModel, phrase: str) -> bool:
    def known(vocabulary: Vocabulary) -> int:
        return sum(word > 0 for word in vocabulary.ids(phrase.encode()))

    return known(model.target_vocabulary) > known(model.source_vocabulary)


def histogram_frame(measures: Measures, kept: Mapping[str, Mask]) -> pd.DataFrame:
    """How similar the entries are that systems keep and remove; those without an opinion left out.

    Args:
        measures: of the N entries, with similarities.
        kept: by system, bool, shape (N,).
    """
    opinion = measures[OPINION]
    edges = np.linspace(-1, 1, _BINS + 1)
    rows: list[tuple[Any, ...]] = []
    for column, direction in enumerate(DIRECTIONS):
        values = np.clip(measures[SIMILARITIES][:, column], -1, 1)
        bins = np.clip(np.digitize(values, edges) - 1, 0, _BINS - 1)
        everything = np.bincount(bins[opinion], minlength=_BINS)
        for system, mask in kept.items():
            stay = np.bincount(bins[opinion & mask], minlength=_BINS)
            rows += [
                (system, direction, float(edges[i]), float(edges[i + 1]), int(stay[i]), int(everything[i] - stay[i]))
                for i in range(_BINS)
            ]
    return pd.DataFrame(rows, columns=_HISTOGRAM)


def map_frame(model: BilingualModel, pairs: PhrasePairs, count: int = _MAP_PHRASES, seed: int = 1) -> pd.DataFrame:
    """The most frequent source phrases and their most frequent translations on a plane.

    Source vectors stand where they are, target vectors are carried into the source's space first.  Neighbours on the
    plane are mostly neighbours in space (t-SNE, van der Maaten and Hinton 2008; principal components where there are
    fewer than 10 points).

    Args:
        count: source phrases; with their translations, there are at most twice as many points.
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
    found = []
    for (x, y), row in zip(plane.tolist(), rows.tolist(), strict=True):
        source, target = targets[row % len(chosen)]
        side = (source, target, "source") if row < len(chosen) else (target, source, "target")
        found.append((x, y, side[0], side[1], frequencies[row % len(chosen)], side[2]))
    return pd.DataFrame(found, columns=_MAP)


def _plane(points: FloatArray, seed: int) -> npt.NDArray[np.float64]:
    """Points of n dimensions in two; the same on any number of threads."""
    # Only libraries that are loaded by then can be limited, so both imports stand before.
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if len(points) < 10 or points.shape[1] < 2:
            return _principal(points)
        places = TSNE(
            init=_principal(points) * 1e-2, perplexity=min(20.0, (len(points) - 1) / 3), random_state=seed, n_jobs=1
        ).fit_transform(points)
    return np.asarray(places, np.float64)


def _principal(points: FloatArray) -> npt.NDArray[np.float64]:
    """The first two principal components, each with its largest value positive; one that is not there is 0."""
    centred = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(points), 2))
    values = centred @ axes[:2].T
    if len(values):
        values *= np.where(values[np.abs(values).argmax(0), np.arange(values.shape[1])] < 0, -1, 1)
    places[:, : values.shape[1]] = values
    return places


def surprising_entries(
    worths: Mapping[str, FloatArray], kept: Mapping[str, Mask], groups: Int64Array, count: int = 10
) -> dict[tuple[str, str], Int64Array]:
    """The entries about which a method is most at odds with the others.

    What an entry is worth to a method is its rank among all, from 0 to 1.  Surprising among the removed are those that
    the others rank much higher in the mean, among the kept those that they rank much lower.

    Args:
        worths: by method, float32, shape (N,); with one method, nothing is surprising.
        kept: by method, bool, shape (N,).
        groups: int64, shape (N,), the source of each entry; each source comes once in a list.
        count: entries of a list at most.

    Returns:
        By method and `removed` or `kept`, entries, the most surprising first.
    """
    if len(worths) < 2:
        return {}
    total = np.zeros(len(groups))
    for worth in worths.values():
        total += ranks_of(worth)
    found: dict[tuple[str, str], Int64Array] = {}
    for method, worth in worths.items():
        own = ranks_of(worth)
        others = (total - own) / (len(worths) - 1)
        for kind, members, surprise in (
            ("removed", ~kept[method], others - own),
            ("kept", kept[method], own - others),
        ):
            rows = np.flatnonzero(members & (surprise > 0))
            rows = rows[np.argsort(-surprise[rows], kind="stable")]
            _, firsts = np.unique(groups[rows], return_index=True)
            found[method, kind] = rows[np.sort(firsts)[:count]]
    return found


def ranks_of(worth: FloatArray) -> npt.NDArray[np.float64]:
    """Ranks of N entries from 0 for the least to 1 for the best; equal values share the mean of theirs."""
    _, numbers, counts = np.unique(worth, return_inverse=True, return_counts=True)
    means: npt.NDArray[np.float64] = np.cumsum(counts) - (counts + 1) / 2
    return means[numbers] / max(len(worth) - 1, 1)


def surprise_frame(
    measures: Measures,
    surprising: Mapping[tuple[str, str], Int64Array],
    read: Callable[[Int64Array], Sequence[tuple[bytes, bytes]]],
) -> pd.DataFrame:
    """The entries of `surprising_entries` with what is known of them.

    Args:
        read: source and target of entries, which are given in ascending order.
    """
    wanted = np.unique(np.concatenate([np.zeros(0, np.int64), *surprising.values()]))
    texts = dict(zip(wanted.tolist(), read(wanted), strict=True))

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
