"""What the figures of a report share: colours, text without surprises, and SVG rewritten for the page it goes into.

Matplotlib draws with its own fonts, colours and identifiers.  Afterwards the drawing is rewritten: text stays text,
colours become variables of the page (light and dark), identifiers are unique on it, points get titles that show
their exact numbers, and texts from outside, which may hold any script or sign, are put in where short ASCII stood.
"""

from __future__ import annotations

import io
import math
import re
import unicodedata
from dataclasses import dataclass, field
from xml.etree import ElementTree

from matplotlib.figure import Figure

# Colours that people with any colour vision tell apart, on light paper and on dark (after Okabe and Ito, 2008).
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


@dataclass
class Marks:
    """Titles and texts that are put into a drawing after Matplotlib is done."""

    titles: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def point(self, series: int | str, kind: str, title: str) -> str:
        """The identifier of an element with a title."""
        self.titles.append(title)
        return f"@{series}@{kind}@{len(self.titles) - 1}"

    def text(self, text: str) -> str:
        """What stands for a text until then."""
        self.texts.append(text)
        return f"Q{len(self.texts) - 1}Q"


def printable(text: object) -> str:
    """Text without what XML, HTML or a reader cannot take: controls, lone surrogates, changes of writing direction."""

    def shown(character: str) -> str:
        if character in "\t\n\r":
            return " "
        bad = unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"
        bad = bad or unicodedata.bidirectional(character) in _DIRECTIONS
        return "\ufffd" if bad else character

    return "".join(map(shown, str(text)))


_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def number_text(value: float, places: int = 2, sign: bool = False) -> str:
    """A number with a real minus sign; nothing for NaN."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:+,.{places}f}" if sign else f"{value:,.{places}f}"
    if not text.strip("+-0.,"):
        text = text.lstrip("+-")
    return text.replace("-", "−")


def percent_text(share: float) -> str:
    """A share as per cent, with no more digits than it needs."""
    if math.isnan(share):
        return ""
    return f"{100 * share:.3g} %" if share < 0.995 or share == 1 else f"{100 * share:.1f} %"


def p_text(p: float) -> str:
    """A p value; nothing for NaN."""
    if math.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_phrase(p: float) -> str:
    """`p = 0.012`, or `p < 0.001`."""
    return f"p {p_text(p)}" if p < 0.001 else f"p = {p_text(p)}"


def inline(figure: Figure, name: str, label: str, marks: Marks) -> str:
    """The drawing for a page: no background, sizes of its own or outside names, colours by variables."""
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
    """The drawing as a tree without namespaces, with its titles and texts in place."""
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
    """A hundredth of a point is fine enough."""
    rounded = re.sub(r"-?\d+\.\d+", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), numbers)
    return " ".join(rounded.split())


def _remove_empty(parent: ElementTree.Element) -> None:
    for child in list(parent):
        _remove_empty(child)
        if child.tag == "style" or (child.tag in ("g", "defs") and not len(child)):
            parent.remove(child)


def _rename(element: ElementTree.Element, name: str) -> None:
    """Identifiers that other elements refer to start with the drawing's name; Matplotlib's other ones go."""
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
