"""What an experiment says, in sentences: names in backticks, what matters most between double asterisks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from moses_compat.experiments.report.figures import (
    MARGIN,
    SIGNIFICANT,
    as_good,
    curve_points,
    curves_of,
    main_text,
    protections,
)
from moses_compat.experiments.report.frame_tables import verdict
from moses_compat.experiments.report.ladder_steps import climbed
from moses_compat.experiments.settings import DEV, FULL
from moses_compat.pages.cells import code
from moses_compat.pages.drawing import number_text, p_phrase, percent_text

# Sizes at or under which a table counts as small.
SMALL = 0.15


def answers(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """The answer first, then who wins, whether semantics add anything, and what annotating and the ladder do."""
    found: list[str] = []
    if "pruning" in frames:
        found += smallest_table(frames["pruning"])
        found += chosen_on_dev(frames["pruning"])
        found += who_wins(frames["pruning"])
    if "contests" in frames:
        found += semantics(frames["contests"])
    if "annotation" in frames:
        found += annotated(frames["annotation"])
    if "ladder" in frames:
        found += climbed(frames["ladder"])
    return found


def smallest_table(pruning: pd.DataFrame) -> list[str]:
    """The smallest table that is shown to be as good as the full one, on all test sets."""
    text = main_text(pruning)
    rows = pruning[(pruning["text"] == text) & (pruning["method"] != FULL)].dropna(subset=["difference"])
    full = pruning[(pruning["text"] == text) & (pruning["method"] == FULL)]
    if not len(rows):
        return []
    against = "".join(f", which has {_score(best)} on {code(text)}" for best in full[:1].itertuples())
    row = _smallest(pruning, rows)
    if row is not None:
        return [
            f"**{percent_text(row['share'])} of the entries translate as well as all of them**: by {row['curve']}, "
            f"`--protect {row['protect']}`, {number_text(row['bleu'])} BLEU, {_loss(row)} to the full table{against}."
        ]
    nearest = rows.loc[rows["worst"].fillna(-math.inf).idxmax()]
    return [
        f"**No pruned table is shown to be as good** as the full one{against}; the nearest, "
        f"{percent_text(nearest['share'])} by {code(nearest['method'])}, differs by {_loss(nearest)}, where less than "
        f"{number_text(-MARGIN, 1)} counts as a loss."
    ]


def _score(row: Any) -> str:
    """BLEU with its interval, if there is one."""
    interval = f" ({number_text(row.low)} to {number_text(row.high)})" if not math.isnan(row.low + row.high) else ""
    return f"{number_text(row.bleu)}{interval}"


def _loss(row: pd.Series) -> str:
    worst = f" (at worst {number_text(row['worst'], sign=True)})" if not math.isnan(row["worst"]) else ""
    return f"{number_text(row['difference'], sign=True)}{worst}"


def _smallest(pruning: pd.DataFrame, rows: pd.DataFrame) -> pd.Series | None:
    """Of the rows that are not inferior to the full table the one with the fewest entries; the best of equals."""
    free = rows[as_good(rows["worst"])]
    if not len(free):
        return None
    labels, _ = curves_of(pruning)
    row = free.sort_values(["share", "bleu"], ascending=[True, False], kind="stable").iloc[0].copy()
    row["curve"] = code(labels[row.name])
    return row


def chosen_on_dev(pruning: pd.DataFrame) -> list[str]:
    """What a user would have got who chose on the development set and looked at the test sets only afterwards."""
    text = main_text(pruning)
    dev = pruning[(pruning["text"] == DEV) & (pruning["method"] != FULL)].dropna(subset=["difference"])
    row = _smallest(pruning, dev)
    if row is None:
        return []
    test = pruning[(pruning["system"] == row["system"]) & (pruning["text"] == text)]
    return [
        f"The test sets themselves picked this. What a user would pick by the same rule on the development set: "
        f"{percent_text(row['share'])} by {row['curve']}, `--protect {row['protect']}`; on {code(text)} that is "
        f"{_loss(found)}, {'as good there too' if as_good(found['worst']) else 'not shown to be as good there'}."
        for _, found in test[:1].iterrows()
    ]


def who_wins(pruning: pd.DataFrame) -> list[str]:
    """How often each method has the highest score among tables of one size and protection."""
    text = main_text(pruning)
    _, curves = curves_of(pruning)
    wins: Counter[str] = Counter()
    comparisons = 0
    rows = pruning[(pruning["text"] == text) & (pruning["rule"] == "size")]
    small = bool((rows["wanted"] <= SMALL).any())
    for protect in protections(pruning):
        scores: dict[float, dict[str, float]] = {}
        points = curve_points(pruning, str(protect), text)
        for curve in curves:
            for point in points.get(curve.number, rows[:0]).itertuples():
                if point.rule == "size" and (point.wanted <= SMALL or not small):
                    scores.setdefault(point.wanted, {})[curve.label] = point.bleu
        for methods in scores.values():
            if len(methods) > 1:
                comparisons += 1
                wins[max(methods, key=lambda label: methods[label])] += 1
    if not comparisons:
        return []
    sizes = f" at {percent_text(SMALL)} and less" if small else ""
    (best, most), *others = wins.most_common()
    rest = "".join(f", {code(name)} at {count}" for name, count in others)
    counted = " (a size counts once a protection)" if len(protections(pruning)) > 1 else ""
    return [f"Highest BLEU on {code(text)}{sizes}: {code(best)} at {most} of {comparisons} sizes{rest}{counted}."]


def semantics(contests: pd.DataFrame) -> list[str]:
    """Whether the best method with a semantic criterion beats the best without."""
    total = len(contests)
    verdicts = [verdict(row.difference, row.p) for row in contests.itertuples()]
    won = contests[[found == "semantics" for found in verdicts]]
    lost = verdicts.count("others")
    worse = f" In {lost} they are worse." if lost else ""
    if not len(won):
        return [
            f"**Semantics add nothing that can be shown**: in none of {total} comparisons at one size is the best "
            f"method with a semantic criterion better than the best without, at p < {SIGNIFICANT:g}.{worse}"
        ]
    where = ", ".join(
        f"{percent_text(row.wanted)} `{row.protect}` ({number_text(row.difference, sign=True)}, {p_phrase(row.p)})"
        for row in won.itertuples()
    )
    others = total - len(won) - lost
    rest = f" In {others} no difference is shown." if others else ""
    return [f"**Semantics win in {len(won)} of {total} comparisons** at one size: {where}.{worse}{rest}"]


def annotated(annotation: pd.DataFrame) -> list[str]:
    """Whether more columns help."""
    text = main_text(annotation)
    rows = annotation[(annotation["text"] == text) & annotation["p"].notna()]
    if not len(rows):
        return []
    best = rows.loc[rows["difference"].idxmax()]
    gains = int(((rows["difference"] > 0) & (rows["p"] < SIGNIFICANT)).sum())
    score = f"{number_text(best['difference'], sign=True)} on {code(text)}, {p_phrase(best['p'])}"
    if gains:
        cases = f"in {gains} of {len(rows)} cases at p < {SIGNIFICANT:g}"
        return [f"**Annotated tables gain** {cases}; most: {code(best['system'])}, {score}."]
    return [f"**No annotated table gains** at p < {SIGNIFICANT:g}; the best is {code(best['system'])}, {score}."]
