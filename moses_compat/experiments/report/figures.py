"""Figures of a report.

BLEU by size, one curve per method, with confidence bands; similarities of kept and removed entries; a map of phrases by
their vectors; and, for mined sentence pairs, precision, recall and F1 by threshold.
"""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from moses_compat.experiments.settings import ALL, DEV, FULL, RANDOM
from moses_compat.pages.drawing import (
    GREY,
    INK,
    KEPT,
    MUTED,
    PALETTE,
    PAPER,
    REMOVED,
    SOURCE,
    STYLE,
    TARGET,
    Marks,
    inline,
    number_text,
    p_phrase,
    percent_text,
    printable,
    rewrite,
    stacked_histogram,
)
from phrasetool.bitext.mining_quality import MiningQuality
from phrasetool.smt.evaluation.metrics import is_significant
from phrasetool.text_splitting import split_words

# A pruned table is as good as the full one only if its 95 % interval shows that it loses less BLEU than this: a test of
# non-inferiority, because with few sentences, "not significantly worse" alone is weak evidence.
MARGIN = 0.3
_WIDE = {"left": 0.048, "right": 0.992, "bottom": 0.105, "top": 0.93, "wspace": 0.1}
_NARROW = {"left": 0.112, "right": 0.99, "bottom": 0.06, "top": 0.965, "hspace": 0.24}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_MARGINS = {"left": 0.09, "right": 0.985, "bottom": 0.12, "top": 0.88, "wspace": 0.04}


def as_good(worst: Any) -> Any:
    """Whether the lowest plausible difference from the full table is within the margin, for a number or a column."""
    return worst > -MARGIN


@dataclass(frozen=True)
class Curve:
    """The style of a method in every figure and legend.

    Attributes:
        number: index of the curve.
        label: the method, with the combination or threshold if several curves have this method.
        method: name of the method in the frames.
        semantic: whether one of its criteria is semantic.
        colour: its light and dark colour.
        variable: the CSS variable of that colour in the page.
        marker: Matplotlib's letter of the marker.
        dash: Matplotlib's line style: semantic methods are solid, others dashed, random dotted.
    """

    number: int
    label: str
    method: str
    semantic: bool
    colour: tuple[str, str]
    variable: str
    marker: str
    dash: str


def curves_of(pruning: pd.DataFrame) -> tuple[pd.Series, list[Curve]]:
    """Assign the rows of a frame to curves.

    A method is one curve; its combinations of criteria other than the product, and its thresholds, are separate curves.

    Returns:
        The label of each row's curve (`full` for the full table), and the curves in order of first appearance.
    """

    def label(row: Any) -> str:
        if row.method == FULL:
            return FULL
        combine = str(row.combine)
        parts = [] if combine in ("", "product", "nan", "None") or f"({combine})" in row.method else [combine]
        parts += ["threshold"] if row.rule == "threshold" else []
        return printable(row.method) + (f" ({', '.join(parts)})" if parts else "")

    labels = pd.Series([label(row) for row in pruning.itertuples()], index=pruning.index, dtype=object)
    curves: list[Curve] = []
    coloured = 0
    for name in dict.fromkeys(labels):
        if name == FULL:
            continue
        first = pruning[labels == name].iloc[0]
        control = first["method"] == RANDOM
        colour = GREY if control else PALETTE[coloured % len(PALETTE)]
        variable = "var(--grey)" if control else f"var(--c{coloured % len(PALETTE)})"
        dash = ":" if control else "-" if first["semantic"] else "--"
        marker = _MARKERS[len(curves) % len(_MARKERS)]
        semantic = bool(first["semantic"])
        curves.append(Curve(len(curves), name, str(first["method"]), semantic, colour, variable, marker, dash))
        coloured += not control
    return labels, curves


def curve_points(pruning: pd.DataFrame, protect: str, text: str) -> dict[int, pd.DataFrame]:
    """Return the points of each curve, one per size: means over seeds, with the number of seeds in `seeds`.

    Returns:
        For each curve with points, by its number: rule, wanted, keep_top, share, entries, bleu, low, high, difference,
        p (NaN for a mean of several), worst, best, seeds; sorted by share.
    """
    labels, curves = curves_of(pruning)
    selected = (pruning["protect"] == protect) & (pruning["text"] == text) & (pruning["method"] != FULL)
    rows = pruning[selected].dropna(subset=["share", "bleu"]).assign(curve=labels)
    groups = rows.groupby(["curve", "rule", "wanted", "keep_top"], sort=False)
    means = groups[["share", "entries", "bleu", "low", "high", "difference", "p", "worst", "best"]].mean()
    means["seeds"] = groups.size()
    means.loc[means["seeds"] > 1, "p"] = math.nan
    means = means.reset_index().sort_values("share", kind="stable")
    by_curve = {label: group.reset_index(drop=True) for label, group in means.groupby("curve", sort=False)}
    return {curve.number: by_curve[curve.label] for curve in curves if curve.label in by_curve}


def draw_curves(pruning: pd.DataFrame, protect: str, text: str, name: str, narrow: bool = False) -> str:
    """Draw BLEU on one test set by size, one curve per method, in two panels: near the full table, and all sizes.

    Args:
        pruning: frame of all pruned tables.
        protect: the protection to draw.
        text: the test set.
        name: name of the figure, unique on the page.
        narrow: whether to draw for a narrow screen.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.2, 6.6) if narrow else (9.6, 4.6))
        _draw_panels(figure, pruning, protect, text, marks, narrow)
        return inline(figure, name, f"size against BLEU on {text}, --protect {protect}", marks)


def draw_curve_file(pruning: pd.DataFrame) -> bytes:
    """Draw the curves of all test sets together as an SVG file, one row of panels per protection, with a legend."""
    marks = Marks()
    protects = drawn_protections(pruning)
    text = main_text(pruning)
    _, curves = curves_of(pruning)
    with mpl.rc_context(STYLE):
        columns = min(3, max(1, len(curves)))
        legend = 0.3 * math.ceil((len(curves) + 1) / columns)
        height = 4.4 * len(protects)
        figure = Figure(figsize=(9.6, height + legend))
        parts: Any = figure.subfigures(len(protects) + 1, 1, height_ratios=[4.4] * len(protects) + [legend])
        for part, protect in zip(parts, protects, strict=False):
            part.set_facecolor(PAPER)
            _draw_panels(part, pruning, protect, text, marks, False, f"--protect {protect}: ")
        parts[-1].set_facecolor(PAPER)
        handles = [
            Line2D([], [], color=c.colour[0], ls=c.dash, marker=c.marker, ms=5, label=marks.text(c.label))
            for c in curves
        ]
        handles.append(Line2D([], [], color=INK, lw=1.2, label="full table"))
        # Matplotlib computes the width of a column from a short placeholder; the spacing makes room for the label.
        widest = max([len(curve.label) for curve in curves] + [10])
        parts[-1].legend(handles=handles, loc="center", ncols=columns, handlelength=3, columnspacing=0.62 * widest)
        root = rewrite(figure, "curves", f"size against BLEU on {text}", marks)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    root.set("xmlns:xlink", "http://www.w3.org/1999/xlink")
    for element in root.iter("use"):
        element.set("xlink:href", element.attrib.pop("href"))
    return ElementTree.tostring(root, encoding="unicode").encode("utf-8") + b"\n"


def protections(pruning: pd.DataFrame) -> list[str]:
    """Return the protections of the pruned tables, in order of appearance."""
    return list(dict.fromkeys(pruning.loc[pruning["method"] != FULL, "protect"]))


def drawn_protections(pruning: pd.DataFrame) -> list[str]:
    """Return the protections with a curve of more than one point, or all protections if none has such a curve."""
    every = protections(pruning)
    text = main_text(pruning)
    return [p for p in every if any(len(rows) > 1 for rows in curve_points(pruning, p, text).values())] or every


def main_text(pruning: pd.DataFrame) -> str:
    """Return `ALL` if the frame has it, otherwise the first test set."""
    texts = list(dict.fromkeys(pruning["text"]))
    return ALL if ALL in texts else next((text for text in texts if text != DEV), texts[0])


def _draw_panels(
    figure: Any, pruning: pd.DataFrame, protect: str, text: str, marks: Marks, narrow: bool, before: str = ""
) -> None:
    _, curves = curves_of(pruning)
    points = curve_points(pruning, protect, text)
    full = pruning[(pruning["text"] == text) & (pruning["method"] == FULL)].dropna(subset=["bleu"]).head(1)
    scores = [score for rows in points.values() for score in rows["bleu"]] + list(full["bleu"])
    bottom, top = (min(scores), max(scores)) if scores else (0.0, 1.0)
    best = float(full["bleu"].iloc[0]) if len(full) else top
    shares = sorted({share for rows in points.values() for share in rows["share"]} | {1.0})
    near, margin = best - 2.2, 0.04 * max(top - bottom, 0.5)
    limits = [(bottom - margin, top + margin)]
    titles = [f"{before}BLEU on {marks.text(text)}"]
    if len(full):
        titles[0] += f"; full table {number_text(best)}; green: less than {MARGIN:g} below"
    if bottom < near:
        limits.insert(0, (near, top + max(0.25, 0.12 * (top - near))))
        titles.append("all of it")
    grid = (len(limits), 1) if narrow else (1, len(limits))
    ratios: dict[str, Any] = {"height_ratios" if narrow else "width_ratios": (3, 2)} if len(limits) > 1 else {}
    panels = figure.subplots(*grid, squeeze=False, gridspec_kw=(_NARROW if narrow else _WIDE) | ratios).ravel()
    # The intervals of systems overlap, and together they must not hide the curves.
    shade = min(0.07, 0.3 / max(len(points), 1))
    for axes, limit, title in zip(panels, limits, titles, strict=True):
        _draw_full(axes, full, marks, axes is panels[0])
        for curve in curves:
            if curve.number in points:
                _draw_curve(axes, curve, points[curve.number], full, marks, limit, shade)
        _size_axis(axes, shares, 0.07 if axes is panels[0] else 0.12)
        axes.set_ylim(*limit)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.set_title(title)


def _draw_full(axes: Axes, full: pd.DataFrame, marks: Marks, near: bool) -> None:
    for row in full.itertuples():
        best, low, high = float(row.bleu), float(row.low), float(row.high)
        if not math.isnan(low + high):
            axes.axhspan(low, high, color=MUTED, alpha=0.09, lw=0)
        title = f"full table: BLEU {number_text(best)} ({number_text(low)} to {number_text(high)})"
        axes.axhline(best, color=INK, lw=1.2, gid=marks.point("", "full", title))
        if near:
            axes.axhspan(best - MARGIN, best, color=PALETTE[2][0], alpha=0.28, lw=0)


def _draw_curve(
    axes: Axes,
    curve: Curve,
    rows: pd.DataFrame,
    full: pd.DataFrame,
    marks: Marks,
    limit: tuple[float, float],
    shade: float,
) -> None:
    colour, prefix = curve.colour[0], f"@{curve.number}@"
    x, y = list(rows["share"]), list(rows["bleu"])
    band = rows.dropna(subset=["low", "high"])
    if len(band) > 1:
        axes.fill_between(
            band["share"], band["low"], band["high"], color=colour, alpha=shade, lw=0, gid=f"{prefix}band@"
        )
    elif len(band):
        axes.vlines(band["share"], band["low"], band["high"], color=colour, lw=1, alpha=0.4, gid=f"{prefix}stem@")
    axes.plot(x, y, color=colour, ls=curve.dash, lw=1.6, gid=f"{prefix}line@")
    if len(full) and rows["rule"].iloc[-1] == "size" and x[-1] < 1:
        # If all entries are kept, the table of every method is the full table.
        axes.plot([x[-1], 1.0], [y[-1], float(full["bleu"].iloc[0])], color=colour, lw=0.7, gid=f"{prefix}line@")
    for row in rows.itertuples():
        if limit[0] <= row.bleu <= limit[1]:
            hollow = row.difference < 0 and is_significant(row.p, row.worst, row.best)
            title = f"{curve.label}: {_point_title(row)}"
            axes.plot(
                [row.share], [row.bleu], color=colour, marker=curve.marker, ms=5.5, mew=1.3, ls="",
                mfc=PAPER if hollow else colour, gid=marks.point(curve.number, "point", title), clip_on=False,
            )  # fmt: skip


def _point_title(row: Any) -> str:
    rule = f"threshold {row.wanted:g}, " if row.rule == "threshold" else ""
    parts = [f"{rule}{percent_text(row.share)} ({round(row.entries):,} entries): BLEU {number_text(row.bleu)}"]
    if not math.isnan(row.low + row.high):
        parts[0] += f" ({number_text(row.low)} to {number_text(row.high)})"
    if not math.isnan(row.difference):
        parts.append(f"{number_text(row.difference, sign=True)} to the full table")
    if not math.isnan(row.p):
        parts.append(p_phrase(row.p))
    if row.seeds > 1:
        parts.append(f"mean of {row.seeds} seeds")
    return ", ".join(parts)


def _size_axis(axes: Axes, shares: Sequence[float], apart: float) -> None:
    """Set a logarithmic axis with ticks at the tried sizes whose labels fit."""
    axes.set_xscale("log")
    # The axis begins at 3 %, or just below the smallest size where 3 % would not show it or would waste space.
    lowest = min(0.03, 0.85 * shares[0]) if shares[0] <= 0.1 else 0.8 * shares[0]
    ticks: list[float] = []
    for share in sorted({lowest, *shares} if lowest == 0.03 else shares, reverse=True):
        if not ticks or math.log10(ticks[-1] / share) >= apart:
            ticks.append(share)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{100 * tick:.3g}" for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(lowest, 1.06)
    axes.set_xlabel("entries kept, % (logarithmic)")


def draw_histogram(rows: pd.DataFrame, name: str) -> str:
    """Draw histograms of the similarities of entries that one system keeps and removes, one per direction.

    Args:
        rows: rows of one system.
        name: name of the figure, unique on the page.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        directions = list(dict.fromkeys(rows["direction"]))
        figure = Figure(figsize=(4.9, 2.1))
        panels = figure.subplots(1, len(directions), squeeze=False, sharey=True, gridspec_kw=_MARGINS).ravel()
        for axes, direction in zip(panels, directions, strict=True):
            bins = rows[rows["direction"] == direction].sort_values("low", kind="stable")
            edges = [*bins["low"], *bins["high"].iloc[-1:]]
            counts = {"kept": (KEPT[0], [*bins["kept"]]), "removed": (REMOVED[0], [*bins["removed"]])}
            stacked_histogram(axes, edges, counts, marks)
            axes.set_title(marks.text(str(direction).replace("-", " ")))
        return inline(figure, name, "similarities of entries kept and removed", marks)


def draw_map(phrases: pd.DataFrame, name: str, narrow: bool = False) -> str:
    """Draw a map of phrases: source phrases as dots, target phrases as diamonds, with names of the most frequent ones.

    Args:
        phrases: the frame of the map.
        name: name of the figure, unique on the page.
        narrow: whether to draw for a narrow screen.
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
                marks.text(text), (x, y), xycoords="figure pixels", fontsize=8, ha=anchor, gid="@@halo@"
            )  # fmt: skip
        return inline(figure, name, "a map of phrases", marks)


def _labels(axes: Axes, phrases: pd.DataFrame, most: int) -> Iterable[tuple[float, float, str, str]]:
    """Yield positions (in points) of names that overlap neither each other nor the edge, frequent phrases first."""
    width, height = axes.figure.bbox.size
    positions = axes.transData.transform(phrases[["x", "y"]].to_numpy(float).reshape(-1, 2))
    boxes: list[tuple[float, float, float, float]] = []
    named: set[str] = set()
    tall = 9.5
    for (x, y), phrase in zip(positions, phrases["phrase"], strict=True):
        text = printable(phrase)
        if len(boxes) >= most or len(text) > 24 or not split_words(text) or text in named:
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
            if inside and not any(_overlap(box, other) for other in boxes):
                boxes.append(box)
                named.add(text)
                at = {"left": left, "right": left + wide, "center": left + wide / 2}[anchor]
                yield at, below + 0.22 * tall, text, anchor
                break


def text_width(text: str) -> float:
    """Estimate the width of a text in ems of a sans-serif font: 1.02 for a CJK character, 0.56 for a letter."""
    wide = {"W": 1.02, "F": 1.02, "A": 0.8}
    return sum(wide.get(unicodedata.east_asian_width(character), 0.56) for character in text)


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def mining_figure(quality: MiningQuality, form: str) -> bytes:
    """Draw precision, recall and F1 by threshold.

    Args:
        quality: curve with at least one point.
        form: svg, png or pdf.
    """
    with mpl.rc_context(STYLE):
        figure = Figure((6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        thresholds = [point.threshold for point in quality.curve]
        for number, name in enumerate(("precision", "recall", "f1")):
            values = [100 * getattr(point, name) for point in quality.curve]
            axes.plot(thresholds, values, color=PALETTE[number][0], label="F1" if name == "f1" else name)
        if quality.best is not None:
            axes.axvline(quality.best.threshold, color=PALETTE[3][0], linestyle=":", linewidth=1)
        axes.set(xlabel="threshold", ylabel="%", ylim=(0, 102))
        axes.legend(loc="best")
        drawn = io.BytesIO()
        # Outputs contain no date, so that they are reproducible.
        figure.savefig(drawn, format=form, metadata={"Date": None} if form == "svg" else None)
    return drawn.getvalue()
