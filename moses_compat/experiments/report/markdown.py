"""A report as Markdown: the same tables, with the figure in a file beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moses_compat.experiments.report.drawing import printable
from moses_compat.experiments.report.frame_tables import Cell, Table

# Whatever Markdown, GitHub's kind among others, would take for markup in a cell.
_MARKUP = re.compile(r"([\\`*_\[\]~$|])")


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    # A sign that would begin a heading or a list.
    return re.sub(r"^([#+-]|\d+[.)])", lambda sign: f"{sign[0][:-1]}\\{sign[0][-1]}", _escaped(text))


def _escaped(text: str) -> str:
    text = " ".join(printable(text).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", text)


def markdown_table(table: Table) -> str:
    """A table as Markdown, numbers to the right."""
    lines = [_line(_escaped(column.title) for column in table.columns)]
    lines.append(_line("---:" if column.numeric else "---" for column in table.columns))
    lines += [_line(_cell(cell) for cell in row.cells) for row in table.rows]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: Cell) -> str:
    lines = [_escaped(line) for line in cell.text.split("\n")]
    for number, aside in enumerate(cell.asides):
        lines[number] += f" {aside}"
    text = "<br>".join(lines)
    if text and "best" in cell.tones:
        text = f"**{text}**"
    return f"{text} {cell.mark}".strip()


def markdown_section(title: str, paragraphs: Sequence[str], tables: Iterable[Table]) -> str:
    """A section: sentences as they are, then tables, each with its title where it is another than the section's."""
    parts = [f"## {escape_markdown(title)}\n", *(f"{paragraph}\n" for paragraph in paragraphs)]
    for table in tables:
        if table.title != title:
            parts.append(f"### {escape_markdown(table.title)}\n")
        parts.append(markdown_table(table))
        parts += [f"{note}\n" for note in table.notes]
    return "\n".join(parts)


def code_block(lines: Iterable[str]) -> str:
    """Lines as code, fenced so that none of them ends it."""
    text = "\n".join(printable(line) for line in lines)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}\n"
