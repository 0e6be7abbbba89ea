"""What an experiment says, in sentences: names in backticks, what matters most between double asterisks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import pandas as pd

from phrasetool.experiments.drawing import number_text, p_phrase, percent_text
from phrasetool.experiments.figures import BUDGETS, SIGNIFICANT, curve_points, curves_of, main_text, protections
from phrasetool.experiments.report_tables import code, verdict
from phrasetool.experiments.settings import DEV
from phrasetool.experiments.systems import FULL

# Sizes at or under which a table counts as small.
SMALL = 0.15


def answers(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """The answer first, then who wins, whether semantics add anything, and what annotating does."""
    found: list[str] = []
    if "pruning" in frames:
        found += smallest_table(frames["pruning"])
        found += chosen_on_dev(frames["pruning"])
        found += who_wins(frames["pruning"])
    if "contests" in frames:
        found += semantics(frames["contests"])
    if "annotation" in frames:
        found += annotated(frames["annotation"])
    return found


def smallest_table(pruning: pd.DataFrame) -> list[str]:
    """The smallest table within each budget of the full one, on all test sets."""
    text = main_text(pruning)
    rows = pruning[(pruning["text"] == text) & (pruning["method"] != FULL)].dropna(subset=["difference"])
    full = pruning[(pruning["text"] == text) & (pruning["method"] == FULL)]
    if not len(rows):
        return []
    against = f" on {code(text)}"
    for best in full[:1].itertuples():
        interval = (
            f" ({number_text(best.low)} to {number_text(best.high)})" if not math.isnan(best.low + best.high) else ""
        )
        against = f", which has {number_text(best.bleu)}{interval} on {code(text)}"
    parts: list[str] = []
    last = None
    for budget in BUDGETS:
        row = _smallest(pruning, rows, budget)
        if row is None:
            continue
        score = f"{number_text(row['bleu'])}, {number_text(row['difference'], sign=True)}"
        how = f"{row['curve']}, `--protect {row['protect']}`: {score}"
        if row["system"] == last:
            parts[-1] = parts[-1].replace(" BLEU", f" (and so within {budget:g}) BLEU", 1)
        elif parts:
            parts.append(f"**{percent_text(row['share'])}** come within {budget:g} ({how})")
        else:
            share = percent_text(row["share"])
            parts.append(f"**{share} of the entries** come within {budget:g} BLEU of the full table{against} ({how})")
        last = row["system"]
    if parts:
        return ["; ".join(parts) + "."]
    nearest = rows.loc[rows["difference"].idxmax()]
    return [
        f"**No pruned table comes within {BUDGETS[-1]:g} BLEU** of the full one{against}; the nearest, "
        f"{percent_text(nearest['share'])} by {code(nearest['method'])}, differs by "
        f"{number_text(nearest['difference'], sign=True)}."
    ]


def _smallest(pruning: pd.DataFrame, rows: pd.DataFrame, budget: float) -> pd.Series | None:
    """Of the rows that lose no more than the budget the one with the fewest entries; the best of equals."""
    within = rows[rows["difference"] >= -budget - 1e-9]
    if not len(within):
        return None
    labels, _ = curves_of(pruning)
    row = within.sort_values(["share", "bleu"], ascending=[True, False], kind="stable").iloc[0].copy()
    row["curve"] = f"by {code(labels[row.name])}"
    return row


def chosen_on_dev(pruning: pd.DataFrame) -> list[str]:
    """What a user would have got who chose on the development set and looked at the test sets only afterwards."""
    text = main_text(pruning)
    dev = pruning[(pruning["text"] == DEV) & (pruning["method"] != FULL)].dropna(subset=["difference"])
    for budget in BUDGETS:
        row = _smallest(pruning, dev, budget)
        if row is None:
            continue
        test = pruning[(pruning["system"] == row["system"]) & (pruning["text"] == text)]
        if not len(test):
            continue
        difference, p = float(test["difference"].iloc[0]), float(test["p"].iloc[0])
        chance = "" if math.isnan(p) else f" ({p_phrase(p)})"
        inside = "within it too" if difference >= -budget - 1e-9 else "which is not within it"
        return [
            f"The test sets themselves picked these. What a user would pick on the development set, within "
            f"{budget:g} there: {percent_text(row['share'])} {row['curve']}, `--protect {row['protect']}`; on "
            f"{code(text)} that is {number_text(difference, sign=True)}{chance}, {inside}."
        ]
    return []


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
