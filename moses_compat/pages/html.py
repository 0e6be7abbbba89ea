"""Cells and tables of HTML reports, and the frame of a page, which is complete in one file."""

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
    """A cell.

    Attributes:
        text: what it shows; lines are separated by line ends.
        key: what it sorts by: a number, a text, or nothing.
        mark: of a significant difference.
        tones: `best`, `within`, `code`, `phrase`: how it is set.
        asides: less prominent, one behind each line.
    """

    text: str
    key: float | str | None = None
    mark: str = ""
    tones: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column: its title, what it means in a sentence, and whether it holds numbers."""

    title: str
    meaning: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Row:
    """A row, and the curve that it belongs to, if any."""

    cells: tuple[Cell, ...]
    series: int | None = None


@dataclass(frozen=True)
class Table:
    """A table: unique name, title, columns, rows, sentences below it."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def code(text: object) -> str:
    """A name from outside as code in a sentence; what would end it goes."""
    return f"`{' '.join(printable(text).replace('`', '').split())}`"


def text_cell(value: object, *tones: str) -> Cell:
    """A cell with a text, which sorts by it."""
    shown = printable(value)
    return Cell(shown, shown.lower(), tones=tones)


def number_cell(value: float, places: int = 2, sign: bool = False, mark: str = "", tones: tuple[str, ...] = ()) -> Cell:
    """A cell with a number, which sorts by it; empty for NaN."""
    value = float(value)
    return Cell(number_text(value, places, sign), None if math.isnan(value) else value, mark, tones)


def share_cell(value: float) -> Cell:
    """A cell with a share in per cent, which sorts by it; empty for NaN."""
    return Cell(percent_text(value), None if math.isnan(value) else float(value))


def page_template(package: str, name: str) -> Template:
    """The template of a page.

    Args:
        package: package that holds the template.
        name: its file; it may extend `base.html.j2` and import from `tables.html.j2`.
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
    """A sentence of ours for a page: escaped, names in backticks as code, double asterisks as strong."""
    parts = re.split(r"`([^`]*)`", str(escape(sentence)))
    parts[0::2] = [re.sub(r"\*\*(.*?)\*\*", r"<strong>\1</strong>", part) for part in parts[0::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return Markup("".join(parts))


def breakable(text: str) -> Markup:
    """Text of a cell, escaped, that may be broken after each `+`."""
    return Markup(str(escape(text)).replace("+", "+<wbr>"))


def as_it_is(drawing: str) -> Markup:
    """A drawing for a template, which escapes nothing in it."""
    return Markup(drawing)
