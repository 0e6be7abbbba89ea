"""What `phrasetool evaluate-model` says of a classifier of sentence pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError

if TYPE_CHECKING:
    from phrasetool.training.neural.text_pairs import TextPairs


def evaluate_classifier(
    inputs: tuple[str, ...], folder: str, max_length: int | None, limit: int, seed: int,
    document: Callable[[dict[str, Any]], None], silent: bool,
) -> None:  # fmt: skip
    """Measure a classifier and say what was found.

    Args:
        inputs: the two sides of a bitext, or phrase pairs.
        folder: of the model.
        max_length: pairs with more words on a side are left out; None for what the model reads.
        limit: pairs at most, drawn at random.
        seed: of what is drawn.
        document: takes what was found, for `--json`.
        silent: say nothing.

    Raises:
        click.UsageError: there are more inputs.
        PhraseToolError: the model or an input cannot be read, or there is nothing to tell apart.
    """
    import numpy as np

    from phrasetool.models.storage import load_parallel_model
    from phrasetool.training.parallel.classifier_measures import measured

    if len(inputs) > 2:
        raise click.UsageError("a classifier is measured on the two sides of a bitext, or on one file of phrase pairs")
    model = load_parallel_model(folder)
    texts = _read(inputs, max_length or model.architecture.longest)
    texts = texts.select(np.sort(np.random.default_rng(seed).permutation(len(texts))[:limit]))
    try:
        found = measured(model, texts, seed)
    except ValueError as error:
        raise DataError(inputs[0], str(error)) from error
    document({"signature": model.signature, **asdict(found)})
    if silent:
        return
    click.echo(f"{found.pairs:,} pairs, {model.signature}")
    click.echo(f"  {'':<26} {'P':>7} {'R':>7} {'F1':>7}")
    for name, quality in (
        ("random, at 0.5", found.random_half),
        (f"  at {found.random_best.threshold:.3f} (from training)", found.random_best),
        ("containment, at 0.5", found.contained_half),
        (f"  at {found.contained_best.threshold:.3f}", found.contained_best),
    ):
        click.echo(f"  {name:<26} {quality.precision:7.1%} {quality.recall:7.1%} {quality.f1:7.1%}")
    for name, value, meaning in (
        ("AUC, random", found.auc, "beats a random target; 0.5 is chance"),
        ("calibration error", found.calibration_error, "how far probabilities are from shares; 0 is best"),
        ("accuracy@1", found.accuracy_at_1, "the nearest of all targets by cosine is a translation"),
    ):
        click.echo(f"  {name:<26} {value:7.3f}   {meaning}")


def _read(inputs: tuple[str, ...], max_length: int) -> TextPairs:
    from moses_compat.corpora.parallel_texts import read_parallel_texts, read_phrase_texts

    if len(inputs) == 1:
        return read_phrase_texts(inputs[0], max_length, 0)
    try:
        return read_parallel_texts(inputs[0], inputs[1]).up_to(max_length)
    except ValueError as error:
        raise DataError(inputs[1], str(error)) from error
