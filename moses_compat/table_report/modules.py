"""Modules of a report about a table, each with facts, figures, tables, and a verdict with advice.

A verdict is `good`, `check` (to be looked at) or `problem`.  The limits are rules of thumb for tables of Moses'
training, and no verdict changes the exit code of a command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moses_compat.jobs.show import ShownEntry, score_names
from moses_compat.pages.drawing import number_text, percent_text, printable
from moses_compat.pages.html import Cell, Column, Row, Table, number_cell, text_cell
from moses_compat.table_report.measuring import MeasuredReport
from moses_compat.table_report.texts import KnownWords
from moses_compat.tables.phrase_index import TableLine

GOOD, CHECK, PROBLEM, NOT_MEASURED = "good", "check", "problem", "not measured"
# Number of entries in a table of examples, and in the sample.
SHOWN_ENTRIES, SAMPLE = 30, 2000
# Name of the table that has a search field on the page.
SAMPLE_TABLE = "sample-entries"
# Lengths with a separate bar, and bins of similarities in [-1, 1].
LENGTHS, SIMILARITY_BINS = 7, 40
_LONGEST_SHOWN = 100
_SHOWN_SCORES = 6


@dataclass(frozen=True)
class Fact:
    """A fact of a module.

    Attributes:
        name: description of the fact.
        value: its value for programs.
        text: its text for readers.
    """

    name: str
    value: Any
    text: str

    @classmethod
    def count(cls, name: str, value: float) -> Fact:
        """Return a fact with an integer."""
        return cls(name, int(value), number_text(int(value), 0))

    @classmethod
    def number(cls, name: str, value: float, places: int = 2) -> Fact:
        """Return a fact with a number; NaN becomes None."""
        return cls(name, None if math.isnan(value) else round(float(value), 6), number_text(value, places) or "–")

    @classmethod
    def share(cls, name: str, part: float, whole: float) -> Fact:
        """Return a fact with the share of a part in a whole; None if the whole is 0."""
        value = part / whole if whole else math.nan
        return cls(name, None if math.isnan(value) else round(value, 6), percent_text(value) or "–")


@dataclass(frozen=True)
class Drawing:
    """A figure.

    Attributes:
        caption: its caption.
        draw: returns the figure as SVG, given a name that is unique on the page.
        legend: names of its series, in the order of the colours; empty for a single series.
    """

    caption: str
    draw: Callable[[str], str]
    legend: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """A module of a report.

    Attributes:
        name: identifier on the page and in JSON.
        title: its heading.
        verdict: `good`, `check`, `problem` or `not measured`.
        advice: a sentence with the finding and the next step.
        facts, drawings, tables: its contents.
        facts_shown: whether the page lists the facts; if not, a table has them.
        explanation: meaning of its numbers.
    """

    name: str
    title: str
    verdict: str
    advice: str
    facts: tuple[Fact, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
    explanation: str = ""
    facts_shown: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the module's values for `--json`, without tables and figures."""
        facts = {fact.name: fact.value for fact in self.facts}
        return {"title": self.title, "verdict": self.verdict, "advice": self.advice, "facts": facts}


def verdict_above(value: float, limits: tuple[float, float]) -> str:
    """Return `good` up to the first limit, `check` up to the second, `problem` above."""
    return GOOD if value <= limits[0] else CHECK if value <= limits[1] else PROBLEM


def share_of(part: float, whole: float) -> float:
    """Return the share of a part in a whole; 0 if the whole is 0."""
    return part / whole if whole else 0.0


def missing_module(name: str, title: str, needs: str) -> Module:
    """Return a module whose input is missing."""
    return Module(name, title, NOT_MEASURED, f"not measured: needs {needs}")


def known_fact(name: str, known: KnownWords) -> Fact:
    """Return a fact with the share of running words that are known."""
    return Fact.share(name, known.known, known.words)


@dataclass
class ShownLines:
    """Lines of the entries that modules show, which are read after the measurement.

    Attributes:
        lines: number of the line from 0 -> the line.
    """

    lines: dict[int, TableLine] = field(default_factory=dict)

    def table(self, measured: MeasuredReport, name: str, title: str, rows: Sequence[int]) -> Table:
        """Return a table of entries.

        Args:
            measured: measurements of the entries.
            name: name of the table, unique on the page.
            title: title of the table.
            rows: numbers of the lines, from 0.
        """
        entries = measured.entries
        scores = min(max(measured.summary.scores, 0), _SHOWN_SCORES)
        counted, similar = bool((~np.isnan(entries.joint)).any()), bool(len(entries.similarity))
        columns = [
            Column("line", "number of the line in the table"), Column("source", "", False),
            Column("target", "", False), *map(Column, score_names(max(measured.summary.scores, 0))[:scores]),
            *([Column("count", "joint count")] * counted),
            *([Column("similarity", "the better one of both directions, as pruning compares it")] * similar),
        ]  # fmt: skip
        table_rows = []
        for row in rows:
            entry = ShownEntry.of(self.lines[row])
            cells = [number_cell(row + 1, 0), phrase_cell(entry.source), phrase_cell(entry.target)]
            cells += [_score_cell(text) for text in entry.scores[:scores]]
            cells += [Cell("")] * (scores - len(entry.scores[:scores]))
            cells += [_plain_number(float(entries.joint[row]))] if counted else []
            cells += [_similarity_cell(float(entries.similarity[row]))] if similar else []
            table_rows.append(Row(tuple(cells)))
        return Table(name, title, tuple(columns), tuple(table_rows))


def phrase_cell(phrase: bytes) -> Cell:
    """Return a cell with a phrase of a table, which is cut if it is very long."""
    text = printable(phrase[: 4 * _LONGEST_SHOWN].decode("utf-8", "replace"))
    return text_cell(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…", "phrase")


def _score_cell(text: str) -> Cell:
    try:
        value = float(text)
    except ValueError:
        return Cell(printable(text[:_LONGEST_SHOWN]))
    return Cell(f"{value:.4g}".replace("-", "−"), value if math.isfinite(value) else None)


def _plain_number(value: float) -> Cell:
    return Cell("") if math.isnan(value) else Cell(f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}", value)


def _similarity_cell(value: float) -> Cell:
    return number_cell(value) if math.isfinite(value) else Cell("no score")
