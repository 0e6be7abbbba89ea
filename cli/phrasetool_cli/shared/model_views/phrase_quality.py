"""What `phrasetool evaluate-model` says of a model of phrase pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from phrasetool.phrases import ByteArray
    from phrasetool.retrieval import RetrievalQuality

# Words of a side.
_MAX_LENGTH = 7


def evaluate_phrases(
    inputs: tuple[str, ...], folder: str, max_length: int | None, limit: int, candidates: int, seed: int, force: bool,
    quiet: bool, document: Callable[[dict[str, Any]], None], silent: bool,
) -> None:  # fmt: skip
    """Measure a model of phrase pairs and say what was found.

    Args:
        inputs: phrase pairs.
        folder: of the model.
        max_length: pairs with more words on a side are left out.
        limit: pairs at most, drawn at random.
        candidates: each true target is ranked among as many.
        seed: of what is drawn, and of random words.
        force: go on although the pairs are of other languages.
        quiet: no warnings.
        document: takes what was found, for `--json`.
        silent: say nothing.

    Raises:
        click.UsageError: there is another number of inputs.
        PhraseToolError: the model or the pairs cannot be read, or do not fit.
    """
    import numpy as np

    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from moses_compat.measures.model_fit import FitCheck
    from phrasetool.models.storage import load_bilingual_model
    from phrasetool.retrieval import evaluate_pairs

    if len(inputs) != 1:
        raise click.UsageError("a model of phrase pairs is measured on one file of phrase pairs")
    model = load_bilingual_model(folder)
    texts: list[ByteArray] = []
    with Input(inputs[0]) as source:
        data = read_training_pairs(
            source,
            max_length=max_length or _MAX_LENGTH,
            vocabularies=(model.source_vocabulary, model.target_vocabulary),
            seen=texts.append,
        )
    check = FitCheck(folder, TerminalWatch(quiet), force)
    check.judge_pairs(source.name, model, texts)
    drawn = np.random.default_rng(seed).permutation(len(data))[:limit]
    quality = evaluate_pairs(
        model.scorer(), data.sources.select(drawn), data.targets.select(drawn), len(model.target_vocabulary),
        candidates=candidates, seed=seed,
    )  # fmt: skip
    fit = {"model_fit": check.fit.as_dict()} if check.fit else {}
    document({"signature": model.signature, **asdict(quality), **fit})
    if not silent:
        click.echo(f"{quality.pairs:,} pairs, {model.signature}")
        _show(quality)


def _show(quality: RetrievalQuality) -> None:
    n = f"{quality.candidates:,}"
    for name, value, meaning in (
        (f"accuracy@1 of {n}", quality.accuracy_at_1, "the true target is the best of them"),
        ("  or another translation", quality.any_translation_at_1, "the best is some translation in the pairs"),
        (f"accuracy@10 of {n}", quality.accuracy_at_10, "it is among the ten best"),
        ("mean reciprocal rank", quality.mean_reciprocal_rank, "1 if always first"),
        ("AUC, random words", quality.auc_random_words, "beats the target with its words replaced; 0.5 is chance"),
        ("AUC, other targets", quality.auc_other_targets, "beats another target of the pairs; 0.5 is chance"),
    ):
        click.echo(f"  {name:<24} {value:6.3f}   {meaning}")
