"""Translation options: the entries a decoder may use for a source phrase, best first, with precomputed scores.

Moses keeps the `table-limit` best entries of each source by their full score in isolation: phrase-table scores, word
and phrase penalty, and the language model over the target words without context (moses.md, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.smt.decoder.features import UNKNOWN_WORD_SCORE, FeatureSet, Vector
from phrasetool.smt.decoder.table import TranslationTable
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, LN10, TargetModel
from phrasetool.unique_phrases import number_distinct

# Maximum number of options of a source: one number for all tables, or one for each.
TableLimit = int | tuple[int, ...]


class TranslationOptions(NamedTuple):
    """Weighted translation options: G sources, K options, W target words in all, D orientations.

    Attributes:
        first: int64, shape (G + 1,): the options of source g are first[g]..first[g + 1], best in isolation first.
        entries: int32, shape (K,): entry of the table.
        isolated: float64, shape (K,): weighted score in isolation, language model included.
        static: float64, shape (K,): the same without the language model.
        backward, forward: float64, shape (K, D): weighted reordering scores; D is 0 without a reordering model.
        forward_classes: int32, shape (K,): equal where the unweighted forward scores are equal.
        word_offsets: int64, shape (K + 1,).
        words: int32, shape (W,): target words, as ids of the language model.
        states: int32, shape (W,): the language model's state after each word, from the empty context; -1 where it is
            unknown.
        rest: float64, shape (W,): log10 of the words after this one in the same option, from the empty context; read
            only where the state is known.
    """

    first: Int64Array
    entries: Int32Array
    isolated: DoubleArray
    static: DoubleArray
    backward: DoubleArray
    forward: DoubleArray
    forward_classes: Int32Array
    word_offsets: Int64Array
    words: Int32Array
    states: Int32Array
    rest: DoubleArray


@exact_kernel
def _choose(first: Int64Array, isolated: DoubleArray, limit: int, chosen: Int64Array, chosen_first: Int64Array) -> None:
    """Choose the `limit` best entries of every source, best first, the earlier entry first on a tie."""
    count = 0
    for g in range(len(first) - 1):
        kept = min(limit, first[g + 1] - first[g])
        begin = count
        for entry in range(first[g], first[g + 1]):
            score = isolated[entry]
            if count - begin == kept and score <= isolated[chosen[count - 1]]:
                continue
            # Insert in order; lists are short, or nearly sorted already.
            position = count if count - begin < kept else count - 1
            if count - begin < kept:
                count += 1
            while position > begin and isolated[chosen[position - 1]] < score:
                chosen[position] = chosen[position - 1]
                position -= 1
            chosen[position] = entry
        chosen_first[g + 1] = count


def choose_entries(table: TranslationTable, isolated: DoubleArray, limit: TableLimit) -> tuple[Int64Array, Int64Array]:
    """Return the best entries of every source, up to the limit of each table.

    Args:
        table: N entries.
        isolated: float64, shape (N,), the scores that they are ranked by.
        limit: see `prepare_options`.

    Returns:
        `first` as in `TranslationOptions`; and int64, the entries, the best of a source first.
    """
    count = int(table.tables.max(initial=0)) + 1
    limits = (limit,) * count if isinstance(limit, int) else limit
    # A full insertion sort of a long list would take quadratic time.
    if count == 1 and limits[0] > 0:
        chosen, first = np.empty(len(table), np.int64), np.zeros(len(table.first), np.int64)
        _choose(table.first, isolated, limits[0], chosen, first)
        return first, chosen[: first[-1]]
    sources = table.entry_sources
    chosen = np.lexsort((-isolated, sources))
    if any(limits):
        ranked = np.lexsort((-isolated, table.tables, sources))
        groups = np.stack([sources, table.tables])[:, ranked]
        begins = np.flatnonzero(np.append(True, (groups[:, 1:] != groups[:, :-1]).any(axis=0)))
        rank = np.empty(len(table), np.int64)
        rank[ranked] = np.arange(len(table)) - np.repeat(begins, np.diff(np.append(begins, len(table))))
        most = np.array([size or len(table) for size in limits])
        chosen = chosen[(rank < most[table.tables])[chosen]]
    first = np.zeros(len(table.first), np.int64)
    np.cumsum(np.bincount(sources[chosen], minlength=len(first) - 1), out=first[1:])
    return first, chosen


@dataclass
class WordScores:
    """Language model scores of a table's targets, independent of weights: computed once, used by every tuning run.

    Attributes:
        ids: int32, ids of the language model for the words of `TranslationTable.targets`, one after another.
        isolated: float64, shape (N, K), log10 of each target without context, by each of K language models.
    """

    ids: Int32Array
    isolated: DoubleArray


def score_targets(table: TranslationTable, model: TargetModel) -> WordScores:
    """Score all targets of a table without context.

    As in Moses, a target that begins with `<s>` is scored as the beginning of a sentence: its first word costs nothing.
    """
    ids = model.ids(table.target_symbols.words)[table.targets.words]
    isolated = model.isolated(Phrases(table.targets.offsets, ids))
    begin = model.ids([BEGIN_WORD])
    starts = table.targets.offsets[:-1][table.targets.lengths > 0]
    begins = np.flatnonzero(table.targets.lengths > 0)[ids[starts] == begin[0]]
    if len(begins):
        isolated[begins] -= model.isolated(Phrases(np.array([0, 1]), begin))
    return WordScores(ids, isolated)


def prepare_options(
    table: TranslationTable,
    model: TargetModel,
    words: WordScores,
    features: FeatureSet,
    weights: Vector,
    limit: TableLimit = 20,
) -> TranslationOptions:
    """Weigh the entries of a table and choose each source's options.

    Args:
        table: N entries.
        model: scores target words.
        words: result of `score_targets`.
        features: layout of `weights`.
        weights: float64, shape (F,).
        limit: options per source, 0 for all (Moses' table-limit); one number for all tables, or one for each.

    Raises:
        ValueError: the numbers of weights and features differ.
    """
    static = static_scores(table, features, weights)
    isolated = static + (words.isolated * (LN10 * weights[features.language_part])).sum(axis=1)
    first, chosen = choose_entries(table, isolated, limit)
    selected = table.targets.select(chosen)
    ids = Phrases(table.targets.offsets, words.ids).select(chosen).words
    states, rest = model.walked(Phrases(selected.offsets, ids))
    backward, forward, classes = weigh_reordering(table.reordering[chosen], features, weights)
    return TranslationOptions(
        first, chosen.astype(np.int32), isolated[chosen], static[chosen], backward, forward, classes,
        selected.offsets, ids, states, rest,
    )  # fmt: skip


def static_scores(table: TranslationTable, features: FeatureSet, weights: Vector) -> DoubleArray:
    """Return the weighted scores of all entries without language model and reordering, float64, shape (N,).

    Raises:
        ValueError: the numbers of weights and features differ.
    """
    if weights.shape != (len(features),):
        raise ValueError(f"{weights.shape[0]} weights for {len(features)} features")
    slices = features.slices
    scores: DoubleArray = (
        table.scores.astype(np.float64) @ weights[features.table_part]
        - table.targets.lengths * weights[slices["WordPenalty"]]
        + weights[slices["PhrasePenalty"]]
        + np.where(table.copies, features.unknown_weight * UNKNOWN_WORD_SCORE, 0.0)
    )
    return scores


def weigh_reordering(
    scores: FloatArray, features: FeatureSet, weights: Vector
) -> tuple[DoubleArray, DoubleArray, Int32Array]:
    """Return weighted reordering scores.

    Args:
        scores: float32, shape (K, R).
        features, weights: of the model.

    Returns:
        Backward and forward scores, each float64, shape (K, D), zeros for a direction the model lacks; and int32,
        shape (K,), equal where the unweighted forward scores, which Moses compares, are equal.
    """
    model = features.reordering
    if model is None:
        empty = np.zeros((len(scores), 0))
        return empty, empty, np.zeros(len(scores), np.int32)
    weighted = scores.astype(np.float64) * weights[features.slices["LexicalReordering"]][model.column_weights]
    scores_by_direction = []
    for direction in ("backward", "forward"):
        column = model.first_column(direction)
        part = weighted[:, max(column, 0) : max(column, 0) + model.orientations]
        scores_by_direction.append(np.ascontiguousarray(part if column >= 0 else np.zeros_like(part)))
    column = model.first_column("forward")
    compared = scores[:, column : column + model.orientations] if column >= 0 else scores[:, :0]
    # Adding 0 turns -0 into 0, which compares equal but has different bits.
    bits = np.ascontiguousarray(compared + np.float32(0), np.float32).view(np.int32)
    rows = Phrases(np.arange(len(bits) + 1) * bits.shape[1], bits.reshape(-1))
    return scores_by_direction[0], scores_by_direction[1], number_distinct(rows)[0].astype(np.int32)
