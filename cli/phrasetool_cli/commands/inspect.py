"""`phrasetool inspect`."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.remedies import with_remedy
from phrasetool_cli.shared.flags import quiet_option, threads_option
from phrasetool_cli.shared.json_output import json_document, json_option
from phrasetool_cli.shared.progress import TableProgress
from phrasetool_cli.shared.sections import SectionedCommand

if TYPE_CHECKING:
    from phrasetool.models.syntax import SyntaxModel
    from phrasetool.models.tagger import TaggerModel

_EXAMPLE = """\b
Example:
  phrasetool inspect phrase-table.gz
  phrasetool inspect demo-output/engine/phrase-table.gz
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("path")
@json_option
@threads_option()
@quiet_option
def command(path: str, json_file: str | None, threads: int, quiet: bool) -> None:
    """Say what a table or a model is.

    PATH is a phrase table in text form (`-` is standard input), a model folder, or another file of Moses.

    Of a table: its fields, scores and order, what is odd about it, and which programs of Moses take it.  A program
    that does not is shown with the first line it would choke on.
    """
    from moses_compat.files.kinds import HEAD_BYTES, folder_kind, kind_of
    from moses_compat.files.streams import Input
    from moses_compat.tables.inspect import inspect_table
    from moses_compat.tables.inspect_text import loader_lines, table_document, table_lines
    from moses_compat.tables.moses_loaders import verdicts

    document = json_document(json_file, [path], indent=1)
    if os.path.isdir(path):
        kind = folder_kind(path)
        if kind is None or os.path.exists(os.path.join(path, "config.json")):
            found, lines = _model(path)
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
        with TableProgress("inspect", source.size(), quiet) as progress:
            summary = inspect_table(source, progress, threads)
    loaders = verdicts(summary)
    document(table_document(source.name, summary, loaders))
    _show([*table_lines(source.name, summary), *loader_lines(loaders)], json_file)


def _show(lines: list[str], json_file: str | None) -> None:
    """Print, unless JSON comes in the place of the text."""
    if json_file != "-":
        for line in lines:
            click.echo(line)


def _model(path: str) -> tuple[dict[str, Any], list[str]]:
    """What a model is, for programs and for people."""
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.models.neural import NeuralModel
    from phrasetool.models.parallel import ParallelModel
    from phrasetool.models.storage import load_model
    from phrasetool.models.syntax import SyntaxModel
    from phrasetool.models.tagger import TaggerModel

    model = load_model(path)
    if isinstance(model, TaggerModel | SyntaxModel):
        return _tagged(path, model)
    found: dict[str, Any] = {"kind": "model", "signature": model.signature}
    lines = [f"{path}: {model.signature}"]
    if isinstance(model, BilingualModel):
        found |= {"encoder": model.kind.name, "columns": list(model.columns)}
        lines += [f"  encoder        {model.kind.name}", f"  columns        {', '.join(model.columns)}"]
    if isinstance(model, NeuralModel):
        shape = {**asdict(model.architecture), "temperature": model.temperature}
        found |= {"architecture": shape, "numbers": sum(array.size for array in model.arrays.values())}
        lines += [f"  {key:<14} {value}" for key, value in shape.items()]
        lines.append(f"  numbers        {found['numbers']:,}")
    if isinstance(model, ParallelModel):
        shape = {**asdict(model.architecture), "temperature": model.temperature, "thresholds": model.thresholds}
        found |= {"architecture": shape, "numbers": sum(array.size for array in model.arrays.values())}
        lines += [f"  {key:<14} {value}" for key, value in shape.items()]
        lines.append(f"  numbers        {found['numbers']:,}")
    if isinstance(model, ParallelModel):
        vocabularies = dict(zip(("source", "target"), model.vocabularies, strict=False))
    elif isinstance(model, AutoencoderModel):
        vocabularies = {"text": model.vocabulary}
    else:
        vocabularies = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    for name, vocabulary in vocabularies.items():
        common = b" ".join(vocabulary.words[1:9]).decode("utf-8", "replace")
        lines.append(f"  {name + ' words':<12}   {len(vocabulary) - 1:,} (most frequent: {common})")
    lines += [f"  {key:<20} {value}" for key, value in model.training.items()]
    words = {name: len(vocabulary) - 1 for name, vocabulary in vocabularies.items()}
    return {**found, "words": words, "training": dict(model.training)}, lines


def _tagged(path: str, model: TaggerModel | SyntaxModel) -> tuple[dict[str, Any], list[str]]:
    """The same of a tagger, or of an encoder of syntax."""
    from phrasetool.models.tagger import TaggerModel

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
