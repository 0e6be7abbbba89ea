"""Charts of pages: counts by category, histograms and curves, in the style of `drawing`.

Series differ in colour and in a second way that needs no colour vision: their place, their dashes or their markers.
Every mark has a title with its exact numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from moses_compat.pages.drawing import PALETTE, PAPER, STYLE, Marks, inline, number_text, percent_text

_SIZE = (4.9, 2.4)
_MARGINS = {"left": 0.115, "right": 0.985, "bottom": 0.19, "top": 0.97}
_DASHES = ("-", "--", ":")
_MARKERS = ("o", "s", "^")


@dataclass(frozen=True)
class Series:
    """Numbers with a name.

    Attributes:
        name: name in the legend.
        values: a number for each category, bin or point.
    """

    name: str
    values: Sequence[float]


def short_number(value: float) -> str:
    """A number of an axis: `12k` for 12,000."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def stacked_histogram(
    axes: Axes, edges: Sequence[float], counts: Mapping[str, tuple[str, Sequence[int]]], marks: Marks
) -> None:
    """Draw stacked counts of bins.

    Args:
        axes: the panel.
        edges: B + 1 edges of the bins, ascending.
        counts: name -> colour and the counts of the B bins, from the bottom up.
        marks: titles of the bars.
    """
    lows, widths = list(edges[:-1]), [high - low for low, high in pairwise(edges)]
    below = [0] * len(lows)
    bars = []
    for colour, values in counts.values():
        bars.append(axes.bar(lows, values, bottom=below, color=colour, width=widths, align="edge", lw=0))
        below = [one + int(more) for one, more in zip(below, values, strict=True)]
    for place, (low, width) in enumerate(zip(lows, widths, strict=True)):
        parts = ", ".join(f"{values[place]:,} {name}" for name, (_, values) in counts.items())
        title = f"{number_text(low)} to {number_text(low + width)}: {parts}"
        for drawn in bars:
            drawn[place].set_gid(marks.point("", "bar", title))
    _count_axis(axes)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.grid(False, axis="x")


def _count_axis(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(lambda value, _: short_number(value))


def draw_histogram(name: str, label: str, edges: Sequence[float], series: Sequence[Series], x_label: str) -> str:
    """Draw counts of bins, stacked.

    Args:
        name: unique on the page.
        label: what the figure shows, for screen readers.
        edges: B + 1 edges of the bins, ascending.
        series: counts of the B bins, from the bottom up.
        x_label: what the bins are of.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        counts = {
            one.name: (PALETTE[number][0], [int(value) for value in one.values]) for number, one in enumerate(series)
        }
        stacked_histogram(axes, edges, counts, marks)
        axes.set_xlabel(marks.text(x_label))
        return inline(figure, name, label, marks)


def draw_bars(
    name: str, label: str, categories: Sequence[str], series: Sequence[Series], x_label: str, logarithmic: bool = False
) -> str:
    """Draw numbers of categories: a bar for each, those of several series next to each other.

    Args:
        name: unique on the page.
        label: what the figure shows, for screen readers.
        categories: K names.
        series: K numbers each.
        x_label: what the categories are of.
        logarithmic: whether the axis of the numbers is logarithmic; bars of 0 are left out there.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        width = 0.8 / max(len(series), 1)
        for number, one in enumerate(series):
            places = [place - 0.4 + width * number for place in range(len(categories))]
            drawn = axes.bar(places, one.values, width=width, align="edge", color=PALETTE[number][0], lw=0)
            for bar, category, value in zip(drawn, categories, one.values, strict=True):
                bar.set_gid(marks.point("", "bar", f"{category}: {number_text(value, 0)} {one.name}"))
        axes.set_xticks(range(len(categories)), [marks.text(category) for category in categories])
        axes.set_xlabel(marks.text(x_label))
        largest = max((value for one in series for value in one.values), default=0)
        if logarithmic and largest > 0:
            axes.set_yscale("log")
            axes.set_ylim(0.7, 1.5 * largest)
            # Every power of ten where there are few of them.
            step = math.ceil(math.log10(max(largest, 10)) / 4)
            ticks = [10.0**power for power in range(0, int(math.log10(largest)) + 1, step)]
            axes.set_yticks(ticks, [short_number(tick) for tick in ticks])
            axes.yaxis.set_minor_locator(NullLocator())
        else:
            _count_axis(axes)
        axes.grid(False, axis="x")
        return inline(figure, name, label, marks)


def draw_outlines(name: str, label: str, edges: Sequence[float], series: Sequence[Series], x_label: str) -> str:
    """Draw distributions as outlines over each other: shares of bins, in per cent.

    Args:
        name: unique on the page.
        label: what the figure shows, for screen readers.
        edges: B + 1 edges of the bins, ascending.
        series: counts of the B bins; each is drawn as shares of its sum.
        x_label: what the bins are of.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        for number, one in enumerate(series):
            total = sum(one.values) or 1
            shares = [100 * value / total for value in one.values]
            colour = PALETTE[number][0]
            title = marks.point(number, "line", f"{one.name}: {int(sum(one.values)):,}")
            axes.stairs(shares, edges, color=colour, ls=_DASHES[number % 3], lw=1.6, gid=title)
            axes.stairs(shares, edges, color=colour, alpha=0.12, fill=True, lw=0)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.set_xlabel(marks.text(f"{x_label}; share in %"))
        axes.grid(False, axis="x")
        return inline(figure, name, label, marks)


def draw_shares(name: str, label: str, x: Sequence[float], series: Sequence[Series], x_label: str) -> str:
    """Draw shares as curves over a number.

    Args:
        name: unique on the page.
        label: what the figure shows, for screen readers.
        x: P numbers, ascending.
        series: P shares each, from 0 to 1.
        x_label: what the numbers are.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        for number, one in enumerate(series):
            colour, percents = PALETTE[number][0], [100 * value for value in one.values]
            axes.plot(x, percents, color=colour, ls=_DASHES[number % 3], lw=1.6)
            for place, share in zip(x, one.values, strict=True):
                title = f"{number_text(place)}: {percent_text(share)} {one.name}"
                axes.plot(
                    [place], [100 * share], color=colour, marker=_MARKERS[number % 3], ms=5.5, ls="", mec=PAPER,
                    mew=0.6, gid=marks.point(number, "point", title), clip_on=False,
                )  # fmt: skip
        axes.set_xticks(list(x), [f"{place:g}" for place in x])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel(marks.text(f"{x_label}; share in %"))
        return inline(figure, name, label, marks)


def _panel() -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE)
    return figure, figure.subplots(gridspec_kw=_MARGINS)
