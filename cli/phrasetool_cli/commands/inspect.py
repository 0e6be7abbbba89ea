"""`phrasetool inspect`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from phrasetool_cli.shared.click_options import check_outputs, quiet_option, threads_option

if TYPE_CHECKING:
    from moses_compat.tables.inspect import ColumnSummary, TableSummary
    from moses_compat.tables.moses_loaders import LoaderVerdict, Objection

SCHEMA_VERSION = 1
_BARS = " ▁▂▃▄▅▆▇█"
_MOSES_SCORES = ("phi(f|e)", "lex(f|e)", "phi(e|f)", "lex(e|f)")
# Oddities that the summary names: what they are called there, in the plural.
_ODDITIES = {
    "source comes back": "sources come back after other sources",
    "pair comes twice": "pairs come twice",
    "empty target": "empty targets (Moses deletes the source)",
    "empty source": "empty sources",
    "not UTF-8": "lines that are not UTF-8 (bytes are kept as they are)",
    "carriage return": "lines that end in a carriage return",
    "tab": "lines with a tab",
    "double space": "lines with a double space",
    "no space beside |||": "lines without a space on a side of |||",
    "non-terminals differ": "lines whose alignment does not pair each non-terminal with one of the other side",
    "bracket inside": "lines with a token in brackets that is no non-terminal",
    "bad alignment": "lines whose alignment is no list of points",
    "alignment beyond the phrase": "lines with an alignment point beyond the phrase",
    "bad counts": "lines whose counts are no numbers",
    "sparse scores": "lines with sparse scores",
    "properties": "lines with properties",
    "more than 7 fields": "lines with more than 7 fields",
    "blank line": "blank lines",
}

_EXAMPLE = """\b
Example:
  phrasetool inspect phrase-table.gz
  phrasetool inspect demo-output/engine/phrase-table.gz
"""


@click.command(epilog=_EXAMPLE)
@click.argument("path")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found as JSON; `-`: instead of the text.")
@threads_option("Worker threads.")
@quiet_option
def command(path: str, json_file: str | None, threads: int, quiet: bool) -> None:
    """Say what PATH is: a phrase table in text form (`-` is standard input), a model folder, or another file of Moses.

    Of a table: its fields, scores and order, what is odd about it, and which programs of Moses take it.  A program
    that does not is shown with the first line it would choke on.
    """
    from moses_compat.files.kinds import HEAD_BYTES, folder_kind, kind_of
    from moses_compat.files.streams import Input, Output
    from moses_compat.tables.inspect import inspect_table
    from moses_compat.tables.moses_loaders import verdicts
    from phrasetool_cli.shared.progress import TableProgress

    check_outputs([path], [json_file])
    if os.path.isdir(path):
        kind = folder_kind(path)
        if kind is None or os.path.exists(os.path.join(path, "config.json")):
            _show_model(path)
        else:
            click.echo(f"{path}: {kind}")
        return
    with Input(path) as source:
        kind = kind_of(source.name, source.peek(HEAD_BYTES))
        if kind is not None:
            click.echo(f"{source.name}: {kind}")
            return
        with TableProgress("inspect", source.size(), quiet) as progress:
            summary = inspect_table(source, progress, threads)
    loaders = verdicts(summary)
    if json_file is not None:
        with Output(json_file) as output:
            output.write_text(_as_json(source.name, summary, loaders))
    if json_file != "-":
        _show_table(source.name, summary)
        _show_loaders(loaders)


def _as_json(name: str, summary: TableSummary, loaders: list[LoaderVerdict]) -> bytes:
    found = {
        verdict.loader: {
            "answer": verdict.answer,
            "options": verdict.options,
            "objections": [objection.__dict__ for objection in verdict.objections],
        }
        for verdict in loaders
    }
    document = {"schema_version": SCHEMA_VERSION, "file": name, **summary.as_dict(), "loaders": found}
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


def _show_model(path: str) -> None:
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.models.storage import load_model

    model = load_model(path)
    click.echo(f"{path}: {model.signature}")
    if isinstance(model, BilingualModel):
        click.echo(f"  encoder        {model.kind.name}")
        click.echo(f"  columns        {', '.join(model.columns)}")
        vocabularies = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    else:
        vocabularies = {"text": model.vocabulary}
    for name, vocabulary in vocabularies.items():
        common = b" ".join(vocabulary.words[1:9]).decode("utf-8", "replace")
        click.echo(f"  {name + ' words':<12}   {len(vocabulary) - 1:,} (most frequent: {common})")
    for key, value in model.training.items():
        click.echo(f"  {key:<20} {value}")


def _show_table(name: str, summary: TableSummary) -> None:
    from moses_compat.tables.inspect import GROUP_SIZES

    if summary.entries == summary.faults:
        # Nothing here is an entry, so there is little to say about entries.
        click.echo(f"{name}: {summary.kind}, {summary.entries:,} lines, {summary.bytes:,} bytes of text")
        for fault in summary.first_faults[:1]:
            click.echo(f"  as an entry of a phrase table, line {fault.entry + 1}: {fault.message}")
        return
    click.echo(f"{name}: {summary.kind}, {summary.entries:,} entries, {summary.sources:,} sources, "
               f"{summary.bytes:,} bytes of text")  # fmt: skip
    fields = ", ".join(f"{count:,} with {number}" for number, count in sorted(summary.fields.items()))
    click.echo(f"  fields a line        {fields}")
    sizes = ", ".join(
        f"{label}: {count:,}" for label, count in zip(GROUP_SIZES, summary.group_sizes.tolist(), strict=True) if count
    )
    click.echo(f"  entries a source     {sizes}")
    order = "sorted (LC_ALL=C)"
    if "out of order" in summary.oddities:
        order = f"not sorted: line {summary.oddities['out of order'].first:,} is below the one before it"
    click.echo(f"  order                {order}")
    if summary.factors != (1, 1):
        click.echo(f"  factors a token      {summary.factors[0]} in the source, {summary.factors[1]} in the target")
    click.echo(f"  scores an entry      {max(summary.scores, 0)}")
    for number, column in enumerate(summary.columns, 1):
        meaning = f"  {_MOSES_SCORES[number - 1]}" if summary.scores in (4, 5, 6) and number <= 4 else ""
        if "reordering" in summary.kind:
            meaning = ""
        click.echo(f"    {number}  {_describe(column, summary.entries - summary.faults)}{meaning}")
    for oddity, meaning in _ODDITIES.items():
        if oddity in summary.oddities:
            found = summary.oddities[oddity]
            click.echo(f"  {found.lines:,} {meaning}, from line {found.first:,}")
    if summary.faults:
        click.echo(f"  {summary.faults:,} faulty lines")
    for fault in summary.first_faults:
        click.echo(f"    line {fault.entry + 1}: {fault.message}")


def _show_loaders(loaders: list[LoaderVerdict]) -> None:
    """A line for each program, and one more for each thing it minds beyond the first."""
    if not loaders:
        return
    click.echo("  programs of Moses that take it")
    for verdict in loaders:
        objections = verdict.objections
        if not objections:
            click.echo(f"    {verdict.loader:<22} yes       {verdict.options}")
            continue
        click.echo(f"    {verdict.loader:<22} {verdict.answer:<9} {_objection(objections[0])}")
        for objection in objections[1:]:
            click.echo(f"    {'':<22} {'':<9} {_objection(objection)}")
        if verdict.answer != "no":
            click.echo(f"    {'':<22} {'':<9} with {verdict.options}")


def _objection(objection: Objection) -> str:
    lines = f" ({objection.lines:,} in all)" if objection.lines > 1 else ""
    return f"line {objection.first:,}: {objection.reason}{lines}"


def _describe(column: ColumnSummary, entries: int) -> str:
    if not entries:
        return "no values"
    highest = max(int(column.histogram.max()), 1)
    bars = "".join(_BARS[-(-int(count) * (len(_BARS) - 1) // highest)] for count in column.histogram)
    text = f"[{bars}]  {column.smallest:.4g} .. {column.largest:.4g}, mean {column.total / entries:.4g}"
    if column.zeros:
        text += f", {column.zeros:,} zeros (Moses reads them as exp(-100))"
    if column.negatives:
        text += f", {column.negatives:,} negative (Moses cannot use them)"
    return text
