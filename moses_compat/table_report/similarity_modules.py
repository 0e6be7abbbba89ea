"""Modules that need a model: similarities, what pruning by them removes, and suspicious frequent entries."""

from __future__ import annotations

import math

import numpy as np

from moses_compat.pages.cells import Column, Row, Table, number_cell, share_cell
from moses_compat.pages.charts import Series, draw_outlines, draw_shares
from moses_compat.pages.drawing import percent_text
from moses_compat.table_report.measuring import BEST, MeasuredReport, Similarity
from moses_compat.table_report.modules import (
    CHECK,
    GOOD,
    PROBLEM,
    SHOWN_ENTRIES,
    SIMILARITY_BINS,
    Drawing,
    Fact,
    Module,
    ShownLines,
    missing_module,
    share_of,
    verdict_above,
)
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.pruning.protection import DEFAULT_COUNT

THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8)
# AUC below which the verdict is `problem` and `check`.
LEAST_AUC = (0.75, 0.9)
# The share of entries removed at 0.7 above which pruning is worth a look.
REMOVABLE = 0.05
# Occurrences that a threshold may cost to be recommended.
CHEAP = 0.01
# An entry is suspicious if it was seen so often and is less similar than this share of the random pairs.
SUSPICIOUS_COUNT = 10
SUSPICIOUS_QUANTILE = 0.95
# Occurrences of suspicious entries above which the verdict is `check` and `problem`.
SUSPICIOUS_OCCURRENCES = (0.001, 0.01)


def similarity_module(measured: MeasuredReport) -> Module:
    """Similarities of entries and of random pairs."""
    name, title = "similarity", "Similarity"
    similarity = measured.similarity
    if similarity is None:
        return missing_module(name, title, "-m MODEL")
    entries = measured.entries
    worth = entries.worth[entries.good]
    scored = worth[np.isfinite(worth)]
    auc = auc_of(scored, similarity.random)
    facts = [
        Fact("model", similarity.signature, similarity.signature),
        Fact.count("entries with a score", len(scored)),
        Fact.count("entries without a known word on a side", len(worth) - len(scored)),
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
    told = f"The model ranks an entry above a random pair in {percent_text(auc)} of the cases"
    advice = {
        GOOD: f"{told}; nothing to do.",
        CHECK: f"{told}: check that it was trained on this table's domain before you prune by similarity.",
        PROBLEM: f"{told}: do not prune by similarity with it; train it on pairs of this table.",
    }[verdict]
    return Module(name, title, verdict, advice, tuple(facts), (drawing,), explanation=(
        "The similarity of an entry is the better one of both directions, which `prune --threshold` compares with the "
        "threshold. Random pairs are sources with the target of another entry."
    ))  # fmt: skip


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else math.nan


def auc_of(values: FloatArray, others: FloatArray) -> float:
    """The chance that one of N values is larger than one of M others, ties counting one half; NaN without either."""
    if not len(values) or not len(others):
        return math.nan
    ordered = np.sort(others)
    below, up_to = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return float((below + up_to).sum() / 2 / (len(values) * len(others)))


def threshold_module(measured: MeasuredReport) -> Module:
    """Entries and occurrences that each threshold removes."""
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
        # In double precision, as the decision compares.
        removed = (entries.strength.astype(np.float64) < threshold) & good
        below = (entries.worth.astype(np.float64) < threshold) & good
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
    """Entries seen at least ten times that are less similar than 95 % of the random pairs, most frequent first."""
    entries = measured.entries
    if measured.similarity is None:
        return np.zeros(0, np.int64)
    limit = _suspicious_below(measured.similarity)
    rows = np.flatnonzero(entries.good & (entries.worth < limit) & (entries.joint >= SUSPICIOUS_COUNT))
    return rows[np.argsort(-entries.joint[rows], kind="stable")]


def _suspicious_below(similarity: Similarity) -> np.float32:
    """The similarity below which an entry is suspicious; none is below -1."""
    return np.float32(np.quantile(similarity.random, SUSPICIOUS_QUANTILE) if len(similarity.random) else -1)


def suspicious_module(measured: MeasuredReport, shown: ShownLines) -> Module:
    """Frequent entries with a low similarity."""
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
