"""Tables of a page, free of any markup: cells with what they show, how they sort and what marks them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moses_compat.pages.drawing import number_text, percent_text, printable


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
