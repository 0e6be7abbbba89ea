"""Modules of a report that need a further input: a text, a bitext, a moses.ini, a model or the pruned table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.files.paths import same_file
from moses_compat.ini.tables import BINARY
from moses_compat.pages.drawing import (
    Series,
    draw_bars,
    draw_histogram,
    draw_outlines,
    draw_shares,
    percent_text,
    printable,
)
from moses_compat.pages.html import Column, Row, Table, number_cell, share_cell
from moses_compat.table_report.measuring import BEST, MeasuredReport, Similarity
from moses_compat.table_report.modules import (
    CHECK,
    GOOD,
    LENGTHS,
    PROBLEM,
    SHOWN_ENTRIES,
    SIMILARITY_BINS,
    Drawing,
    Fact,
    Module,
    ShownLines,
    known_fact,
    missing_module,
    phrase_cell,
    share_of,
    verdict_above,
)
from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.pruning.protection import DEFAULT_COUNT

# Shares above which the verdict is `check` and `problem`; see `verdict_above`.
UNCOVERED = (0.02, 0.1)
UNKNOWN_IN_BITEXT = (0.01, 0.1)
INCONSISTENT = (0.01, 0.1)
# Removed occurrences above which the verdict is `check`.
LOST_OCCURRENCES = 0.05
SHOWN_WORDS = 30
_BOTH = ("kept", "removed")

Numbers = npt.NDArray[Any]

THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8)
# AUC below which the verdict is `problem` and `check`.
LEAST_AUC = (0.75, 0.9)
# The share of entries removed at 0.7 above which the verdict is `check`.
REMOVABLE = 0.05
# The share of occurrences that a recommended threshold may remove.
CHEAP = 0.01
# An entry is suspicious if it has at least this count and is less similar than this share of the random pairs.
SUSPICIOUS_COUNT = 10
SUSPICIOUS_QUANTILE = 0.95
# Shares of the occurrences of suspicious entries above which the verdict is `check` and `problem`.
SUSPICIOUS_OCCURRENCES = (0.001, 0.01)


def coverage_module(measured: MeasuredReport) -> Module:
    """Return the module about the coverage of a development set."""
    name, title = "coverage", "Coverage of the development set"
    coverage = measured.coverage
    if coverage is None:
        return missing_module(name, title, "--dev SOURCE REFERENCE")
    facts = [
        Fact.count("tokens", coverage.tokens), Fact.count("sentences", coverage.sentences),
        Fact.share("tokens covered by one-word entries", coverage.by_words, coverage.tokens),
        Fact.share("tokens covered by any entry", coverage.by_any, coverage.tokens),
        Fact.share("sentences covered by one-word entries", coverage.sentences_by_words, coverage.sentences),
        Fact.share("sentences covered by any entry", coverage.sentences_by_any, coverage.sentences),
        Fact.count("words without a one-word entry", len(coverage.unknown)),
    ]  # fmt: skip
    if measured.reference:
        facts.append(known_fact("tokens of the reference in some target", measured.reference))
    missing = share_of(coverage.tokens - coverage.by_any, coverage.tokens)
    verdict = PROBLEM if not coverage.tokens else verdict_above(missing, UNCOVERED)
    if not coverage.tokens:
        advice = "The development set has no word: check the file."
    elif verdict == GOOD:
        advice = f"Entries cover {percent_text(1 - missing)} of the tokens; nothing to do."
    else:
        advice = (
            f"Entries cover only {percent_text(1 - missing)} of the tokens: check that the text is tokenised, cased "
            "and escaped as the table is, or add entries with `phrasetool augment`."
        )
    columns = (
        Column("word", "", False), Column("occurrences", "in the development set"),
        Column("in longer entries", "occurrences inside a longer source of the table"),
    )  # fmt: skip
    rows = tuple(
        Row((phrase_cell(word), number_cell(count, 0), number_cell(inside, 0)))
        for word, count, inside in coverage.unknown[:SHOWN_WORDS]
    )
    more = len(coverage.unknown) - len(rows)
    notes = (f"{more:,} more words are not shown.",) if more > 0 else ()
    tables = (
        (Table("oov", "Words without a one-word entry, most frequent first", columns, rows, notes),) if rows else ()
    )
    return Module(name, title, verdict, advice, tuple(facts), tables=tables, explanation=(
        "Moses takes a word for unknown if no entry translates it alone, even where a longer entry covers it."
    ))  # fmt: skip


def ini_module(measured: MeasuredReport) -> Module:
    """Return the module about the agreement of the table with a moses.ini."""
    name, title = "moses-ini", "Fit to moses.ini"
    if measured.ini is None:
        return missing_module(name, title, "--moses-ini INI")
    ini, feature = measured.ini.ini, measured.ini.feature
    scores = max(measured.summary.scores, 0)
    text = feature.arguments.get("num-features", "1")
    features = int(text) if text.isascii() and text.isdecimal() else None
    weights = ini.weights.get(feature.name)
    path = feature.arguments.get("path", "")
    own = bool(path) and same_file(ini.resolve(path), measured.request.table)
    facts = (
        Fact("feature", feature.name, f"{feature.name} ({feature.kind})"), Fact("path", path, path or "–"),
        Fact("the path is the table", own, "yes" if own else "no"),
        Fact("num-features", features, text), Fact.count("scores of the table", scores),
        Fact("weights", weights, " ".join(f"{value:g}" for value in weights) if weights else "none"),
    )  # fmt: skip
    zero = [number for number, value in enumerate(weights or (), 1) if value == 0]
    moses = next((loader for loader in measured.loaders if loader.loader == "moses"), None)
    if features != scores:
        verdict, advice = PROBLEM, (
            f"The ini expects {text} scores and the table has {scores}: set `num-features={scores}` and as many "
            "weights, or use the table that the ini was written for."
        )  # fmt: skip
    elif weights is not None and len(weights) != scores:
        verdict, advice = PROBLEM, (
            f"The ini has {len(weights)} weights for {feature.name} and the table has {scores} scores: Moses stops at "
            "that, so give it a weight per score."
        )  # fmt: skip
    elif moses and moses.answer == "no" and feature.kind not in BINARY:
        verdict, advice = PROBLEM, f"Moses refuses the table: {moses.objections[0].reason}."
    elif weights is None:
        verdict, advice = CHECK, f"The ini has no weights for {feature.name}, so Moses takes 1 for each: tune it."
    elif zero:
        columns = ", ".join(map(str, zero))
        verdict, advice = CHECK, f"The weight of score {columns} is 0, so Moses ignores it: tune the ini."
    else:
        rest = "nothing to do" if own else "let the ini name it with `phrasetool moses-ini`"
        verdict, advice = GOOD, f"The table fits {feature.name}: {scores} scores and {scores} weights; {rest}."
    return Module(name, title, verdict, advice, facts)


def bitext_module(measured: MeasuredReport) -> Module:
    """Return the module about the agreement of the table with a bitext."""
    name, title = "bitext", "Fit to the bitext"
    fit = measured.bitext
    if fit is None:
        return missing_module(name, title, "--bitext SOURCE TARGET")
    facts = (
        Fact.count("sentence pairs", fit.pairs),
        known_fact("source tokens in some source of the table", fit.source),
        known_fact("target tokens in some target of the table", fit.target),
        Fact.share("sentence pairs all of whose words are known on both sides", fit.known_pairs, fit.pairs),
        Fact.share("entries that occur together in a sentence pair", fit.together, fit.entries),
        Fact.share("entries whose joint count is consistent", fit.consistent, fit.counted),
    )
    unknown = 1 - min(share_of(side.known, side.words) for side in (fit.source, fit.target))
    wrong = 1 - share_of(fit.together, fit.entries)
    if fit.counted:
        wrong = max(wrong, 1 - share_of(fit.consistent, fit.counted))
    verdicts = verdict_above(unknown, UNKNOWN_IN_BITEXT), verdict_above(wrong, INCONSISTENT)
    verdict = next(candidate for candidate in (PROBLEM, CHECK, GOOD) if candidate in verdicts)
    if verdict == GOOD:
        advice = "The table was made from this bitext; nothing to do."
    elif verdicts[1] == GOOD:
        advice = (
            f"The entries are of this bitext, but {percent_text(unknown)} of the tokens of a side are in no entry: the "
            "table was pruned, or its phrases are short."
        )
    else:
        advice = (
            f"{percent_text(wrong)} of the entries do not fit the bitext: check that it is the one the table was made "
            "from, with the same tokens, and that the sides are not swapped."
        )
    return Module(name, title, verdict, advice, facts, explanation=(
        "A joint count is consistent if the two sides occur together in a sentence pair and the count is no larger "
        "than the occurrences of either side in the bitext."
    ))  # fmt: skip


def removed_rows(measured: MeasuredReport) -> Int64Array:
    """Return the removed entries, the most frequent first, or in table order if the table has no counts."""
    entries = measured.entries
    if measured.small is None:
        return np.zeros(0, np.int64)
    rows = np.flatnonzero(entries.good & ~entries.kept)
    return rows[np.argsort(-np.nan_to_num(entries.joint[rows]), kind="stable")]


def compare_module(measured: MeasuredReport, shown: ShownLines) -> Module:
    """Return the module about the entries that pruning removed."""
    name, title = "compare", "What pruning removed"
    small = measured.small
    if small is None:
        return missing_module(name, title, "--compare SMALL")
    entries, sources = measured.entries, measured.sources
    good = entries.good
    removed = good & ~entries.kept
    joint = np.where(good, np.nan_to_num(entries.joint), 0).astype(np.float64)
    lost = share_of(float(joint[removed].sum()), float(joint.sum()))
    words = np.repeat(sources.words, sources.lines)
    one_word, whole = _lost_sources(measured, removed)
    frequent = int((entries.frequent & removed).sum())
    facts = (
        Fact.count("entries of the smaller table", int((good & entries.kept).sum())),
        Fact.count("removed entries", int(removed.sum())),
        Fact.share("removed share of the entries", int(removed.sum()), int(good.sum())),
        Fact.share("removed share of the occurrences", lost, 1 if joint.any() else 0),
        Fact.count("sources without an entry now", whole), Fact.count("of these, single words", one_word),
        Fact.count(f"removed mutual translations seen more than {DEFAULT_COUNT} times", frequent),
        Fact.count("pairs of the smaller table that the table lacks", small.others),
    )  # fmt: skip
    if small.others:
        verdict, advice = PROBLEM, (
            f"{small.others:,} pairs of {printable(small.path)} are not in the table: it was not made from this table "
            "by pruning."
        )  # fmt: skip
    elif one_word:
        verdict, advice = PROBLEM, (
            f"{one_word:,} single words have lost all their entries and are unknown to the decoder: prune with "
            "`--protect words`."
        )  # fmt: skip
    elif frequent:
        verdict, advice = CHECK, (
            f"{frequent:,} mutual translations seen more than {DEFAULT_COUNT} times were removed: prune with "
            f"`--protect-frequent {DEFAULT_COUNT}`, or compare BLEU with `phrasetool evaluate`."
        )  # fmt: skip
    elif lost > LOST_OCCURRENCES:
        verdict, advice = CHECK, (
            f"The removed entries hold {percent_text(lost)} of the occurrences: compare BLEU with "
            "`phrasetool evaluate` before you use the smaller table."
        )  # fmt: skip
    else:
        verdict, advice = GOOD, "Pruning removed rare entries and left every word known; nothing to do."
    drawings = [_by_words(words, removed, good)]
    counted = good & ~np.isnan(entries.joint)
    if counted.any():
        drawings.append(_by_count(entries.joint, removed, counted))
    if measured.similarity is not None:
        drawings.append(_by_similarity(entries.similarity, removed, good))
    rows = removed_rows(measured)[:SHOWN_ENTRIES].tolist()
    tables = (shown.table(measured, "removed-entries", "Most frequent removed entries", rows),) if rows else ()
    return Module(name, title, verdict, advice, facts, tuple(drawings), tables)


def _lost_sources(measured: MeasuredReport, removed: Mask) -> tuple[int, int]:
    """Return the numbers of single words, and of all sources, whose entries were all removed."""
    offsets = measured.sources.offsets
    if not len(removed):
        return 0, 0
    good = np.diff(np.concatenate([[0], np.cumsum(measured.entries.good)])[offsets])
    removed_counts = np.diff(np.concatenate([[0], np.cumsum(removed)])[offsets])
    lost = (good > 0) & (removed_counts == good)
    # In an unsorted table, a source may have further entries in another group.
    left = np.unique(measured.sources.keys[removed_counts < good])
    keys, first = np.unique(measured.sources.keys[lost], return_index=True)
    words = measured.sources.words[lost][first][~np.isin(keys, left)]
    return int((words == 1).sum()), len(words)


def _two(values: Callable[[Mask], list[int]], removed: Mask, of: Mask) -> list[Series]:
    return [Series("kept", values(of & ~removed)), Series("removed", values(of & removed))]


def _by_words(words: Numbers, removed: Mask, good: Mask) -> Drawing:
    def values(marks: Mask) -> list[int]:
        return [*map(int, np.bincount(np.minimum(words[marks], LENGTHS + 1), minlength=LENGTHS + 2)[1:])]

    labels, series = [*map(str, range(1, LENGTHS + 1)), "more"], _two(values, removed, good)
    return Drawing("By words of the source", lambda key: draw_bars(
        key, "kept and removed entries by words of the source", labels, series, "words of the source"),
        _BOTH)  # fmt: skip


def _by_count(joint: FloatArray, removed: Mask, counted: Mask) -> Drawing:
    edges = [1, 2, 3, 5, 10, 100]

    def values(marks: Mask) -> list[int]:
        return [*map(int, np.bincount(np.searchsorted(edges, joint[marks] - 1e-6), minlength=len(edges) + 1))]

    labels, series = ["1", "2", "3", "4–5", "6–10", "11–100", "more"], _two(values, removed, counted)
    return Drawing("By joint count (logarithmic)", lambda key: draw_bars(
        key, "kept and removed entries by joint count", labels, series, "joint count", logarithmic=True),
        _BOTH)  # fmt: skip


def _by_similarity(similarities: FloatArray, removed: Mask, good: Mask) -> Drawing:
    edges = np.linspace(-1, 1, SIMILARITY_BINS // 2 + 1)

    def values(marks: Mask) -> list[int]:
        return [*map(int, np.histogram(similarities[marks], edges)[0])]

    series = _two(values, removed, good & np.isfinite(similarities))
    return Drawing("By similarity", lambda key: draw_histogram(
        key, "kept and removed entries by similarity", edges.tolist(), series, "similarity"), _BOTH)  # fmt: skip


def similarity_module(measured: MeasuredReport) -> Module:
    """Return the module about the similarities of entries and of random pairs."""
    name, title = "similarity", "Similarity"
    similarity = measured.similarity
    if similarity is None:
        return missing_module(name, title, "-m MODEL")
    entries = measured.entries
    similarities = entries.similarity[entries.good]
    scored = similarities[np.isfinite(similarities)]
    auc = auc_of(scored, similarity.random)
    facts = [
        Fact("model", similarity.signature, similarity.signature),
        Fact.count("entries with a score", len(scored)),
        Fact.count("entries without a known word on a side", len(similarities) - len(scored)),
        Fact.number("median similarity of entries", _median(scored)),
        Fact.number("median similarity of random pairs", _median(similarity.random)),
        Fact.number("AUC of entries against random pairs", auc, 3),
    ]
    if fit := similarity.fit:
        facts += [
            Fact.share("source words that the model knows", fit.source_known, 1),
            Fact.share("target words that the model knows", fit.target_known, 1),
        ]
    if math.isnan(auc):
        return Module(name, title, PROBLEM, "The model has no score for any entry: check its languages.", tuple(facts))
    edges = np.linspace(-1, 1, SIMILARITY_BINS + 1)
    series = [
        Series(label, np.histogram(values, edges)[0].tolist())
        for label, values in (("entries", scored), ("random pairs", similarity.random))
    ]
    drawing = Drawing("Better similarity of entries and of random pairs", lambda key: draw_outlines(
        key, "similarities of entries and of random pairs", edges.tolist(), series, "similarity"),
        ("entries", "random pairs"))  # fmt: skip
    verdict = GOOD if auc >= LEAST_AUC[1] else CHECK if auc >= LEAST_AUC[0] else PROBLEM
    statement = f"The model ranks an entry above a random pair in {percent_text(auc)} of the cases"
    advice = {
        GOOD: f"{statement}; nothing to do.",
        CHECK: f"{statement}: check that it was trained on this table's domain before you prune by similarity.",
        PROBLEM: f"{statement}: do not prune by similarity with it; train it on pairs of this table.",
    }[verdict]
    return Module(name, title, verdict, advice, tuple(facts), (drawing,), explanation=(
        "The similarity of an entry is the better one of both directions, which `prune --threshold` compares with the "
        "threshold. Random pairs are sources with the target of another entry."
    ))  # fmt: skip


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else math.nan


def auc_of(values: FloatArray, others: FloatArray) -> float:
    """Return the probability that one of N values is larger than one of M others, where ties count one half.

    The result is NaN if either is empty.
    """
    if not len(values) or not len(others):
        return math.nan
    ordered = np.sort(others)
    below, up_to = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return float((below + up_to).sum() / 2 / (len(values) * len(others)))


def threshold_module(measured: MeasuredReport) -> Module:
    """Return the module about the entries and occurrences that each threshold removes."""
    name, title = "thresholds", "Pruning by similarity"
    if measured.similarity is None:
        return missing_module(name, title, "-m MODEL")
    entries = measured.entries
    good = entries.good
    count = int(good.sum())
    joint = np.where(good & ~np.isnan(entries.joint), entries.joint, 0).astype(np.float64)
    total = float(joint.sum())
    rows, shares, occurrences = [], [], []
    for threshold in THRESHOLDS:
        # Compared in double precision, as in pruning.
        removed = (entries.strength.astype(np.float64) < threshold) & good
        below = (entries.similarity.astype(np.float64) < threshold) & good
        shares.append(share_of(int(removed.sum()), count))
        occurrences.append(share_of(float(joint[removed].sum()), total) if total else math.nan)
        rows.append(Row((
            number_cell(threshold, 1), number_cell(int(below.sum()), 0), number_cell(int(removed.sum()), 0),
            share_cell(shares[-1]), share_cell(occurrences[-1]),
        )))  # fmt: skip
    facts = [Fact.share(f"entries removed at {t:g}", share, 1) for t, share in zip(THRESHOLDS, shares, strict=True)]
    facts += [
        Fact(
            f"occurrences removed at {t:g}", None if math.isnan(share) else round(share, 6), percent_text(share) or "–"
        )
        for t, share in zip(THRESHOLDS, occurrences, strict=True)
    ]
    columns = (
        Column("threshold"), Column("below", "entries whose better similarity is below the threshold"),
        Column("removed", f"of these, entries that {BEST.words} do not protect"),
        Column("share", "removed entries"), Column("occurrences", "joint counts of the removed entries"),
    )  # fmt: skip
    table = Table("thresholds-table", "Removed at each threshold", columns, tuple(rows))
    series = [Series("of the entries", shares)]
    if total:
        series.append(Series("of the occurrences", occurrences))
    drawing = Drawing("Removed by `prune --threshold`", lambda key: draw_shares(
        key, "entries and occurrences removed at each threshold", THRESHOLDS, series, "threshold"),
        ("entries", "occurrences")[: len(series)])  # fmt: skip
    verdict = CHECK if shares[THRESHOLDS.index(0.7)] > REMOVABLE else GOOD
    cheap = [t for t, share in zip(THRESHOLDS, occurrences, strict=True) if share <= CHEAP]
    if verdict == GOOD:
        advice = "Similarity at 0.7 removes hardly any entry while ten per source are kept; nothing to do."
    elif cheap:
        best = THRESHOLDS.index(cheap[-1])
        advice = (
            f"`phrasetool prune -t {cheap[-1]:g}` removes {percent_text(shares[best])} of the entries with "
            f"{percent_text(occurrences[best])} of the occurrences."
        )
    elif total:
        advice = "Every threshold costs more than 1 % of the occurrences: prune by `composition+semantic` instead."
    else:
        advice = "The table has no counts, so what a threshold costs is unknown: measure BLEU before you prune."
    return Module(name, title, verdict, advice, tuple(facts), (drawing,), (table,), explanation=(
        f"As `phrasetool prune --threshold` decides by default: {BEST.words} are kept, and mutual translations seen "
        f"more than {DEFAULT_COUNT} times."
    ), facts_shown=False)  # fmt: skip


def suspicious_rows(measured: MeasuredReport) -> Int64Array:
    """Return entries seen at least ten times that are less similar than 95 % of the random pairs, by frequency."""
    entries = measured.entries
    if measured.similarity is None:
        return np.zeros(0, np.int64)
    limit = _suspicious_below(measured.similarity)
    rows = np.flatnonzero(entries.good & (entries.similarity < limit) & (entries.joint >= SUSPICIOUS_COUNT))
    return rows[np.argsort(-entries.joint[rows], kind="stable")]


def _suspicious_below(similarity: Similarity) -> np.float32:
    """Return the similarity below which an entry is suspicious; without random pairs, -1, so that no entry is."""
    return np.float32(np.quantile(similarity.random, SUSPICIOUS_QUANTILE) if len(similarity.random) else -1)


def suspicious_module(measured: MeasuredReport, shown: ShownLines) -> Module:
    """Return the module about frequent entries with a low similarity."""
    name, title = "suspicious", "Suspicious frequent entries"
    if measured.similarity is None:
        return missing_module(name, title, "-m MODEL")
    joint = measured.entries.joint[measured.entries.good]
    if not (~np.isnan(joint)).any():
        return missing_module(name, title, "a table with joint counts")
    rows = suspicious_rows(measured)
    occurrences = float(measured.entries.joint[rows].sum(dtype=np.float64))
    share = share_of(occurrences, float(np.nansum(joint, dtype=np.float64)))
    facts = (
        Fact.count("suspicious entries", len(rows)), Fact.share("their share of the occurrences", share, 1),
        Fact.number("suspicious below a similarity of", float(_suspicious_below(measured.similarity))),
    )  # fmt: skip
    explanation = (
        f"An entry is suspicious if it was seen at least {SUSPICIOUS_COUNT} times and is less similar than "
        f"{percent_text(SUSPICIOUS_QUANTILE)} of the random pairs."
    )
    if not len(rows):
        advice = "No frequent entry looks like a random pair; nothing to do."
        return Module(name, title, GOOD, advice, facts, explanation=explanation)
    verdict = verdict_above(share, SUSPICIOUS_OCCURRENCES)
    entries = "entry looks like a random pair" if len(rows) == 1 else "entries look like random pairs"
    advice = (
        f"{len(rows):,} frequent {entries}: see below whether their alignment is wrong or the model does not know "
        "their words well."
    )
    table = shown.table(measured, "suspicious-entries", "Most frequent ones", rows[:SHOWN_ENTRIES].tolist())
    return Module(name, title, verdict, advice, facts, tables=(table,), explanation=explanation)
