"""What `phrasetool evaluate-model` says of an encoder of syntax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from phrasetool.errors import DataError

_MEANINGS = {
    "model": "the encoder",
    "words": "words they share (TF-IDF), no syntax",
    "untrained": "the encoder before training",
    "random": "noise",
    "tags": "how often each part of speech occurs, without order",
}


def evaluate_syntax(
    inputs: tuple[str, ...], folder: str, sentences: str | None, seed: int, literal: bool,
    document: Callable[[dict[str, Any]], None], silent: bool,
) -> None:  # fmt: skip
    """Measure an encoder of syntax and say what was found.

    Args:
        inputs: one tagged text.
        folder: of the model.
        sentences: the words, where the tagged text has tags alone.
        seed: of what is drawn.
        literal: FD as the paper defines it.
        document: takes what was found, for `--json`.
        silent: say nothing.

    Raises:
        click.UsageError: there are more inputs.
        PhraseToolError: the model or a text cannot be read, or no six sentences are alike.
    """
    from moses_compat.corpora.tagged_text import read_tagged_text
    from phrasetool.syntax.evaluation import syntax_quality
    from phrasetool.syntax.model import load_syntax_model

    if len(inputs) != 1:
        raise click.UsageError("an encoder of syntax is measured on one tagged text")
    model = load_syntax_model(folder)
    lines, tags = read_tagged_text(inputs[0], sentences)
    try:
        found = syntax_quality(model, lines, tags, seed, literal)
    except ValueError as error:
        raise DataError(inputs[0], str(error)) from error
    document({"signature": model.signature, **asdict(found)})
    if silent:
        return
    click.echo(f"{found.sentences:,} sentences, {model.signature}")
    click.echo(f"{found.grouped:,} of them in {found.groups:,} groups with the same parts of speech")
    click.echo(f"  {'':<10} {'1-NN':>6} {'5-NN':>6} {'FD':>6} {'rho':>6}")
    for name, one in found.vectors.items():
        figures = f"{one.nearest_1:6.1%} {one.nearest_5:6.1%} {one.fd:6.3f} {one.rho:6.3f}"
        click.echo(f"  {name:<10} {figures}   {_MEANINGS[name]}")
    click.echo(f"  {'chance':<10} {found.chance:6.1%} {found.chance:6.1%}")
