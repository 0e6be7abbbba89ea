"""Modules that need another input: a development set, a moses.ini, the bitext, or a pruned table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.files.paths import same_file
from moses_compat.ini.tables import BINARY
from moses_compat.pages.cells import Column, Row, Table, number_cell
from moses_compat.pages.charts import Series, draw_bars, draw_histogram
from moses_compat.pages.drawing import percent_text, printable
from moses_compat.table_report.measuring import MeasuredReport
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


def coverage_module(measured: MeasuredReport) -> Module:
    """Coverage of a development set."""
    name, title = "coverage", "Coverage of the development set"
    found = measured.coverage
    if found is None:
        return missing_module(name, title, "--dev SOURCE REFERENCE")
    facts = [
        Fact.count("tokens", found.tokens), Fact.count("sentences", found.sentences),
        Fact.share("tokens covered by one-word entries", found.by_words, found.tokens),
        Fact.share("tokens covered by any entry", found.by_any, found.tokens),
        Fact.share("sentences covered by one-word entries", found.sentences_by_words, found.sentences),
        Fact.share("sentences covered by any entry", found.sentences_by_any, found.sentences),
        Fact.count("words without a one-word entry", len(found.unknown)),
    ]  # fmt: skip
    if measured.reference:
        facts.append(known_fact("tokens of the reference in some target", measured.reference))
    missing = share_of(found.tokens - found.by_any, found.tokens)
    verdict = PROBLEM if not found.tokens else verdict_above(missing, UNCOVERED)
    if not found.tokens:
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
        for word, count, inside in found.unknown[:SHOWN_WORDS]
    )
    more = len(found.unknown) - len(rows)
    notes = (f"{more:,} more words are not shown.",) if more > 0 else ()
    tables = (
        (Table("oov", "Words without a one-word entry, most frequent first", columns, rows, notes),) if rows else ()
    )
    return Module(name, title, verdict, advice, tuple(facts), tables=tables, explanation=(
        "Moses takes a word for unknown if no entry translates it alone, even where a longer entry covers it."
    ))  # fmt: skip


def ini_module(measured: MeasuredReport) -> Module:
    """Whether the table fits a moses.ini."""
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
    moses = next((one for one in measured.loaders if one.loader == "moses"), None)
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
    """Whether a bitext is the one of the table."""
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
    verdict = next(one for one in (PROBLEM, CHECK, GOOD) if one in verdicts)
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
    """Removed entries, most frequent first; without counts in table order."""
    entries = measured.entries
    if measured.small is None:
        return np.zeros(0, np.int64)
    rows = np.flatnonzero(entries.good & ~entries.kept)
    return rows[np.argsort(-np.nan_to_num(entries.joint[rows]), kind="stable")]


def compare_module(measured: MeasuredReport, shown: ShownLines) -> Module:
    """What pruning removed."""
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
        drawings.append(_by_similarity(entries.worth, removed, good))
    rows = removed_rows(measured)[:SHOWN_ENTRIES].tolist()
    tables = (shown.table(measured, "removed-entries", "Most frequent removed entries", rows),) if rows else ()
    return Module(name, title, verdict, advice, facts, tuple(drawings), tables)


def _lost_sources(measured: MeasuredReport, removed: Mask) -> tuple[int, int]:
    """Single words, and sources of any length, all of whose entries were removed."""
    offsets = measured.sources.offsets
    if not len(removed):
        return 0, 0
    good = np.diff(np.concatenate([[0], np.cumsum(measured.entries.good)])[offsets])
    gone = np.diff(np.concatenate([[0], np.cumsum(removed)])[offsets])
    lost = (good > 0) & (gone == good)
    # A source that comes back may have entries elsewhere.
    left = np.unique(measured.sources.keys[gone < good])
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


def _by_similarity(worth: FloatArray, removed: Mask, good: Mask) -> Drawing:
    edges = np.linspace(-1, 1, SIMILARITY_BINS // 2 + 1)

    def values(marks: Mask) -> list[int]:
        return [*map(int, np.histogram(worth[marks], edges)[0])]

    series = _two(values, removed, good & np.isfinite(worth))
    return Drawing("By similarity", lambda key: draw_histogram(
        key, "kept and removed entries by similarity", edges.tolist(), series, "similarity"), _BOTH)  # fmt: skip
