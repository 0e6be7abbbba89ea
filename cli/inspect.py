"""`phrasetool inspect`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from moses_compat.inspect_table import ColumnSummary, TableSummary

_BARS = " ▁▂▃▄▅▆▇█"
_MOSES_SCORES = ("phi(f|e)", "lex(f|e)", "phi(e|f)", "lex(e|f)")


_EXAMPLE = """\b
Example:
  phrasetool inspect phrase-table.gz
  phrasetool inspect demo-output/engine/phrase-table.gz
"""


@click.command(short_help="Say what a table or a model is.", epilog=_EXAMPLE)
@click.argument("path")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(path: str, quiet: bool) -> None:
    """Say what PATH is: a model folder, or a phrase table in text form (`-` is standard input)."""
    if os.path.isdir(path):
        _show_model(path)
        return
    from moses_compat.inspect_table import inspect_table
    from moses_compat.streams import Input
    from phrasetool_cli.progress import TableProgress

    with Input(path) as source, TableProgress("inspect", source.size(), quiet) as progress:
        _show_table(source.name, inspect_table(source, progress))


def _show_model(path: str) -> None:
    from phrasetool.models.storage import load_model

    model = load_model(path)
    click.echo(f"{path}: {model.signature}")
    click.echo(f"  columns        {', '.join(model.columns)}")
    for name, vocabulary in (("source", model.source_vocabulary), ("target", model.target_vocabulary)):
        common = b" ".join(vocabulary.words[1:9]).decode("utf-8", "replace")
        click.echo(f"  {name} words   {len(vocabulary) - 1:,} (most frequent: {common})")
    for key, value in model.training.items():
        click.echo(f"  {key:<20} {value}")


def _show_table(name: str, summary: TableSummary) -> None:
    click.echo(f"{name}: {summary.entries:,} entries, {summary.sources:,} sources, {summary.bytes:,} bytes of text")
    fields = ", ".join(f"{count:,} with {number}" for number, count in sorted(summary.fields.items()))
    click.echo(f"  fields a line        {fields}")
    labels = ("1", "2-5", "6-10", "11-20", "21-100", "more")
    sizes = ", ".join(
        f"{label}: {count:,}" for label, count in zip(labels, summary.group_sizes.tolist(), strict=True) if count
    )
    click.echo(f"  entries a source     {sizes}")
    order = "sorted (LC_ALL=C)"
    if summary.first_unsorted:
        order = f"not sorted: line {summary.first_unsorted:,} is below the one before it"
    click.echo(f"  order                {order}")
    click.echo(f"  scores an entry      {max(summary.scores, 0)}")
    for number, column in enumerate(summary.columns, 1):
        meaning = f"  {_MOSES_SCORES[number - 1]}" if summary.scores in (4, 5, 6) and number <= 4 else ""
        click.echo(f"    {number}  {_describe(column, summary.entries - summary.faults)}{meaning}")
    oddities = [
        (summary.returning_sources, "sources come back after other sources"),
        (summary.empty_targets, "empty targets (Moses deletes the source)"),
        (summary.not_utf8, "lines that are not UTF-8 (bytes are kept as they are)"),
        (summary.tabs, "lines with a tab"),
        (summary.double_spaces, "lines with a double space"),
        (summary.faults, "faulty lines"),
    ]
    for count, meaning in oddities:
        if count:
            click.echo(f"  {count:,} {meaning}")
    for fault in summary.first_faults:
        click.echo(f"    line {fault.entry + 1}: {fault.message}")


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
