"""Figures of phrases: how similar the kept and the removed entries are, and a map of phrases by their vectors."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moses_compat.experiments.report.drawing import (
    KEPT,
    REMOVED,
    SOURCE,
    STYLE,
    TARGET,
    Marks,
    inline,
    number_text,
    printable,
)
from phrasetool.text_splitting import split_words

_MARGINS = {"left": 0.09, "right": 0.985, "bottom": 0.12, "top": 0.88, "wspace": 0.04}


def draw_histogram(rows: pd.DataFrame, name: str) -> str:
    """How similar the entries are that one system keeps and removes, in each direction that is there.

    Args:
        rows: of one system.
        name: unique on the page.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        directions = list(dict.fromkeys(rows["direction"]))
        figure = Figure(figsize=(4.9, 2.1))
        panels = figure.subplots(1, len(directions), squeeze=False, sharey=True, gridspec_kw=_MARGINS).ravel()
        for axes, direction in zip(panels, directions, strict=True):
            bins = rows[rows["direction"] == direction].sort_values("low", kind="stable")
            widths = bins["high"] - bins["low"]
            style = {"width": widths, "align": "edge", "lw": 0}
            kept = axes.bar(bins["low"], bins["kept"], color=KEPT[0], **style)
            removed = axes.bar(bins["low"], bins["removed"], bottom=bins["kept"], color=REMOVED[0], **style)
            for low, high, one, other, below, above in zip(
                bins["low"], bins["high"], bins["kept"], bins["removed"], kept, removed, strict=True
            ):
                title = f"{number_text(low)} to {number_text(high)}: {one:,} kept, {other:,} removed"
                below.set_gid(marks.point("", "bar", title))
                above.set_gid(marks.point("", "bar", title))
            axes.set_title(marks.text(str(direction).replace("-", " ")))
            axes.yaxis.set_major_locator(MaxNLocator(3))
            axes.yaxis.set_major_formatter(lambda value, _: _short(value))
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
            axes.grid(False, axis="x")
        return inline(figure, name, "similarities of entries kept and removed", marks)


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def draw_map(phrases: pd.DataFrame, name: str, narrow: bool = False) -> str:
    """Phrases where their vectors lie: source phrases as dots, target phrases as diamonds, the most frequent named.

    Args:
        phrases: the frame of the map.
        name: unique on the page.
        narrow: for a telephone.
    """
    marks = Marks()
    phrases = phrases.dropna(subset=["x", "y"]).sort_values("frequency", ascending=False, kind="stable")
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(4.3, 4.9) if narrow else (9.6, 6.2), dpi=72)
        axes = figure.add_axes((0.005, 0.005, 0.99, 0.99))
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.margins(0.04, 0.04)
        scale = math.log1p(max(float(phrases["frequency"].max()), 1.0)) if len(phrases) else 1.0
        for row in phrases.itertuples():
            source = row.language == "source"
            size = 2.2 + 3.2 * math.log1p(max(float(row.frequency), 0.0)) / scale
            title = f"{printable(row.phrase)} – {printable(row.translation)} ({row.frequency:,} times)"
            axes.plot(
                [row.x], [row.y], ls="", marker="o" if source else "D", ms=size if source else 0.85 * size, mew=0,
                alpha=0.65, clip_on=False, color=(SOURCE if source else TARGET)[0],
                gid=marks.point("", "source" if source else "target", title),
            )  # fmt: skip
        axes.autoscale_view()
        for x, y, text, anchor in _labels(axes, phrases, 26 if narrow else 60):
            axes.annotate(
                marks.text(text), (x, y), xycoords="figure pixels", fontsize=8, ha=anchor, gid="halo@"
            )  # fmt: skip
        return inline(figure, name, "a map of phrases", marks)


def _labels(axes: Axes, phrases: pd.DataFrame, most: int) -> Iterable[tuple[float, float, str, str]]:
    """Places (points) of names that touch neither one another nor the edge, the most frequent phrases first."""
    width, height = axes.figure.bbox.size
    places = axes.transData.transform(phrases[["x", "y"]].to_numpy(float).reshape(-1, 2))
    taken: list[tuple[float, float, float, float]] = []
    named: set[str] = set()
    tall = 9.5
    for (x, y), phrase in zip(places, phrases["phrase"], strict=True):
        text = printable(phrase)
        if len(taken) >= most or len(text) > 24 or not split_words(text) or text in named:
            continue
        wide = 8 * text_width(text)
        gap = 5.0
        for left, below, anchor in (
            (x + gap, y - tall / 2, "left"),
            (x - gap - wide, y - tall / 2, "right"),
            (x - wide / 2, y + gap, "center"),
            (x - wide / 2, y - gap - tall, "center"),
        ):
            box = (left - 2, below - 1, left + wide + 2, below + tall + 1)
            inside = box[0] > 0 and box[1] > 0 and box[2] < width and box[3] < height
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                named.add(text)
                at = {"left": left, "right": left + wide, "center": left + wide / 2}[anchor]
                yield at, below + 0.22 * tall, text, anchor
                break


def text_width(text: str) -> float:
    """About how wide a text is, in ems of a sans-serif font: full for Chinese and Japanese signs, 0.56 for letters."""
    wide = {"W": 1.02, "F": 1.02, "A": 0.8}
    return sum(wide.get(unicodedata.east_asian_width(character), 0.56) for character in text)


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
