"""`phrasetool inspect`."""

from __future__ import annotations

import os

import click

from phrasetool_cli.remedies import with_remedy
from phrasetool_cli.shared.flags import quiet_option, threads_option
from phrasetool_cli.shared.output_checks import check_outputs
from phrasetool_cli.shared.progress import TableProgress

_EXAMPLE = """\b
Example:
  phrasetool inspect phrase-table.gz
  phrasetool inspect demo-output/engine/phrase-table.gz
"""


@click.command(epilog=_EXAMPLE)
@click.argument("path")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found as JSON; `-`: instead of the text.")
@threads_option()
@quiet_option
def command(path: str, json_file: str | None, threads: int, quiet: bool) -> None:
    """Say what a table or a model is.

    PATH is a phrase table in text form (`-` is standard input), a model folder, or another file of Moses.

    Of a table: its fields, scores and order, what is odd about it, and which programs of Moses take it.  A program
    that does not is shown with the first line it would choke on.
    """
    from moses_compat.files.kinds import HEAD_BYTES, folder_kind, kind_of
    from moses_compat.files.streams import Input, Output
    from moses_compat.tables.inspect import inspect_table
    from moses_compat.tables.inspect_text import loader_lines, table_json, table_lines
    from moses_compat.tables.moses_loaders import verdicts

    check_outputs([path], [json_file])
    if os.path.isdir(path):
        kind = folder_kind(path)
        if kind is None or os.path.exists(os.path.join(path, "config.json")):
            _show_model(path)
        else:
            click.echo(with_remedy(f"{path}: {kind}", kind.remedy))
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
            output.write_text(table_json(source.name, summary, loaders))
    if json_file != "-":
        for line in (*table_lines(source.name, summary), *loader_lines(loaders)):
            click.echo(line)


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
