"""`phrasetool inspect`."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from moses_compat.files.names import STANDARD
from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.messages import with_remedy
from phrasetool_cli.options import quiet_option, threads_option
from phrasetool_cli.progress import TableProgress, TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.tag_support import SupportReport
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.tagger.model import TaggerModel
    from phrasetool.vocabulary import Vocabulary

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

    Of a table: its fields, scores and order, what is odd about it, and which programs of Moses take it.  A program
    that does not is shown with the first line it would choke on.

    With --tagger and --language-bitext: how many entries have the parts of speech of a sentence pair, as neighbours in
    its source and in its target, and which have not.  A noun phrase that is said to mean a verb is seldom right.
    """
    from moses_compat.files.kinds import HEAD_BYTES, INI, folder_kind, guess, kind_of
    from moses_compat.files.streams import Input
    from moses_compat.ini.ini_summary import ini_document, ini_lines
    from moses_compat.ini.moses_ini import ENCODING
    from moses_compat.ini.reading import parse_moses_ini
    from moses_compat.jobs.tag_support import support_document, support_lines
    from moses_compat.tables.inspect import inspect_table
    from moses_compat.tables.inspection_report import loader_lines, table_document, table_lines
    from moses_compat.tables.moses_loaders import verdicts

    _check(path, tagger, bitext)
    document = json_document(json_file, [path], indent=1)
    if os.path.isdir(path):
        kind = folder_kind(path)
        if kind is None or os.path.exists(os.path.join(path, "config.json")):
            found, lines = model_summary(path)
        else:
            found, lines = {"kind": str(kind)}, [with_remedy(f"{path}: {kind}", kind.remedy)]
        document({"file": path, **found})
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
    """Refuse options that do not go together."""
    if (tagger is None) != (bitext is None):
        raise click.UsageError("--tagger and --language-bitext LANG FILE LANG FILE go together")
    if tagger is not None and (path == STANDARD or os.path.isdir(path)):
        raise click.UsageError("--tagger is for a phrase table in a file, which is read twice")


def _support(path: str, tagger: str, bitext: tuple[str, str, str, str], threads: int, quiet: bool) -> SupportReport:
    from moses_compat.jobs.tag_support import tag_support
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
    """Print, unless JSON comes in the place of the text."""
    if json_file != "-":
        for line in lines:
            click.echo(line)


def model_summary(path: str) -> tuple[dict[str, Any], list[str]]:
    """What a model is, for programs and for people."""
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.models.saved_model import load_saved_model
    from phrasetool.pair_classifier.model import PairClassifierModel
    from phrasetool.phrase_encoder.model import BilingualModel
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.tagger.model import TaggerModel
    from phrasetool.translator.model import TranslatorModel

    model = load_saved_model(path)
    if isinstance(model, TaggerModel | SyntaxModel):
        return _tagged(path, model)
    found: dict[str, Any] = {"kind": "model", "signature": model.signature}
    lines = [f"{path}: {model.signature}"]
    if isinstance(model, BilingualModel):
        found |= {"encoder": model.kind.name, "columns": list(model.columns)}
        lines += [f"  encoder        {model.kind.name}", f"  columns        {', '.join(model.columns)}"]
    if isinstance(model, TranslatorModel):
        shape = {**asdict(model.architecture), "temperature": model.temperature}
        found |= {"architecture": shape, "numbers": sum(array.size for array in model.arrays.values())}
        lines += [f"  {key:<14} {value}" for key, value in shape.items()]
        lines.append(f"  numbers        {found['numbers']:,}")
    if isinstance(model, PairClassifierModel):
        shape = {**asdict(model.architecture), "temperature": model.temperature, "thresholds": model.thresholds}
        found |= {"architecture": shape, "numbers": sum(array.size for array in model.arrays.values())}
        lines += [f"  {key:<14} {value}" for key, value in shape.items()]
        lines.append(f"  numbers        {found['numbers']:,}")
    vocabularies: dict[str, Vocabulary] = {}
    if isinstance(model, PairClassifierModel):
        vocabularies = dict(zip(("source", "target"), model.vocabularies, strict=False))
    elif isinstance(model, AutoencoderModel):
        vocabularies = {"text": model.vocabulary}
    elif isinstance(model, BilingualModel | TranslatorModel):
        vocabularies = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    for name, vocabulary in vocabularies.items():
        common = b" ".join(vocabulary.words[1:9]).decode("utf-8", "replace")
        lines.append(f"  {name + ' words':<12}   {len(vocabulary) - 1:,} (most frequent: {common})")
    lines += [f"  {key:<20} {value}" for key, value in model.training.items()]
    words = {name: len(vocabulary) - 1 for name, vocabulary in vocabularies.items()}
    return {**found, "words": words, "training": dict(model.training)}, lines


def _tagged(path: str, model: TaggerModel | SyntaxModel) -> tuple[dict[str, Any], list[str]]:
    """The same of a tagger, or of an encoder of syntax."""
    from phrasetool.tagger.model import TaggerModel

    shape = asdict(model.shape)
    numbers = sum(array.size for array in model.arrays.values())
    if isinstance(model, TaggerModel):
        own = {"languages": model.languages, "tags": model.tags}
    else:
        own = {"languages": model.languages, "targets": model.targets}
    named = {name: ", ".join(values) for name, values in own.items()}
    shown = {**named, **{name: size for name, size in shape.items() if name not in own}, "numbers": f"{numbers:,}"}
    lines = [f"{path}: {model.signature}", *(f"  {key:<14} {value}" for key, value in shown.items())]
    lines += [f"  {key:<20} {value}" for key, value in model.training.items()]
    found = {"kind": "model", "signature": model.signature, **own}
    return {**found, "shape": shape, "numbers": numbers, "training": dict(model.training)}, lines
