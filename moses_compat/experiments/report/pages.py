"""The report of an experiment: Markdown, and one self-contained HTML page.

In addition to tables and figures, the report contains times, machine, versions, configuration and commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from moses_compat.experiments.report.answers import answers, draw_ladder, ladder_table
from moses_compat.experiments.report.figures import (
    MARGIN,
    curves_of,
    draw_curve_file,
    draw_curves,
    draw_histogram,
    draw_map,
    drawn_protections,
    main_text,
)
from moses_compat.experiments.report.frame_tables import (
    annotation_table,
    contest_table,
    neighbour_tables,
    overview_tables,
    size_tables,
    surprise_tables,
    texts_of,
)
from moses_compat.experiments.settings import DEV, FULL, RANDOM
from moses_compat.pages.drawing import number_text, printable
from moses_compat.pages.html import Cell, Table, page_template
from phrasetool.text_splitting import split_lines, split_words

# Characters that Markdown, including GitHub's, interprets as markup in a cell.
_MARKUP = re.compile(r"([\\`*_\[\]~$|])")
# Shapes of markers in a legend, around (0, 0), and Matplotlib's line styles as dashes.
_SHAPES = {
    "o": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "s": "M-3.5-3.5h7v7h-7z",
    "^": "M0-4.5L4.2 3.5H-4.2z",
    "v": "M0 4.5L4.2-3.5H-4.2z",
    "D": "M0-4.8L4.8 0L0 4.8L-4.8 0z",
    "P": "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "X": "M0-1.8L2.5-4.3L4.3-2.5L1.8 0L4.3 2.5L2.5 4.3L0 1.8L-2.5 4.3L-4.3 2.5L-1.8 0L-4.3-2.5L-2.5-4.3z",
}
_DASHES = {"-": "none", "--": "6 2.5", ":": "1.6 2.6"}
# Number of histograms that are shown; the others are collapsed.
_HISTOGRAMS = 6
# Number of curves that are shown initially, the best at small sizes.
_CURVES_FIRST = 6


@dataclass(frozen=True)
class FactList:
    """Facts of one kind: names and values, or lines that are shown unchanged if `literal`."""

    name: str
    rows: tuple[tuple[str, str], ...]
    literal: bool = False


def fact_lists(facts: Mapping[str, Any]) -> Iterator[FactList]:
    """Yield facts in readable form: times with units, nested values with dotted names, commands and texts unchanged."""
    if facts.get("seconds"):
        yield FactList("time", tuple((name, duration(float(value))) for name, value in _flat(facts["seconds"])))
    for name in ("machine", "versions", "config"):
        value = facts.get(name)
        text = value.get("text") if name == "config" and isinstance(value, Mapping) else None
        if isinstance(text, str):
            yield FactList(name, tuple(("", printable(line)) for line in split_lines(text)), literal=True)
        elif value:
            yield FactList(name, tuple((key or name, _shown(inner)) for key, inner in _flat(value)))
    commands = facts.get("commands")
    if commands:
        yield FactList("commands", tuple((key, _command(value)) for key, value in _flat(commands)), literal=True)


def _flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [pair for key, inner in value.items() for pair in _flat(inner, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list | tuple) and any(isinstance(inner, Mapping | list | tuple) for inner in value):
        return [pair for inner in value for pair in ([(name, inner)] if _is_words(inner) else _flat(inner, name))]
    if name == "" and isinstance(value, list | tuple):
        return [("", inner) for inner in value]
    return [(name, value)]


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable("" if value is None else f"{value:g}" if isinstance(value, float) else value)


def _command(value: Any) -> str:
    return printable(" ".join(value) if _is_words(value) else value)


def duration(seconds: float) -> str:
    """Format seconds in readable units: `7.2 s`, `10 min 10 s`, `1 h 5 min`."""
    if seconds < 60:
        return f"{number_text(seconds, 1)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def pruning_commands(frames: Mapping[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """Return each system with the command that writes its table."""
    if "pruning" not in frames:
        return []
    rows = frames["pruning"].drop_duplicates("system")
    shown = [
        (printable(row.system), printable(row.command)) for row in rows.itertuples() if isinstance(row.command, str)
    ]
    return [(system, command) for system, command in shown if split_words(command)]


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged, in one line."""
    # Characters that would begin a heading or a list.
    return re.sub(r"^([#+-]|\d+[.)])", lambda sign: f"{sign[0][:-1]}\\{sign[0][-1]}", _escaped(text))


def _escaped(text: str) -> str:
    text = " ".join(printable(text).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", text)


def markdown_table(table: Table) -> str:
    """Return a table as Markdown, with numbers right-aligned."""
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
    """Return a section: paragraphs, then tables, each with its title if that differs from the section's."""
    parts = [f"## {escape_markdown(title)}\n", *(f"{paragraph}\n" for paragraph in paragraphs)]
    for table in tables:
        if table.title != title:
            parts.append(f"### {escape_markdown(table.title)}\n")
        parts.append(markdown_table(table))
        parts += [f"{note}\n" for note in table.notes]
    return "\n".join(parts)


def code_block(lines: Iterable[str]) -> str:
    """Return lines as a code block with a fence that none of the lines contains."""
    text = "\n".join(printable(line) for line in lines)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}\n"


@dataclass(frozen=True)
class _Drawing:
    """A figure of the page, drawn for a wide and for a narrow screen."""

    text: str
    wide: Markup
    narrow: Markup


def write_report(title: str, frames: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a report by their names: `report.md`, `report.html` and, with pruned tables, `curves.svg`.

    The same frames and facts give the same bytes.  The section of an absent or empty frame is left out.

    Args:
        title: title of the report.
        frames: `pruning`, `contests`, `annotation`, `ladder`, `neighbours`, `histogram`, `map`, `surprises`, each with
            the columns that an experiment writes to the Parquet file of that name.
        facts: facts about the experiment: `name`, `config`, `machine`, `versions`, `commands`, `seconds`.
    """
    frames = {name: frame.reset_index(drop=True) for name, frame in frames.items() if len(frame)}
    written = {
        "report.md": _markdown(title, frames, facts).encode("utf-8"),
        "report.html": _html(title, frames, facts).encode("utf-8"),
    }
    if _was_pruned(frames):
        written["curves.svg"] = draw_curve_file(frames["pruning"])
    return written


def _was_pruned(frames: Mapping[str, pd.DataFrame]) -> bool:
    return "pruning" in frames and bool((frames["pruning"]["method"] != FULL).any())


def _markdown(title: str, frames: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> str:
    parts = [
        f"# {escape_markdown(title)}\n",
        "".join(f"{sentence}\n\n" for sentence in answers(frames)).rstrip("\n") + "\n",
    ]
    if _was_pruned(frames):
        parts.append("![size against BLEU, one curve a method](curves.svg)\n")
    if "pruning" in frames:
        parts.append(markdown_section("BLEU by method and size", [], overview_tables(frames["pruning"])))
    if "contests" in frames:
        table = contest_table(frames["contests"])
        parts.append(markdown_section(table.title, [], [table]))
    if "pruning" in frames:
        parts.append(markdown_section("Table 1: size against BLEU", [], size_tables(frames["pruning"])))
    if "annotation" in frames:
        table = annotation_table(frames["annotation"])
        parts.append(markdown_section(table.title, [], [table]))
    if "ladder" in frames:
        table = ladder_table(frames["ladder"])
        parts.append(markdown_section(table.title, [], [table]))
    if "neighbours" in frames:
        parts.append(markdown_section("Table 3: nearest phrases", [], neighbour_tables(frames["neighbours"])))
    if "surprises" in frames:
        tables = [table for _, table in surprise_tables(frames["surprises"], {})]
        parts.append(markdown_section("Surprises: entries that a method judges unlike all others", [], tables))
    if {"histogram", "map"} & frames.keys():
        parts.append("Histograms of similarities and the map of phrases are in `report.html`.\n")
    parts.append(markdown_section("How to read this", [f"* {mark}" for mark in reading(frames)], []))
    parts.append("## Origin of the numbers\n")
    for part in fact_lists(facts):
        parts.append(f"### {part.name}\n")
        if part.literal:
            parts.append(code_block(value for _, value in part.rows))
        else:
            rows = [f"* {escape_markdown(key)}: {escape_markdown(value)}" for key, value in part.rows]
            parts.append("\n".join(rows) + "\n")
    pruned = pruning_commands(frames)
    if pruned:
        parts.append("### the table of each system\n")
        parts.append(code_block(f"{command}  # {system}" for system, command in pruned))
    return "\n".join(parts)


def reading(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return explanations of marks, intervals and p values, sentences with names in backticks."""
    sentences = []
    if {"pruning", "annotation", "contests"} & frames.keys():
        sentences += [
            "BLEU: by sacrebleu on the tokenised text, in points of 100; more is better.",
            "▲ better, ▼ worse at p < 0.05; ▲▲ and ▼▼ at p < 0.01. A difference whose 95 % interval contains 0 has no "
            "mark, because p, which is sacrebleu's, may then be too small. Without a mark no difference is shown, "
            "which does not show that there is none. No p value is corrected for the number of comparisons: of twenty "
            "tests of equals one gets a mark.",
        ]
    if "pruning" in frames:
        sentences += [
            "p in Table 1 and marks next to BLEU: paired bootstrap over sentences against the full table.",
            "Intervals and bands: 95 %, by bootstrap over sentences. They show how much BLEU may differ on other "
            "sentences; two systems on the same sentences differ by much less, which is why p is paired.",
            "Bold: the highest of a size. Green: as good as the full table. That is claimed only where the 95 % "
            f"interval of the difference (paired bootstrap) lies above −{MARGIN:g} BLEU. That no loss is significant "
            "is not enough.",
            "`ALL`: all test sets as one; the development set, `dev`, is not in it.",
            "Figure 1: solid lines for methods with a semantic criterion, dashed for those without, dotted for random; "
            "a hollow point is worse than the full table, as in ▼; a thin line leads to the full table, which every "
            "method is when it keeps everything.",
        ]
        sentences += _seed_sentences(frames["pruning"])
    if "contests" in frames:
        sentences.append(
            "With semantics against without: at each size the better of either kind on the development set, random "
            "left out, is compared on the test sets; p by paired bootstrap of these two."
        )
    if "annotation" in frames:
        sentences.append(
            "Table 2: baseline and annotated table tuned the same way, each with several seeds; "
            "interval and p by paired bootstrap over sentences and tunings; ± is the "
            "standard deviation over the tunings."
        )
    if "ladder" in frames:
        sentences.append(
            "The ladder: every table is written and tuned again with several seeds, from the weights of the ini. "
            "Table 2 starts from default weights unless `start` is `ini`, so gains of the same columns differ. "
            "Intervals as in Table 2, each against the step below, and against the original table. Green: a pruned "
            "table that is as good as the whole one with all steps."
        )
    if "surprises" in frames:
        sentences.append(
            "Surprises: entries whose rank by the method and whose mean rank by all other methods differ most."
        )
    return sentences


def _seed_sentences(pruning: pd.DataFrame) -> list[str]:
    seeds = sorted(set(pruning.loc[pruning["method"] == RANDOM, "seed"]))
    if len(seeds) > 1:
        shown = ", ".join(f"{seed:g}" for seed in seeds)
        return [f"Random is the control: seeds {shown}, each a row of Table 1; figures and overview show their mean."]
    return [f"Random is the control: seed {seeds[0]:g}."] if seeds else []


def _html(title: str, frames: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> str:
    template = page_template("moses_compat.experiments.report", "report.html.j2")
    pruning = frames.get("pruning")
    overview = list(overview_tables(pruning)) if pruning is not None else []
    order = [row.series for table in overview for row in table.rows]
    curves = curves_of(pruning)[1] if pruning is not None else []
    curves.sort(key=lambda c: (order.index(c.number) if c.number in order else len(order), c.number))
    series = {curve.method: curve.number for curve in reversed(curves)}
    sizes = list(size_tables(pruning)) if pruning is not None else []
    sentences = answers(frames)
    return template.render(
        title=printable(title), lead=sentences[:1], sentences=sentences[1:], curves=curves, first=_CURVES_FIRST,
        shapes=_SHAPES, dashes=_DASHES, overview=overview, sizes=sizes,
        figures=list(_curve_figures(pruning)) if _was_pruned(frames) and pruning is not None else [],
        texts=_texts(pruning) if pruning is not None else [],
        main=main_text(pruning) if pruning is not None else "",
        contests=contest_table(frames["contests"]) if "contests" in frames else None,
        annotation=annotation_table(frames["annotation"]) if "annotation" in frames else None,
        ladder=ladder_table(frames["ladder"]) if "ladder" in frames else None,
        climb=Markup(draw_ladder(frames["ladder"], "ladder")) if "ladder" in frames else None,
        neighbours=list(neighbour_tables(frames["neighbours"])) if "neighbours" in frames else [],
        histograms=list(_histograms(frames["histogram"])) if "histogram" in frames else [], shown=_HISTOGRAMS,
        map=_map(frames["map"]) if "map" in frames else None,
        surprises=list(surprise_tables(frames["surprises"], series)) if "surprises" in frames else [],
        reading=reading(frames), facts=list(fact_lists(facts)), commands=pruning_commands(frames),
    )  # fmt: skip


def _texts(pruning: pd.DataFrame) -> list[str]:
    main = main_text(pruning)
    return [main, *(text for text in texts_of(pruning) if text != main)] + [DEV] * (DEV in set(pruning["text"]))


def _curve_figures(pruning: pd.DataFrame) -> Iterator[tuple[str, list[_Drawing]]]:
    for index, protect in enumerate(drawn_protections(pruning)):
        drawings = []
        for number, text in enumerate(_texts(pruning)):
            name = f"curves-{index}-{number}"
            wide = Markup(draw_curves(pruning, protect, text, f"{name}w"))
            drawings.append(_Drawing(text, wide, Markup(draw_curves(pruning, protect, text, f"{name}n", narrow=True))))
        yield str(protect), drawings


def _histograms(histogram: pd.DataFrame) -> Iterator[tuple[str, Markup]]:
    for number, (system, rows) in enumerate(histogram.groupby("system", sort=False)):
        yield printable(system), Markup(draw_histogram(rows, f"histogram-{number}"))


def _map(phrases: pd.DataFrame) -> _Drawing:
    return _Drawing("", Markup(draw_map(phrases, "map-w")), Markup(draw_map(phrases, "map-n", narrow=True)))
