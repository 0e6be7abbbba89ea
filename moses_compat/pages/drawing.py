"""Figures of reports: one style, readable without colour, and the charts that several reports draw."""

from __future__ import annotations

import io
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

# Colours for light and for dark backgrounds that are distinguishable with any colour vision (Okabe and Ito, 2008).
PALETTE = (
    ("#0072b2", "#4aa8e0"),
    ("#d55e00", "#f0803c"),
    ("#009e73", "#2fc495"),
    ("#cc79a7", "#e09cc2"),
    ("#b58900", "#e6b422"),
    ("#56b4e9", "#8fd0f5"),
    ("#882255", "#d0689a"),
    ("#6e7f1c", "#b5c65a"),
    ("#5b4fc4", "#a39af0"),
)
GREY = ("#7d7f83", "#9a9ca1")
PAPER, INK, MUTED, GRID = "#fefefe", "#1c1d1f", "#616468", "#dcdde0"
KEPT, REMOVED = PALETTE[0], PALETTE[1]
SOURCE, TARGET = PALETTE[0], PALETTE[1]
_COLOURS = {
    **{light: f"var(--c{number})" for number, (light, _) in enumerate(PALETTE)},
    GREY[0]: "var(--grey)",
    PAPER: "var(--paper)",
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "phrasetool",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9.5,
    "axes.edgecolor": GRID,
    "axes.facecolor": PAPER,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": INK,
    "text.parse_math": False,
    "figure.facecolor": PAPER,
    "legend.frameon": False,
}

_SIZE = (4.9, 2.4)
_MARGINS = {"left": 0.115, "right": 0.985, "bottom": 0.19, "top": 0.97}
_DASHES = ("-", "--", ":")
_MARKERS = ("o", "s", "^")


@dataclass
class Marks:
    """Titles and texts that are inserted into a drawing after Matplotlib has rendered it."""

    titles: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def point(self, series: int | str, kind: str, title: str) -> str:
        """Store the title of an element, and return the identifier that the element needs."""
        self.titles.append(title)
        return f"@{series}@{kind}@{len(self.titles) - 1}"

    def text(self, text: str) -> str:
        """Store a text, and return the placeholder that the drawing needs."""
        self.texts.append(text)
        return f"Q{len(self.texts) - 1}Q"


def printable(text: object) -> str:
    """Replace characters that XML, HTML or readers cannot handle: controls, lone surrogates, direction overrides."""

    def shown(character: str) -> str:
        if character in "\t\n\r":
            return " "
        bad = unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"
        bad = bad or unicodedata.bidirectional(character) in _DIRECTIONS
        return "\ufffd" if bad else character

    return "".join(map(shown, str(text)))


_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def number_text(value: float, places: int = 2, sign: bool = False) -> str:
    """Format a number with a Unicode minus sign; NaN becomes an empty text."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:+,.{places}f}" if sign else f"{value:,.{places}f}"
    if not text.strip("+-0.,"):
        text = text.lstrip("+-")
    return text.replace("-", "−")


def percent_text(share: float) -> str:
    """Format a share as per cent, with three significant digits; NaN becomes an empty text."""
    if math.isnan(share):
        return ""
    return f"{100 * share:.3g} %" if share < 0.995 or share == 1 else f"{100 * share:.1f} %"


def p_text(p: float) -> str:
    """Format a p value; NaN becomes an empty text."""
    if math.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_phrase(p: float) -> str:
    """Format a p value as `p = 0.012` or `p < 0.001`."""
    return f"p {p_text(p)}" if p < 0.001 else f"p = {p_text(p)}"


def inline(figure: Figure, name: str, label: str, marks: Marks) -> str:
    """Return a figure as SVG for a page, without background, fixed size and namespaces, with colours as variables."""
    root = rewrite(figure, name, label, marks)
    root.set("class", "drawing")
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    for element in root.iter():
        style = element.get("style")
        if style:
            style = re.sub(r"#[0-9a-f]{6}", lambda match: _COLOURS.get(match[0], match[0]), style)
            element.set("style", re.sub(r"font-family: [^;]*; ?", "", style))
    return ElementTree.tostring(root, encoding="unicode")


def rewrite(figure: Figure, name: str, label: str, marks: Marks) -> ElementTree.Element:
    """Return a figure as an SVG tree without namespaces, with its titles and texts inserted."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(file.getvalue())
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for attribute in [attribute for attribute in element.attrib if "}" in attribute]:
            element.set(attribute.rpartition("}")[2], element.attrib.pop(attribute))
        _rename(element, name)
        gid = element.attrib.get("id", "")
        if gid.startswith("@"):
            del element.attrib["id"]
            _, series, kind, title = gid.split("@")
            element.set("class", kind)
            if series:
                element.set("data-series", series)
            if title:
                child = ElementTree.Element("title")
                child.text = printable(marks.titles[int(title)])
                element.insert(0, child)
        if element.tag == "text" and element.text:
            element.text = re.sub(r"Q(\d+)Q", lambda match: printable(marks.texts[int(match[1])]), element.text)
        element.text, element.tail = (element.text or "").strip("\n ") or None, None
        for attribute in ("d", "x", "y"):
            if attribute in element.attrib:
                element.set(attribute, _shorter(element.attrib[attribute]))
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
    _remove_empty(root)
    root.set("role", "img")
    root.set("aria-label", printable(label))
    return root


def _shorter(numbers: str) -> str:
    """Round numbers to hundredths of a point."""
    rounded = re.sub(r"-?\d+\.\d+", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), numbers)
    return " ".join(rounded.split())


def _remove_empty(parent: ElementTree.Element) -> None:
    for child in list(parent):
        _remove_empty(child)
        if child.tag == "style" or (child.tag in ("g", "defs") and not len(child)):
            parent.remove(child)


def _rename(element: ElementTree.Element, name: str) -> None:
    """Prefix referenced identifiers with the drawing's name, and remove Matplotlib's other identifiers."""
    gid = element.get("id", "")
    if gid and not gid.startswith("@"):
        if element.tag in ("path", "clipPath"):
            element.set("id", f"{name}-{gid}")
        else:
            del element.attrib["id"]
    if element.get("href"):
        element.set("href", f"#{name}-{element.get('href', '')[1:]}")
    if element.get("clip-path"):
        element.set("clip-path", element.get("clip-path", "").replace("url(#", f"url(#{name}-"))


@dataclass(frozen=True)
class Series:
    """A series of numbers in a chart.

    Attributes:
        name: name in the legend.
        values: a number for each category, bin or point.
    """

    name: str
    values: Sequence[float]


def short_number(value: float) -> str:
    """Format a number of an axis: `12k` for 12,000."""
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
        below = [height + int(more) for height, more in zip(below, values, strict=True)]
    for index, (low, width) in enumerate(zip(lows, widths, strict=True)):
        parts = ", ".join(f"{values[index]:,} {name}" for name, (_, values) in counts.items())
        title = f"{number_text(low)} to {number_text(low + width)}: {parts}"
        for group in bars:
            group[index].set_gid(marks.point("", "bar", title))
    _count_axis(axes)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.grid(False, axis="x")


def _count_axis(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(lambda value, _: short_number(value))


def draw_histogram(name: str, label: str, edges: Sequence[float], series: Sequence[Series], x_label: str) -> str:
    """Draw a stacked histogram.

    Args:
        name: name of the figure, unique on the page.
        label: description of the figure for screen readers.
        edges: B + 1 edges of the bins, ascending.
        series: counts of the B bins, from the bottom up.
        x_label: label of the axis of the bins.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        counts = {
            item.name: (PALETTE[number][0], [int(value) for value in item.values]) for number, item in enumerate(series)
        }
        stacked_histogram(axes, edges, counts, marks)
        axes.set_xlabel(marks.text(x_label))
        return inline(figure, name, label, marks)


def draw_bars(
    name: str, label: str, categories: Sequence[str], series: Sequence[Series], x_label: str, logarithmic: bool = False
) -> str:
    """Draw a bar for each category; bars of several series are next to each other.

    Args:
        name: name of the figure, unique on the page.
        label: description of the figure for screen readers.
        categories: K names.
        series: K numbers each.
        x_label: label of the axis of the categories.
        logarithmic: whether the axis of the numbers is logarithmic; such an axis has no bars of 0.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        width = 0.8 / max(len(series), 1)
        for number, item in enumerate(series):
            lefts = [index - 0.4 + width * number for index in range(len(categories))]
            group = axes.bar(lefts, item.values, width=width, align="edge", color=PALETTE[number][0], lw=0)
            for bar, category, value in zip(group, categories, item.values, strict=True):
                bar.set_gid(marks.point("", "bar", f"{category}: {number_text(value, 0)} {item.name}"))
        axes.set_xticks(range(len(categories)), [marks.text(category) for category in categories])
        axes.set_xlabel(marks.text(x_label))
        largest = max((value for item in series for value in item.values), default=0)
        if logarithmic and largest > 0:
            axes.set_yscale("log")
            axes.set_ylim(0.7, 1.5 * largest)
            # At most five powers of ten.
            step = math.ceil(math.log10(max(largest, 10)) / 4)
            ticks = [10.0**power for power in range(0, int(math.log10(largest)) + 1, step)]
            axes.set_yticks(ticks, [short_number(tick) for tick in ticks])
            axes.yaxis.set_minor_locator(NullLocator())
        else:
            _count_axis(axes)
        axes.grid(False, axis="x")
        return inline(figure, name, label, marks)


def draw_outlines(name: str, label: str, edges: Sequence[float], series: Sequence[Series], x_label: str) -> str:
    """Draw overlaid outlines of distributions: shares of bins, in per cent.

    Args:
        name: name of the figure, unique on the page.
        label: description of the figure for screen readers.
        edges: B + 1 edges of the bins, ascending.
        series: counts of the B bins; each series is drawn as shares of its sum.
        x_label: label of the axis of the bins.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        for number, item in enumerate(series):
            total = sum(item.values) or 1
            shares = [100 * value / total for value in item.values]
            colour = PALETTE[number][0]
            title = marks.point(number, "line", f"{item.name}: {int(sum(item.values)):,}")
            axes.stairs(shares, edges, color=colour, ls=_DASHES[number % 3], lw=1.6, gid=title)
            axes.stairs(shares, edges, color=colour, alpha=0.12, fill=True, lw=0)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.set_xlabel(marks.text(f"{x_label}; share in %"))
        axes.grid(False, axis="x")
        return inline(figure, name, label, marks)


def draw_shares(name: str, label: str, x: Sequence[float], series: Sequence[Series], x_label: str) -> str:
    """Draw curves of shares.

    Args:
        name: name of the figure, unique on the page.
        label: description of the figure for screen readers.
        x: P numbers, ascending.
        series: P shares each, from 0 to 1.
        x_label: label of the axis of the numbers.
    """
    marks = Marks()
    with mpl.rc_context(STYLE):
        figure, axes = _panel()
        for number, item in enumerate(series):
            colour, percents = PALETTE[number][0], [100 * value for value in item.values]
            axes.plot(x, percents, color=colour, ls=_DASHES[number % 3], lw=1.6)
            for position, share in zip(x, item.values, strict=True):
                title = f"{number_text(position)}: {percent_text(share)} {item.name}"
                axes.plot(
                    [position], [100 * share], color=colour, marker=_MARKERS[number % 3], ms=5.5, ls="", mec=PAPER,
                    mew=0.6, gid=marks.point(number, "point", title), clip_on=False,
                )  # fmt: skip
        axes.set_xticks(list(x), [f"{position:g}" for position in x])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel(marks.text(f"{x_label}; share in %"))
        return inline(figure, name, label, marks)


def _panel() -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE)
    return figure, figure.subplots(gridspec_kw=_MARGINS)
