"""What `phrasetool evaluate-model` says of a tagger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click


def evaluate_tagger(
    inputs: tuple[str, ...], folder: str, language: str | None, document: Callable[[dict[str, Any]], None], silent: bool
) -> None:
    """Measure a tagger and say what was found.

    Args:
        inputs: one treebank.
        folder: of the model.
        language: of the treebank.
        document: takes what was found, for `--json`.
        silent: say nothing.

    Raises:
        click.UsageError: there are more inputs, or the language is missing or unknown.
        PhraseToolError: the model or the treebank cannot be read.
    """
    from moses_compat.corpora.conllu import read_conllu
    from phrasetool.tagger.model import load_tagger, tag_accuracy

    if len(inputs) != 1:
        raise click.UsageError("a tagger is measured on one treebank in CoNLL-U")
    model = load_tagger(folder)
    if language is None:
        raise click.UsageError(f"name the language of the treebank with --language: {', '.join(model.languages)}")
    try:
        model.check_language(language)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    found = tag_accuracy(model, read_conllu(inputs[0]), language)
    document({"signature": model.signature, "language": language, **asdict(found)})
    if silent:
        return
    click.echo(f"{found.words:,} words of {found.sentences:,} sentences, {model.signature}")
    click.echo(f"  {'accuracy':<24} {found.accuracy:6.1%}   words with the right tag")
    click.echo(f"  {'  without capitals':<24} {found.lower_accuracy:6.1%}   the same of lower-cased sentences")
    for tag, share in found.by_tag.items():
        click.echo(f"  {'  ' + tag:<24} {share:6.1%}")
