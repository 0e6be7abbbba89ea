"""`phrasetool inspect`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from moses_compat.files.paths import STANDARD
from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.messages import with_remedy
from phrasetool_cli.options import json_document, json_option, quiet_option, threads_option
from phrasetool_cli.progress import TableProgress, TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.inspect import SupportReport

_RENAMED = {"--bitext": "--language-bitext"}
_EXAMPLE = """\b
Example:
  phrasetool inspect phrase-table.gz
  phrasetool inspect phrase-table.gz --tagger tagger --language-bitext de train.de en train.en
  phrasetool inspect demo-output/engine/phrase-table.gz
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, epilog=_EXAMPLE)
@click.argument("path")
@click.option(
    "--tagger",
    metavar="FOLDER",
    help="Tagger, to find entries whose tags occur in no sentence pair.",
)
@click.option(
    "--language-bitext",
    "bitext",
    nargs=4,
    metavar="LANG FILE LANG FILE",
    help="Two languages of the tagger, each with its side of a bitext.",
)
@json_option
@threads_option()
@quiet_option
def command(
    path: str, tagger: str | None, bitext: tuple[str, str, str, str] | None, json_file: str | None, threads: int,
    quiet: bool,
) -> None:  # fmt: skip
    """Show information about a table or model.

    PATH is a phrase table in text form (`-` is standard input), a model folder, a moses.ini, or another file of Moses.

    For a table, shows its fields, scores and order, its irregularities, and which programs of Moses accept it; for a
    program that does not, the first line that it would fail on.

    With --tagger and --language-bitext, also shows how many entries have parts of speech that occur in a sentence pair,
    consecutively in its source and in its target, and the most frequent ones of other entries.  A noun phrase with a
    verb as its translation is seldom correct.
    """
    from moses_compat.files.kinds import HEAD_BYTES, INI, folder_kind, guess, kind_of
    from moses_compat.files.streams import Input
    from moses_compat.ini.moses_ini import ENCODING
    from moses_compat.ini.reading import parse_moses_ini
    from moses_compat.jobs.inspect import (
        ini_document,
        ini_lines,
        loader_lines,
        support_document,
        support_lines,
        table_document,
        table_lines,
    )
    from moses_compat.tables.inspect import inspect_table, verdicts

    _check(path, tagger, bitext)
    document = json_document(json_file, [path], indent=1)
    if os.path.isdir(path):
        kind = folder_kind(path)
        if kind is None or os.path.exists(os.path.join(path, "config.json")):
            facts, lines = model_summary(path)
        else:
            facts, lines = {"kind": str(kind)}, [with_remedy(f"{path}: {kind}", kind.remedy)]
        document({"file": path, **facts})
        _show(lines, json_file)
        return
    with Input(path) as source:
        kind = kind_of(source.name, source.peek(HEAD_BYTES))
        if kind is not None:
            document({"file": source.name, "kind": str(kind)})
            _show([f"{source.name}: {kind}"], json_file)
            return
        if guess(source.peek(HEAD_BYTES)) == INI:
            ini = parse_moses_ini(source.name, source.read_all().decode(*ENCODING))
            document(ini_document(ini))
            _show([*ini_lines(ini)], json_file)
            return
        with TableProgress("inspect", source.size(), quiet) as progress:
            summary = inspect_table(source, progress, threads)
    loaders = verdicts(summary)
    support = _support(path, tagger, bitext, threads, quiet) if tagger and bitext else None
    document({**table_document(source.name, summary, loaders), **support_document(support)})
    _show([*table_lines(source.name, summary), *support_lines(support), *loader_lines(loaders)], json_file)


def _check(path: str, tagger: str | None, bitext: tuple[str, ...] | None) -> None:
    """Refuse options that contradict each other."""
    if (tagger is None) != (bitext is None):
        raise click.UsageError("--tagger and --language-bitext LANG FILE LANG FILE must be given together")
    if tagger is not None and (path == STANDARD or os.path.isdir(path)):
        raise click.UsageError("--tagger is for a phrase table in a file, which is read twice")


def _support(path: str, tagger: str, bitext: tuple[str, str, str, str], threads: int, quiet: bool) -> SupportReport:
    from moses_compat.jobs.inspect import tag_support
    from moses_compat.tables.blocks import TableScan
    from phrasetool.tagger.model import TaggerModel

    first, source, second, target = bitext
    scan = TableScan(on_error="skip", threads=threads)
    try:
        return tag_support(
            path, scan, TaggerModel.load(tagger), (first, second), (source, target), TerminalWatch(quiet)
        )
    except ValueError as error:
        raise click.UsageError(f"--language-bitext: {error}") from error


def _show(lines: list[str], json_file: str | None) -> None:
    """Print lines, unless JSON is written to standard output."""
    if json_file != "-":
        for line in lines:
            click.echo(line)


def model_summary(path: str) -> tuple[dict[str, Any], list[str]]:
    """Return the description of a model as a document and as lines."""
    from phrasetool.models.saved_model import load_saved_model

    model = load_saved_model(path)
    facts, vocabularies = model.facts(), model.named_vocabularies()
    lines = [f"{path}: {model.signature}", *(f"  {name:<14} {value}" for name, value in _fact_lines(facts))]
    for name, vocabulary in vocabularies.items():
        common = b" ".join(vocabulary.words[1:9]).decode("utf-8", "replace")
        lines.append(f"  {name + ' words':<12}   {len(vocabulary) - 1:,} (most frequent: {common})")
    lines += [f"  {name:<20} {value}" for name, value in model.training.items()]
    words = {name: len(vocabulary) - 1 for name, vocabulary in vocabularies.items()}
    document = {"kind": "model", "signature": model.signature, **facts, **({"words": words} if words else {})}
    return {**document, "training": dict(model.training)}, lines


def _fact_lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and values, those of a part such as the architecture one by one."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from ((part, str(size)) for part, size in value.items() if part not in facts)
        elif isinstance(value, list | tuple):
            yield name, ", ".join(map(str, value))
        else:
            yield name, f"{value:,}" if name == "numbers" else str(value)
