"""Cells and tables of HTML reports, and the template of a page, which is a single self-contained file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from moses_compat.pages.drawing import GREY, PALETTE, number_text, percent_text, printable

_SHARED = ("base.html.j2", "tables.html.j2")


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: its text; lines are separated by line feeds.
        key: its sort key: a number, a text, or None.
        mark: mark of a significant difference.
        tones: style classes of the cell: `best`, `within`, `code`, `phrase`.
        asides: less prominent texts, one after each line.
    """

    text: str
    key: float | str | None = None
    mark: str = ""
    tones: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column: its title, its meaning, and whether it contains numbers."""

    title: str
    meaning: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Row:
    """A row, and the number of the curve that it belongs to, or None."""

    cells: tuple[Cell, ...]
    series: int | None = None


@dataclass(frozen=True)
class Table:
    """A table: its unique name, title, columns, rows, and the sentences below it."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def code(text: object) -> str:
    """Format a name as code in a sentence, without backticks and repeated spaces."""
    return f"`{' '.join(printable(text).replace('`', '').split())}`"


def text_cell(value: object, *tones: str) -> Cell:
    """Return a cell with a text, which is also its sort key."""
    shown = printable(value)
    return Cell(shown, shown.lower(), tones=tones)


def number_cell(value: float, places: int = 2, sign: bool = False, mark: str = "", tones: tuple[str, ...] = ()) -> Cell:
    """Return a cell with a number, which is also its sort key; the cell of NaN is empty."""
    value = float(value)
    return Cell(number_text(value, places, sign), None if math.isnan(value) else value, mark, tones)


def share_cell(value: float) -> Cell:
    """Return a cell with a share in per cent, which is also its sort key; the cell of NaN is empty."""
    return Cell(percent_text(value), None if math.isnan(value) else float(value))


def page_template(package: str, name: str) -> Template:
    """Return the template of a page.

    Args:
        package: package that contains the template.
        name: file of the template; it may extend `base.html.j2` and import from `tables.html.j2`.
    """

    def text_of(file: str) -> str:
        folder = "moses_compat.pages" if file in _SHARED else package
        return (files(folder) / file).read_text("utf-8")

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(text_of)
    )
    environment.filters.update(prose=prose, breakable=breakable, printable=printable, number=number_text)
    environment.globals.update(palette=PALETTE, grey=GREY)
    return environment.get_template(name)


def prose(sentence: str) -> Markup:
    """Return a sentence of a report as HTML: escaped, with names in backticks as code, double asterisks as strong."""
    parts = re.split(r"`([^`]*)`", str(escape(sentence)))
    parts[0::2] = [re.sub(r"\*\*(.*?)\*\*", r"<strong>\1</strong>", part) for part in parts[0::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return Markup("".join(parts))


def breakable(text: str) -> Markup:
    """Return the escaped text of a cell with a possible line break after each `+`."""
    return Markup(str(escape(text)).replace("+", "+<wbr>"))


def as_markup(drawing: str) -> Markup:
    """Mark a drawing as markup, which templates do not escape."""
    return Markup(drawing)
