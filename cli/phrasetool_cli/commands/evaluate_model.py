"""`phrasetool evaluate-model`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError
from phrasetool_cli.checks import refuse_unused
from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.options import default_model, force_option, json_document, json_option, model_option, quiet_option
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from phrasetool.phrase_encoder.neighbours import RetrievalQuality
    from phrasetool.phrases import ByteArray, Phrases
    from phrasetool.training.data import TextPairs
    from phrasetool.vocabulary import Vocabulary

# Figures for `--json`, and the lines that show them.
Evaluation = tuple[dict[str, Any], list[str]]

# Families that this command measures itself; others have `SavedModel.evaluate`.
_FAMILIES = ("brae", "parallel", "tagger", "syntax")
# Parameters that not every family uses, and the families that use them.
_USED_BY = {
    "candidates": ("brae",),
    "limit": ("brae", "parallel"),
    "max_length": ("brae", "parallel"),
    "language": ("tagger",),
    "sentences": ("syntax",),
    "literal": ("syntax",),
    "seed": ("brae", "parallel", "syntax"),
    "force": ("brae",),
}
_RENAMED = {"--sentences": "--words"}
_EXAMPLE = """\b
Example:
  phrasetool evaluate-model held-out.gz -m phrasetool-model
  phrasetool evaluate-model test.de test.en -m parallel
  phrasetool evaluate-model test.conllu -m tagger --language de
  phrasetool evaluate-model held-out.upos -m syntax --words held-out.en
  phrasetool evaluate-model demo-output/pairs.gz -m demo-output/model --candidates 100
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, epilog=_EXAMPLE)
@click.argument("inputs", nargs=-1, required=True, metavar="PAIRS | SOURCE TARGET | TREEBANK | TAGGED")
@model_option
@click.option("--candidates", type=click.IntRange(2), default=1000, metavar="N",
              help="Rank every true target among N candidates, for phrase pairs.")  # fmt: skip
@click.option("--limit", type=click.IntRange(2), default=20000, metavar="N",
              help="Use at most N pairs, drawn at random.")  # fmt: skip
@click.option("--max-length", type=click.IntRange(1), metavar="N",
              help="Leave out pairs with more words on a side.  [default: 7; what a classifier reads]")  # fmt: skip
@click.option("--language", metavar="CODE", help="Language of TREEBANK, for a tagger.")
@click.option(
    "--words", "sentences", metavar="FILE", help="Words of TAGGED if it has tags only, for a syntactic encoder."
)
@click.option("--literal", is_flag=True, help="Compute FD as the paper defines it, for a syntactic encoder.")
@click.option("--seed", type=int, default=1, help="Random seed.")
@json_option
@force_option
@quiet_option
def command(
    inputs: tuple[str, ...], model_folder: str | None, candidates: int, limit: int, max_length: int | None,
    language: str | None, sentences: str | None, literal: bool, seed: int, json_file: str | None, force: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Measure a model on held-out data.

    For a phrase model, give PAIRS held out from training: the figures show how well it finds the true target of every
    source.  Each target is ranked among the targets of N pairs by the mean of both similarities.

    For a classifier of sentence pairs, give SOURCE and TARGET of a bitext, or PAIRS: the figures show how well it
    separates each true pair from five random ones, and from targets that contain a translation or are a part of one.

    For a tagger, give a TREEBANK in CoNLL-U: the figures show the share of words with the correct part of speech.

    For a syntactic encoder, give a TAGGED text, as `phrasetool tag` writes it: the figures show how many of the nearest
    sentences have the same parts of speech, and how well distances agree (lower FD is better, higher rho is better).
    """
    from phrasetool.models.families import any_of
    from phrasetool.models.saved_model import read_model_config

    document = json_document(json_file, [*inputs, sentences])
    folder = model_folder or default_model()
    kind = read_model_config(Path(folder))["model"]
    refuse_unused({name: any_of(families) for name, families in _USED_BY.items() if kind not in families})
    if kind == "tagger":
        figures, lines = evaluate_tagger(inputs, folder, language)
    elif kind == "syntax":
        figures, lines = evaluate_syntax(inputs, folder, sentences, seed, literal)
    elif kind == "parallel":
        figures, lines = evaluate_classifier(inputs, folder, max_length, limit, seed)
    elif kind == "brae":
        figures, lines = evaluate_phrases(inputs, folder, max_length, limit, candidates, seed, force, quiet)
    else:
        figures, lines = evaluate_texts(inputs, folder)
    document(figures)
    if json_file != "-":
        for line in lines:
            click.echo(line)


def evaluate_texts(inputs: tuple[str, ...], folder: str) -> Evaluation:
    """Measure a model of a family with its own evaluation, see `SavedModel.evaluate`; return figures and lines.

    Args:
        inputs: held-out texts.
        folder: model folder.

    Raises:
        PhraseToolError: the model or a text cannot be read, the texts do not match, or the family has no evaluation.
    """
    from moses_compat.corpora.texts import read_sentences
    from phrasetool.models.saved_model import load_saved_model, wrong_family
    from phrasetool.text_splitting import split_lines

    model = load_saved_model(folder)
    try:
        figures = model.evaluate([split_lines(read_sentences(path)) for path in inputs])
    except NotImplementedError as error:
        raise wrong_family(folder, model.name, *_FAMILIES) from error
    except ValueError as error:
        raise DataError(inputs[0], str(error)) from error
    lines = [model.signature, *(f"  {name:<24} {value:8.4f}" for name, value in figures.items())]
    return {"signature": model.signature, **figures}, lines


# Default maximum words of a side.
_MAX_LENGTH = 7


def evaluate_phrases(
    inputs: tuple[str, ...], folder: str, max_length: int | None, limit: int, candidates: int, seed: int, force: bool,
    quiet: bool,
) -> Evaluation:  # fmt: skip
    """Measure a model of phrase pairs; return the figures and the lines that show them.

    Args:
        inputs: phrase pairs.
        folder: model folder.
        max_length: pairs with more words on a side are left out.
        limit: maximum number of pairs, drawn at random.
        candidates: number of candidates that each true target is ranked among.
        seed: random seed of the drawn pairs and of random words.
        force: whether to continue if the pairs are of other languages.
        quiet: whether to show warnings only.

    Raises:
        click.UsageError: there is more than one input.
        PhraseToolError: the model or the pairs cannot be read, or do not match.
    """
    import numpy as np

    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from moses_compat.measures.model_fit import FitCheck
    from phrasetool.phrase_encoder.model import BilingualModel
    from phrasetool.phrase_encoder.neighbours import evaluate_pairs

    if len(inputs) != 1:
        raise click.UsageError("a model of phrase pairs is measured on one file of phrase pairs")
    model = BilingualModel.load(folder)
    texts: list[ByteArray] = []
    with Input(inputs[0]) as source:
        # With the words of the model, pairs that differ only in unknown words would be merged.
        data = read_training_pairs(source, max_length=max_length or _MAX_LENGTH, seen=texts.append)
    check = FitCheck(folder, TerminalWatch(quiet), force)
    check.judge_pairs(source.name, model, texts)
    data = data.select(np.random.default_rng(seed).permutation(len(data))[:limit])
    quality = evaluate_pairs(
        model.scorer(),
        _in_ids(data.sources, data.source_vocabulary, model.source_vocabulary),
        _in_ids(data.targets, data.target_vocabulary, model.target_vocabulary),
        len(model.target_vocabulary),
        written=(data.sources, data.targets),
        candidates=candidates,
        seed=seed,
    )
    fit = {"model_fit": check.fit.as_dict()} if check.fit else {}
    lines = [f"{quality.pairs:,} pairs, {model.signature}", *_retrieval_lines(quality)]
    return {"signature": model.signature, **asdict(quality), **fit}, lines


def _in_ids(phrases: Phrases, written: Vocabulary, vocabulary: Vocabulary) -> Phrases:
    """Convert phrases from ids of `written` to those of `vocabulary`; a missing word is looked up by its first factor.

    Words that are missing, too, become unknown.
    """
    import numpy as np

    from phrasetool.phrases import Phrases
    from phrasetool.vocabulary import UNKNOWN

    ids = {word: i for i, word in enumerate(vocabulary.words)}
    table = [ids.get(word, ids.get(word.partition(b"|")[0], UNKNOWN)) for word in written.words]
    return Phrases(phrases.offsets, np.array(table, np.int32)[phrases.words])


def _retrieval_lines(quality: RetrievalQuality) -> Iterator[str]:
    n = f"{quality.candidates:,}"
    for name, value, meaning in (
        (f"accuracy@1 of {n}", quality.accuracy_at_1, "the true target is the best of them"),
        ("  or another translation", quality.any_translation_at_1, "the best is some translation in the pairs"),
        (f"accuracy@10 of {n}", quality.accuracy_at_10, "it is among the ten best"),
        ("mean reciprocal rank", quality.mean_reciprocal_rank, "1 if always first"),
        ("AUC, random words", quality.auc_random_words, "beats the target with its words replaced; 0.5 is chance"),
        ("AUC, other targets", quality.auc_other_targets, "beats another target of the pairs; 0.5 is chance"),
    ):
        yield f"  {name:<24} {value:6.3f}   {meaning}"


def evaluate_classifier(
    inputs: tuple[str, ...], folder: str, max_length: int | None, limit: int, seed: int
) -> Evaluation:
    """Measure a classifier; return the figures and the lines that show them.

    Args:
        inputs: the two sides of a bitext, or phrase pairs.
        folder: model folder.
        max_length: pairs with more words on a side are left out; None for the maximum of the model.
        limit: maximum number of pairs, drawn at random.
        seed: random seed of the drawn pairs and of negative pairs.

    Raises:
        click.UsageError: there are more than two inputs.
        PhraseToolError: the model or an input cannot be read, or there are no negative pairs.
    """
    import numpy as np

    from phrasetool.pair_classifier.model import PairClassifierModel
    from phrasetool.pair_classifier.quality import measure_pair_classifier

    if len(inputs) > 2:
        raise click.UsageError("a classifier is measured on the two sides of a bitext, or on one file of phrase pairs")
    model = PairClassifierModel.load(folder)
    texts = _read_sentence_pairs(inputs, max_length or model.architecture.longest)
    texts = texts.select(np.sort(np.random.default_rng(seed).permutation(len(texts))[:limit]))
    try:
        measured = measure_pair_classifier(model, texts, seed)
    except ValueError as error:
        raise DataError(inputs[0], str(error)) from error
    lines = [f"{measured.pairs:,} pairs, {model.signature}", f"  {'':<26} {'P':>7} {'R':>7} {'F1':>7}"]
    for name, quality in (
        ("random, at 0.5", measured.random_half),
        (f"  at {measured.random_best.threshold:.3f} (from training)", measured.random_best),
        ("containment, at 0.5", measured.contained_half),
        (f"  at {measured.contained_best.threshold:.3f}", measured.contained_best),
    ):
        lines.append(f"  {name:<26} {quality.precision:7.1%} {quality.recall:7.1%} {quality.f1:7.1%}")
    for name, value, meaning in (
        ("AUC, random", measured.auc, "beats a random target; 0.5 is chance"),
        ("calibration error", measured.calibration_error, "how far probabilities are from shares; 0 is best"),
        ("accuracy@1", measured.accuracy_at_1, "the nearest of all targets by cosine is a translation"),
    ):
        lines.append(f"  {name:<26} {value:7.3f}   {meaning}")
    return {"signature": model.signature, **asdict(measured)}, lines


def _read_sentence_pairs(inputs: tuple[str, ...], max_length: int) -> TextPairs:
    from moses_compat.corpora.bitexts import read_parallel_texts, read_phrase_texts

    if len(inputs) == 1:
        return read_phrase_texts(inputs[0], max_length, 0)
    try:
        return read_parallel_texts(inputs[0], inputs[1]).up_to(max_length)
    except ValueError as error:
        raise DataError(inputs[1], str(error)) from error


def evaluate_tagger(inputs: tuple[str, ...], folder: str, language: str | None) -> Evaluation:
    """Measure a tagger; return the figures and the lines that show them.

    Args:
        inputs: one treebank.
        folder: model folder.
        language: language of the treebank.

    Raises:
        click.UsageError: there is more than one input, or the language is missing or unknown.
        PhraseToolError: the model or the treebank cannot be read.
    """
    from moses_compat.corpora.treebanks import read_conllu
    from phrasetool.tagger.model import TaggerModel, tag_accuracy

    if len(inputs) != 1:
        raise click.UsageError("a tagger is measured on one treebank in CoNLL-U")
    model = TaggerModel.load(folder)
    if language is None:
        raise click.UsageError(f"name the language of the treebank with --language: {', '.join(model.languages)}")
    try:
        model.check_language(language)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    accuracy = tag_accuracy(model, read_conllu(inputs[0]), language)
    lines = [
        f"{accuracy.words:,} words of {accuracy.sentences:,} sentences, {model.signature}",
        f"  {'accuracy':<24} {accuracy.accuracy:6.1%}   words with the right tag",
        f"  {'  without capitals':<24} {accuracy.lower_accuracy:6.1%}   the same of lower-cased sentences",
        *(f"  {'  ' + tag:<24} {share:6.1%}" for tag, share in accuracy.by_tag.items()),
    ]
    return {"signature": model.signature, "language": language, **asdict(accuracy)}, lines


_SYNTAX_VECTORS = {
    "model": "the encoder",
    "words": "words they share (TF-IDF), no syntax",
    "untrained": "the encoder before training",
    "random": "noise",
    "tags": "how often each part of speech occurs, without order",
}


def evaluate_syntax(
    inputs: tuple[str, ...], folder: str, sentences: str | None, seed: int, literal: bool
) -> Evaluation:
    """Measure a syntactic encoder; return the figures and the lines that show them.

    Args:
        inputs: one tagged text.
        folder: model folder.
        sentences: file of the words, if the tagged text has tags only.
        seed: random seed.
        literal: whether to compute FD as the paper defines it.

    Raises:
        click.UsageError: there is more than one input.
        PhraseToolError: the model or a text cannot be read, or no six sentences have the same parts of speech.
    """
    from moses_compat.corpora.treebanks import read_tagged_text
    from phrasetool.syntax.evaluation import syntax_quality
    from phrasetool.syntax.model import SyntaxModel

    if len(inputs) != 1:
        raise click.UsageError("a syntactic encoder is measured on one tagged text")
    model = SyntaxModel.load(folder)
    lines, tags = read_tagged_text(inputs[0], sentences)
    try:
        result = syntax_quality(model, lines, tags, seed, literal)
    except ValueError as error:
        raise DataError(inputs[0], str(error)) from error
    rows = [
        f"{result.sentences:,} sentences, {model.signature}",
        f"{result.grouped:,} of them in {result.groups:,} groups with the same parts of speech",
        f"  {'':<10} {'1-NN':>6} {'5-NN':>6} {'FD':>6} {'rho':>6}",
    ]
    for name, quality in result.vectors.items():
        figures = f"{quality.nearest_1:6.1%} {quality.nearest_5:6.1%} {quality.fd:6.3f} {quality.rho:6.3f}"
        rows.append(f"  {name:<10} {figures}   {_SYNTAX_VECTORS[name]}")
    rows.append(f"  {'chance':<10} {result.chance:6.1%} {result.chance:6.1%}")
    return {"signature": model.signature, **asdict(result)}, rows
