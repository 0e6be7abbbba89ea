"""`phrasetool evaluate-model`."""

from __future__ import annotations

from pathlib import Path

import click

from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.options import default_model, force_option, model_option, quiet_option
from phrasetool_cli.shared.model_views.classifier_quality import evaluate_classifier
from phrasetool_cli.shared.model_views.phrase_quality import evaluate_phrases
from phrasetool_cli.shared.model_views.syntax_quality import evaluate_syntax
from phrasetool_cli.shared.model_views.tagger_quality import evaluate_tagger

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
    """Measure a model on held-out data.

    The figures say how well it finds the true target of every source of PAIRS.  PAIRS should be held out from
    training.  Each target is ranked among the targets of N pairs by the mean of both similarities.

    Of a classifier of sentence pairs, give SOURCE and TARGET of a bitext, or PAIRS: the figures say how well it tells
    true pairs from five random ones for each, and from targets that hold a translation or are a part of one.

    Of a tagger, give a TREEBANK in CoNLL-U: the figures say how many words get the right part of speech.

    Of an encoder of syntax, give a TAGGED text, as `phrasetool tag` writes it: the figures say how many of the nearest
    sentences have the same parts of speech, and how well distances agree (FD, the lower the better; rho, the higher).
    """
    from phrasetool.models.storage import read_model_config

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
    evaluate_phrases(
        inputs, folder, max_length, limit, candidates, seed, force, quiet, document, json_file == "-"
    )  # fmt: skip
