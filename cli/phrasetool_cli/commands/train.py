"""`phrasetool train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from phrasetool_cli.shared.flags import default_model
from phrasetool_cli.training import chosen_options, training_flags
from phrasetool_cli.training.autoencoder_run import train_text
from phrasetool_cli.training.masked_lm_run import MaskedLmInputs, train_bert
from phrasetool_cli.training.neural_run import NeuralInputs, train_translator
from phrasetool_cli.training.pairs_run import train_pairs
from phrasetool_cli.training.parallel_run import ParallelInputs, train_classifier
from phrasetool_cli.training.syntax_run import SyntaxInputs, train_encoder
from phrasetool_cli.training.tagger_run import TaggerInputs, train_tags
from phrasetool_cli.training.training_run import TrainingRun

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


@click.command(cls=training_flags.TrainCommand, epilog=_EXAMPLE)
@click.argument("inputs", nargs=-1, metavar="PAIRS | TEXT | SOURCE TARGET")
@training_flags.train_options
def command(
    inputs: tuple[str, ...], folder: str | None, model: str, seed: int, device: str, threads: int, resume: bool,
    overwrite: bool, force: bool, max_length: int | None, min_pair_count: float,
    development: tuple[tuple[str, str], ...],
    json_file: str | None, quiet: bool, **others: Any,
) -> None:  # fmt: skip
    """Train a model on phrase pairs, on text of one language, or on a bitext.

    PAIRS has lines `source ||| target[ ||| count]` (pairs used in forced decoding are best), or is a phrase table.
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
    training_flags.check_model(context := click.get_current_context())
    run = TrainingRun(Path(folder or default_model()), device, threads, resume, overwrite, force, quiet, json_file)
    if model == "tagger":
        named = TaggerInputs(others["treebanks"], development)
        with run.told(named.all) as tell:
            tell(train_tags(named, run, others, seed))
        return
    if model == "syntax":
        bitexts = SyntaxInputs(others["bitexts"], others["tagger"], others["start"], others["own_language"])
        with run.told(bitexts.all) as tell:
            tell(train_encoder(bitexts, run, {**others, "max_length": max_length}, seed))
        return
    for name in ("treebanks", "bitexts", "tagger", "start", "own_language"):
        del others[name]
    if len(development) > 1:
        raise click.UsageError("--dev names one development set; several are for --model tagger")
    held = development[0] if development else None
    if model == "autoencoder":
        with run.told(inputs) as tell:
            options = chosen_options.autoencoder_options({**others, "max_length": max_length})
            tell(train_text(inputs[0], run, seed, options))
        return
    if model == "continuous":
        texts, vectors = others["target_text"], others["target_vectors"]
        files = NeuralInputs(inputs, held, min_pair_count, texts, vectors)
        with run.told(files.all) as tell:
            options = chosen_options.neural_options({**others, "max_length": max_length})
            tell(train_translator(files, run, options, seed))
        return
    if model == "masked-lm":
        texts_read = MaskedLmInputs(inputs, held, others["monolingual"])
        with run.told(texts_read.all) as tell:
            tell(train_bert(texts_read, run, chosen_options.masked_lm_options(others), seed))
        return
    others.pop("monolingual")
    if model == "parallel":
        sides = ParallelInputs(inputs, held, min_pair_count, others["encoder"], others["tune_encoder"])
        with run.told(sides.all) as tell:
            options = chosen_options.parallel_options({**others, "max_length": max_length})
            tell(train_classifier(sides, run, options, seed))
        return
    del others["tune_encoder"]
    given = context.get_parameter_source("encoder") is ParameterSource.COMMANDLINE
    chosen = {"seed": seed, **others, "encoder": others["encoder"] if given else None}
    chosen["loss"] = chosen["loss"] or training_flags.LOSS
    starts = chosen_options.chosen_starts(chosen)
    chosen["encoder"] = chosen["encoder"] or others["encoder"]
    record = {"pairs_file": inputs[0]}
    record |= {key: others[key] for key in ("source_autoencoder", "target_autoencoder") if others[key]}
    kept = max_length or training_flags.MAX_LENGTH, min_pair_count
    with run.told([*inputs, *(file for start in starts for file in start.files)]) as tell:
        tell(train_pairs(inputs[0], run, chosen, starts, kept, record))
