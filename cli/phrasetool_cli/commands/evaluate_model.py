"""`phrasetool evaluate-model`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from phrasetool_cli.shared.flags import default_model, force_option, model_option, quiet_option
from phrasetool_cli.shared.json_output import json_document, json_option
from phrasetool_cli.shared.model_views.classifier_quality import evaluate_classifier
from phrasetool_cli.shared.model_views.syntax_quality import evaluate_syntax
from phrasetool_cli.shared.model_views.tagger_quality import evaluate_tagger
from phrasetool_cli.shared.sections import SectionedCommand

if TYPE_CHECKING:
    from phrasetool.phrases import ByteArray

# Words of a side of phrase pairs.
_MAX_LENGTH = 7
_EXAMPLE = """\b
Example:
  phrasetool evaluate-model held-out.gz -m phrasetool-model
  phrasetool evaluate-model test.de test.en -m parallel
  phrasetool evaluate-model test.conllu -m tagger --language de
  phrasetool evaluate-model held-out.upos -m syntax --sentences held-out.en
  phrasetool evaluate-model demo-output/pairs.gz -m demo-output/model --candidates 100
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("inputs", nargs=-1, required=True, metavar="PAIRS | SOURCE TARGET | TREEBANK | TAGGED")
@model_option
@click.option("--candidates", type=click.IntRange(2), default=1000, metavar="N",
              help="Rank every true target among this many.")  # fmt: skip
@click.option("--limit", type=click.IntRange(2), default=20000, metavar="N",
              help="Use at most so many pairs, drawn at random.")  # fmt: skip
@click.option("--max-length", type=click.IntRange(1), metavar="N",
              help="Leave out pairs with more words on a side.  [default: 7; of a classifier of sentence pairs, what "
                   "it reads]")  # fmt: skip
@click.option("--language", metavar="CODE", help="Of a tagger: the language of TREEBANK.")
@click.option("--sentences", metavar="FILE", help="Of an encoder of syntax: the words, if TAGGED has tags alone.")
@click.option("--literal", is_flag=True, help="Of an encoder of syntax: FD as the paper defines it.")
@click.option("--seed", type=int, default=1, help="Of the shuffle and the random words.")
@json_option
@force_option
@quiet_option
def command(
    inputs: tuple[str, ...], model_folder: str | None, candidates: int, limit: int, max_length: int | None,
    language: str | None, sentences: str | None, literal: bool, seed: int, json_file: str | None, force: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Measure a model on held-out phrase pairs.

    The figures say how well it finds the true target of every source of PAIRS.  PAIRS should be held out from
    training.  Each target is ranked among the targets of N pairs by the mean of both similarities.

    Of a classifier of sentence pairs, give SOURCE and TARGET of a bitext, or PAIRS: the figures say how well it tells
    true pairs from five random ones for each, and from targets that hold a translation or are a part of one.

    Of a tagger, give a TREEBANK in CoNLL-U: the figures say how many words get the right part of speech.

    Of an encoder of syntax, give a TAGGED text, as `phrasetool tag` writes it: the figures say how many of the nearest
    sentences have the same parts of speech, and how well distances agree (FD, the lower the better; rho, the higher).
    """
    import numpy as np

    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from moses_compat.measures.model_fit import FitCheck
    from phrasetool.models.storage import load_bilingual_model, read_model_config
    from phrasetool.retrieval import evaluate_pairs
    from phrasetool_cli.shared.progress import TerminalWatch

    document = json_document(json_file, [*inputs, sentences])
    folder = model_folder or default_model()
    kind = read_model_config(Path(folder))["model"]
    if kind == "tagger":
        evaluate_tagger(inputs, folder, language, document, json_file == "-")
        return
    if language is not None:
        raise click.UsageError("--language is for a tagger")
    if kind == "syntax":
        evaluate_syntax(inputs, folder, sentences, seed, literal, document, json_file == "-")
        return
    if sentences is not None or literal:
        raise click.UsageError("--sentences and --literal are for an encoder of syntax")
    if kind == "parallel":
        evaluate_classifier(inputs, folder, max_length, limit, seed, document, json_file == "-")
        return
    if len(inputs) != 1:
        raise click.UsageError("a model of phrase pairs is measured on one file of phrase pairs")
    pairs = inputs[0]
    model = load_bilingual_model(folder)
    texts: list[ByteArray] = []
    with Input(pairs) as source:
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
