"""`phrasetool evaluate-model`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from phrasetool_cli.shared.flags import default_model, force_option, model_option, quiet_option
from phrasetool_cli.shared.json_output import json_document, json_option
from phrasetool_cli.shared.sections import SectionedCommand

if TYPE_CHECKING:
    from phrasetool.phrases import ByteArray

_EXAMPLE = """\b
Example:
  phrasetool evaluate-model held-out.gz -m phrasetool-model
  phrasetool evaluate-model demo-output/pairs.gz -m demo-output/model --candidates 100
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("pairs")
@model_option
@click.option("--candidates", type=click.IntRange(2), default=1000, metavar="N",
              help="Rank every true target among this many.")  # fmt: skip
@click.option("--limit", type=click.IntRange(2), default=20000, metavar="N",
              help="Use at most so many pairs, drawn at random.")  # fmt: skip
@click.option("--max-length", type=click.IntRange(1), default=7,
              help="Leave out pairs with more words on a side.")  # fmt: skip
@click.option("--seed", type=int, default=1, help="Of the shuffle and the random words.")
@json_option
@force_option
@quiet_option
def command(
    pairs: str, model_folder: str | None, candidates: int, limit: int, max_length: int, seed: int,
    json_file: str | None, force: bool, quiet: bool,
) -> None:  # fmt: skip
    """Measure a model on held-out phrase pairs.

    The figures say how well it finds the true target of every source of PAIRS.  PAIRS should be held out from
    training.  Each target is ranked among the targets of N pairs by the mean of both similarities.
    """
    import numpy as np

    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from moses_compat.measures.model_fit import FitCheck
    from phrasetool.models.storage import load_bilingual_model
    from phrasetool.retrieval import evaluate_pairs
    from phrasetool_cli.shared.progress import TerminalWatch

    document = json_document(json_file, [pairs])
    folder = model_folder or default_model()
    model = load_bilingual_model(folder)
    texts: list[ByteArray] = []
    with Input(pairs) as source:
        data = read_training_pairs(
            source,
            max_length=max_length,
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
    if json_file == "-":
        return
    n = f"{quality.candidates:,}"
    rows = [
        (f"accuracy@1 of {n}", quality.accuracy_at_1, "the true target is the best of them"),
        ("  or another translation", quality.any_translation_at_1, "the best is some translation in the pairs"),
        (f"accuracy@10 of {n}", quality.accuracy_at_10, "it is among the ten best"),
        ("mean reciprocal rank", quality.mean_reciprocal_rank, "1 if always first"),
        ("AUC, random words", quality.auc_random_words, "beats the target with its words replaced; 0.5 is chance"),
        ("AUC, other targets", quality.auc_other_targets, "beats another target of the pairs; 0.5 is chance"),
    ]
    click.echo(f"{quality.pairs:,} pairs, {model.signature}")
    for name, value, meaning in rows:
        click.echo(f"  {name:<24} {value:6.3f}   {meaning}")
