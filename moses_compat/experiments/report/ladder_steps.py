"""The ladder in a report: what each step adds, in a table, a figure and a sentence."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from moses_compat.experiments.report.figures import SIGNIFICANT, as_good, main_text
from moses_compat.experiments.report.frame_tables import deviation_cell, significance_mark, texts_of
from moses_compat.pages.cells import Cell, Column, Row, Table, code, number_cell, text_cell
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

TITLE = "The ladder: what each step adds"


def ladder_table(ladder: pd.DataFrame) -> Table:
    """BLEU of each step, and what it gains over the step below and over the table as it is."""
    texts, main = texts_of(ladder), main_text(ladder)
    columns = [
        Column("step", "what is done to the table, on top of what stands above", False),
        Column("entries", "of the table"),
        Column("tunings", "tuned so often, each time with another seed"),
        *(Column(printable(text), "mean of BLEU ± its deviation over the tunings") for text in texts),
        Column("gain", f"on {code(main)}, over the step below; of a pruned table over the whole one"),
        Column("95 %", "interval of the gain, paired bootstrap over sentences"),
        Column("in all", f"on {code(main)}, over the table as it is"),
        Column("95 %, in all", "interval of that"),
    ]
    rows = []
    for step, found in ladder.groupby("step", sort=False):
        by_text = {row.text: row for row in found.itertuples()}
        total: Any = by_text[main]
        as_whole = ("within",) if total.share < 1 and as_good(total.gain_low) else ()
        rows.append(Row((
            text_cell(step, "phrase"), number_cell(total.entries, 0), number_cell(total.tuning_seeds, 0),
            *(deviation_cell(by_text.get(text), "gain", "gain_p") for text in texts),
            number_cell(total.gain, sign=True, mark=significance_mark(total.gain, total.gain_p), tones=as_whole),
            _interval(total.gain_low, total.gain_high),
            number_cell(total.total, sign=True, mark=significance_mark(total.total, total.total_p)),
            _interval(total.total_low, total.total_high),
        )))  # fmt: skip
    return Table("ladder", TITLE, tuple(columns), tuple(rows))


def _interval(low: float, high: float) -> Cell:
    if pd.isna(low + high):
        return Cell("")
    return Cell(f"{number_text(low, sign=True)} to {number_text(high, sign=True)}", low)


def climbed(ladder: pd.DataFrame) -> list[str]:
    """What all steps add together, and what is left of it in a pruned table."""
    rows = ladder[ladder["text"] == main_text(ladder)]
    first, top = rows.iloc[0], rows[rows["share"] == 1].iloc[-1]
    found = []
    if top.step != first.step:
        steps = [
            f"{code(row.step.removeprefix('+ '))} {_gain(row)}" for row in rows[rows["share"] == 1][1:].itertuples()
        ]
        shown = top.total_p < SIGNIFICANT
        said = "All steps together " + (
            f"**{'add' if top.total > 0 else 'cost'}** {_total(top)}"
            if shown
            else f"show **no difference**: {_total(top)}"
        )
        found.append(f"{said} to a table with {number_text(first.bleu)} BLEU on {code(top.text)}: {', '.join(steps)}.")
    for row in rows[rows["share"] < 1].itertuples():
        worst = number_text(row.gain_low, sign=True)
        which = "all steps but reranking" if "but rerank" in row.step else "all steps"
        good = "as good as all of it" if as_good(row.gain_low) else "not shown to be as good as all of it"
        found.append(
            f"With {which}, {percent_text(row.share)} of the entries have {number_text(row.bleu)} BLEU, "
            f"{_total(row)} to the table as it is; {good} ({_gain(row)}, at worst {worst})."
        )
    return found


def _gain(row: Any) -> str:
    return number_text(row.gain, sign=True)


def _total(row: Any) -> str:
    low, high = (number_text(value, sign=True) for value in (row.total_low, row.total_high))
    return f"{number_text(row.total, sign=True)} ({low} to {high}, {p_phrase(row.total_p)})"


def draw_ladder(ladder: pd.DataFrame, name: str) -> str:
    """What each step has gained over the table as it is, with 95 % intervals; pruned tables are hollow.

    Args:
        ladder: the frame.
        name: unique on the page.
    """
    rows = ladder[ladder["text"] == main_text(ladder)]
    rows, marks = rows[rows["total"].notna()], Marks()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.9, 0.75 + 0.34 * len(rows)))
        margins = {"left": 0.24, "right": 0.97, "top": 0.97, "bottom": 0.45 / (0.75 + 0.34 * len(rows))}
        axes = figure.subplots(gridspec_kw=margins)
        axes.axvline(0, color=STYLE["text.color"], lw=0.8)
        for place, row in enumerate(rows.itertuples()):
            axes.plot([row.total_low, row.total_high], [place, place], color=KEPT[0], lw=2, solid_capstyle="round")
            filled = KEPT[0] if row.share == 1 else STYLE["figure.facecolor"]
            (point,) = axes.plot([row.total], [place], "o", ms=6, color=KEPT[0], mfc=filled)
            title = f"{row.step}: {_total(row)}; {int(row.entries):,} entries"
            point.set_gid(marks.point("", "point", printable(title)))
        axes.set_yticks(range(len(rows)), [marks.text(printable(step)) for step in rows["step"]])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel(marks.text(f"BLEU gained on {printable(main_text(ladder))}"))
        return inline(figure, name, "BLEU gained by each step of the ladder", marks)
