"""`phrasetool train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from phrasetool_cli.options import default_model
from phrasetool_cli.train import autoencoder, bert, classifier, phrases, setting_options, syntax, tagger, translator
from phrasetool_cli.train.run import Given, RunOptions

_TRAININGS = {
    "brae": phrases.training,
    "autoencoder": autoencoder.training,
    "continuous": translator.training,
    "masked-lm": bert.training,
    "parallel": classifier.training,
    "tagger": tagger.training,
    "syntax": syntax.training,
}
_EXAMPLE = """\b
Example:
  phrasetool train pairs.gz
  phrasetool train pairs.gz --source-text mono.de.gz --target-text mono.en.gz -o model
  phrasetool train pairs.gz --encoder mean-max --loss syn-projection
  phrasetool train table.gz --encoder mean --transformation identity --source-vectors de.vec --target-vectors en.vec
  phrasetool train --model autoencoder mono.en.gz -o autoencoder.en
  phrasetool train --model continuous train.de train.en --dev dev.de dev.en -o translator
  phrasetool train --model masked-lm train.zh train.en --monolingual mono.en.gz -o bert
  phrasetool train --model parallel train.de train.en --dev dev.de dev.en -o parallel
  phrasetool train --model tagger --treebank de de-train.conllu.gz --treebank en en-train.conllu.gz -o tagger
  phrasetool train --model syntax --bitext de train.de en train.en --tagger tagger -o syntax
  phrasetool train demo-output/pairs.gz -o demo-output/model2 --iterations 60
"""


@click.command(cls=setting_options.TrainCommand, epilog=_EXAMPLE)
@click.argument("inputs", nargs=-1, metavar="PAIRS | TEXT | SOURCE TARGET")
@setting_options.train_options
def command(
    inputs: tuple[str, ...], folder: str | None, model: str, seed: int, device: str, threads: int, resume: bool,
    overwrite: bool, force: bool, max_length: int | None, min_pair_count: float,
    development: tuple[tuple[str, str], ...],
    json_file: str | None, quiet: bool, **others: Any,
) -> None:  # fmt: skip
    """Train a model on phrase pairs, bitexts, text or treebanks.

    PAIRS has lines `source ||| target[ ||| count]`, best those of leave-one-out forced decoding, or is a phrase table.
    Word vectors start from word2vec, trained on --source-text and --target-text or else on the pairs themselves.

    With --model autoencoder, give a TEXT of one language instead, a sentence a line.

    With --model continuous, give the two sides of a bitext, SOURCE and TARGET, a sentence a line, or PAIRS: a
    translator learns to predict the fixed vector of each target word, from fastText or of --target-vectors.

    With --model parallel, give the same: a classifier learns to tell sentences that are translations of each other
    from others, among them those that hold a translation or are a part of one.

    With --model masked-lm, give one TEXT or the two sides of a bitext: an own BERT, a folder that transformers loads
    and `annotate --encoder` takes.  It needs the extra `encoders`.

    With --model tagger, give treebanks of any languages with --treebank: one tagger learns the parts of speech of all.

    With --model syntax, give bitexts of any languages with --bitext: one encoder reads all of them, and learns to
    predict the parts of speech of the translation, which --tagger tells where it knows the language.
    """
    setting_options.check_model(context := click.get_current_context())
    run = RunOptions(Path(folder or default_model()), device, threads, resume, overwrite, force, quiet, json_file)
    named = {name for name in others if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    flags = setting_options.flags_of(model, others)
    training = _TRAININGS[model](Given(inputs, development, max_length, min_pair_count, seed, flags, named))
    with run.told(training.files) as tell:
        tell(training.train(run))
