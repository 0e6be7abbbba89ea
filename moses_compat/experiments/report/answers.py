"""Answers of an experiment in plain sentences, and the gains of the steps of its ladder as a figure and a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from moses_compat.experiments.report.figures import (
    MARGIN,
    as_good,
    curve_points,
    curves_of,
    main_text,
    protections,
)
from moses_compat.experiments.report.frame_tables import (
    deviation_cell,
    interval_cell,
    significance_mark,
    texts_of,
    verdict,
)
from moses_compat.experiments.settings import DEV, FULL
from moses_compat.pages.drawing import (
    KEPT,
    STYLE,
    Marks,
    inline,
    number_text,
    p_phrase,
    percent_text,
    printable,
)
from moses_compat.pages.html import Column, Row, Table, code, number_cell, text_cell
from phrasetool.smt.evaluation.metrics import SIGNIFICANT, is_significant

# A table of at most this size counts as small.
SMALL = 0.15

# Criterion of a gain.
_SHOWN = f"with p < {SIGNIFICANT:g} and a 95 % interval above 0"

TITLE = "Cumulative gains of each step"


def answers(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return sentences about the smallest table, the best methods, semantic criteria, annotation and the ladder."""
    sentences: list[str] = []
    if "pruning" in frames:
        sentences += smallest_table(frames["pruning"])
        sentences += chosen_on_dev(frames["pruning"])
        sentences += count_wins(frames["pruning"])
    if "contests" in frames:
        sentences += semantics(frames["contests"])
    if "annotation" in frames:
        sentences += annotated(frames["annotation"])
    if "ladder" in frames:
        sentences += ladder_sentences(frames["ladder"])
    return sentences


def smallest_table(pruning: pd.DataFrame) -> list[str]:
    """Describe the smallest table that is shown to be as good as the full one on all test sets."""
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
    """Return BLEU with its interval, if it is known."""
    interval = f" ({number_text(row.low)} to {number_text(row.high)})" if not math.isnan(row.low + row.high) else ""
    return f"{number_text(row.bleu)}{interval}"


def _loss(row: pd.Series) -> str:
    worst = f" (at worst {number_text(row['worst'], sign=True)})" if not math.isnan(row["worst"]) else ""
    return f"{number_text(row['difference'], sign=True)}{worst}"


def _smallest(pruning: pd.DataFrame, rows: pd.DataFrame) -> pd.Series | None:
    """Return the smallest table that is not inferior to the full one; among equally small ones, the best by BLEU."""
    free = rows[as_good(rows["worst"])]
    if not len(free):
        return None
    labels, _ = curves_of(pruning)
    row = free.sort_values(["share", "bleu"], ascending=[True, False], kind="stable").iloc[0].copy()
    row["curve"] = code(labels[row.name])
    return row


def chosen_on_dev(pruning: pd.DataFrame) -> list[str]:
    """Describe the table that is chosen by the same rule on the development set, and its scores on the test sets."""
    text = main_text(pruning)
    dev = pruning[(pruning["text"] == DEV) & (pruning["method"] != FULL)].dropna(subset=["difference"])
    row = _smallest(pruning, dev)
    if row is None:
        return []
    test = pruning[(pruning["system"] == row["system"]) & (pruning["text"] == text)]
    return [
        f"This table was chosen on the test sets. The same rule on the development set chooses "
        f"{percent_text(row['share'])} by {row['curve']}, `--protect {row['protect']}`; on {code(text)} that is "
        f"{_loss(at_test)}, {'as good there too' if as_good(at_test['worst']) else 'not shown to be as good there'}."
        for _, at_test in test[:1].iterrows()
    ]


def count_wins(pruning: pd.DataFrame) -> list[str]:
    """Count how often each method has the highest score among tables of one size and protection."""
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
    """Compare the best method with a semantic criterion to the best one without."""
    total = len(contests)
    verdicts = [verdict(row) for row in contests.itertuples()]
    won = contests[[winner == "semantics" for winner in verdicts]]
    lost = verdicts.count("others")
    worse = f" In {lost} they are worse." if lost else ""
    if not len(won):
        return [
            f"**Semantics add nothing that can be shown**: in none of {total} comparisons at one size is the best "
            f"method with a semantic criterion better than the best without, {_SHOWN}.{worse}"
        ]
    where = ", ".join(
        f"{percent_text(row.wanted)} `{row.protect}` ({number_text(row.difference, sign=True)}, {p_phrase(row.p)})"
        for row in won.itertuples()
    )
    others = total - len(won) - lost
    rest = f" In {others} no difference is shown." if others else ""
    return [f"**Semantics win in {len(won)} of {total} comparisons** at one size: {where}.{worse}{rest}"]


def annotated(annotation: pd.DataFrame) -> list[str]:
    """Describe the gains of appended columns."""
    text = main_text(annotation)
    rows = annotation[(annotation["text"] == text) & annotation["p"].notna()]
    if not len(rows):
        return []
    best = rows.loc[rows["difference"].idxmax()]
    gains = sum(row.difference > 0 and is_significant(row.p, row.low, row.high) for row in rows.itertuples())
    score = f"{number_text(best['difference'], sign=True)} on {code(text)}, {p_phrase(best['p'])}"
    if gains:
        cases = f"in {gains} of {len(rows)} cases {_SHOWN}"
        return [f"**Annotated tables gain** {cases}; most: {code(best['system'])}, {score}."]
    return [f"**No annotated table gains** {_SHOWN}; the best is {code(best['system'])}, {score}."]


def ladder_table(ladder: pd.DataFrame) -> Table:
    """Return a table with the BLEU of each step, and its gains over the step below and over the original table."""
    texts, main = texts_of(ladder), main_text(ladder)
    columns = [
        Column("step", "what is done to the table, on top of what stands above", False),
        Column("entries", "of the table"),
        Column("tunings", "number of tunings, each with another seed"),
        *(Column(printable(text), "mean of BLEU ± its deviation over the tunings") for text in texts),
        Column("gain", f"on {code(main)}, over the step below; of a pruned table over the whole one"),
        Column("95 %", "interval of the gain, paired bootstrap over sentences and tunings"),
        Column("in all", f"on {code(main)}, over the original table"),
        Column("95 %, in all", "interval of that"),
    ]
    rows = []
    for step, step_rows in ladder.groupby("step", sort=False):
        by_text = {row.text: row for row in step_rows.itertuples()}
        total: Any = by_text[main]
        as_whole = ("within",) if total.share < 1 and as_good(total.gain_low) else ()
        rows.append(Row((
            text_cell(step, "phrase"), number_cell(total.entries, 0), number_cell(total.tuning_seeds, 0),
            *(deviation_cell(by_text.get(text), ("gain", "gain_p", "gain_low", "gain_high")) for text in texts),
            number_cell(
                total.gain, sign=True, tones=as_whole,
                mark=significance_mark(total.gain, total.gain_p, total.gain_low, total.gain_high),
            ),
            interval_cell(total.gain_low, total.gain_high),
            number_cell(
                total.total, sign=True,
                mark=significance_mark(total.total, total.total_p, total.total_low, total.total_high),
            ),
            interval_cell(total.total_low, total.total_high),
        )))  # fmt: skip
    return Table("ladder", TITLE, tuple(columns), tuple(rows))


def ladder_sentences(ladder: pd.DataFrame) -> list[str]:
    """Describe the gain of all steps together, and the part of it that a pruned table retains."""
    rows = ladder[ladder["text"] == main_text(ladder)]
    first, top = rows.iloc[0], rows[rows["share"] == 1].iloc[-1]
    sentences = []
    if top.step != first.step:
        steps = [
            f"{code(row.step.removeprefix('+ '))} {_gain(row)}" for row in rows[rows["share"] == 1][1:].itertuples()
        ]
        shown = is_significant(top.total_p, top.total_low, top.total_high)
        effect = "All steps together " + (
            f"**{'add' if top.total > 0 else 'cost'}** {_total(top)}"
            if shown
            else f"show **no difference**: {_total(top)}"
        )
        sentences.append(
            f"{effect} to a table with {number_text(first.bleu)} BLEU on {code(top.text)}: {', '.join(steps)}."
        )
    for row in rows[rows["share"] < 1].itertuples():
        worst = number_text(row.gain_low, sign=True)
        which = "all steps but reranking" if "but rerank" in row.step else "all steps"
        good = "as good as all of it" if as_good(row.gain_low) else "not shown to be as good as all of it"
        sentences.append(
            f"With {which}, {percent_text(row.share)} of the entries have {number_text(row.bleu)} BLEU, "
            f"{_total(row)} to the original table; {good} ({_gain(row)}, at worst {worst})."
        )
    return sentences


def _gain(row: Any) -> str:
    return number_text(row.gain, sign=True)


def _total(row: Any) -> str:
    low, high = (number_text(value, sign=True) for value in (row.total_low, row.total_high))
    return f"{number_text(row.total, sign=True)} ({low} to {high}, {p_phrase(row.total_p)})"


def draw_ladder(ladder: pd.DataFrame, name: str) -> str:
    """Draw the gain of each step over the original table, with 95 % intervals; points of pruned tables are hollow.

    Args:
        ladder: the frame.
        name: name of the figure, unique on the page.
    """
    rows = ladder[ladder["text"] == main_text(ladder)]
    rows, marks = rows[rows["total"].notna()], Marks()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.9, 0.75 + 0.34 * len(rows)))
        margins = {"left": 0.24, "right": 0.97, "top": 0.97, "bottom": 0.45 / (0.75 + 0.34 * len(rows))}
        axes = figure.subplots(gridspec_kw=margins)
        axes.axvline(0, color=STYLE["text.color"], lw=0.8)
        for y, row in enumerate(rows.itertuples()):
            axes.plot([row.total_low, row.total_high], [y, y], color=KEPT[0], lw=2, solid_capstyle="round")
            filled = KEPT[0] if row.share == 1 else STYLE["figure.facecolor"]
            (point,) = axes.plot([row.total], [y], "o", ms=6, color=KEPT[0], mfc=filled)
            title = f"{row.step}: {_total(row)}; {int(row.entries):,} entries"
            point.set_gid(marks.point("", "point", printable(title)))
        axes.set_yticks(range(len(rows)), [marks.text(printable(step)) for step in rows["step"]])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel(marks.text(f"BLEU gained on {printable(main_text(ladder))}"))
        return inline(figure, name, "BLEU gained by each step of the ladder", marks)
