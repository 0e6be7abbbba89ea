"""`phrasetool neighbours`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.checks import refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    default_model,
    device_option,
    engine_options,
    json_document,
    json_option,
    model_option,
)
from phrasetool_cli.progress import ItemProgress, TableProgress, say

if TYPE_CHECKING:
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.phrase_encoder.model import BilingualModel
    from phrasetool.phrase_encoder.neighbours import Neighbour
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.translator.model import TranslatorModel

    # Title -> neighbours that are listed under it.
    _Shown = Mapping[str, Iterable[Neighbour]]

    # Title -> neighbours that are listed under it.
    Shown = Mapping[str, Iterable[Neighbour]]

_RENAMED = {"--count": "--neighbours"}
_EXAMPLE = """\b
Example:
  phrasetool neighbours "do not agree" -m phrasetool-model --pairs pairs.gz
  phrasetool neighbours "a man rides a horse ." -m autoencoder.en --sentences mono.en.gz
  phrasetool neighbours "a man rides a horse ." -m syntax --sentences mono.en.gz
  phrasetool neighbours "do not agree" -m demo-output/model --pairs demo-output/pairs.gz
  phrasetool train autoencoder demo-output/corpus.en -o demo-output/autoencoder --epochs 60
  phrasetool neighbours "he is the chairman ." -m demo-output/autoencoder --sentences demo-output/corpus.en
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, epilog=_EXAMPLE)
@click.argument("phrase", nargs=-1, required=True)
@sections(
    "Input",
    model_option,
    click.option("--pairs", metavar="FILE",
                 help="Phrases to search: pairs or a table.  [default: the training pairs]"),
    click.option("--side", type=click.Choice(["source", "target", "auto"]), default="auto",
                 help="Language of PHRASE; auto: the one that contains more of its words."),
    click.option("--sentences", metavar="FILE",
                 help="Sentences to search, with an autoencoder or a syntactic encoder."),
    "Output",
    click.option("-k", "--neighbours", "count", type=click.IntRange(1), default=5, metavar="N",
                 help="Number of nearest neighbours."),
    json_option,
    None,
    device_option("Device of an autoencoder: cpu, cuda or auto."),
    engine_options,
)  # fmt: skip
def command(
    phrase: tuple[str, ...], model_folder: str | None, pairs: str | None, side: str, sentences: str | None, count: int,
    device: str, json_file: str | None, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Show the nearest phrases or sentences.

    With a phrase model, shows the phrases nearest to PHRASE in its own language by cosine, and those nearest to its
    transformation in the other language by similarity, which is calibrated as in `phrasetool show`.

    With a translator, PHRASE is a sentence to translate: for each predicted vector, word by word, shows the nearest
    target words with their cosines.

    With --sentences and an autoencoder or a syntactic encoder, shows the sentences of the file whose vectors have the
    highest cosines with that of the sentence PHRASE; the sentence itself and duplicates are left out.
    """
    from phrasetool.models.families import any_of
    from phrasetool.models.saved_model import load_saved_model, read_model_config
    from phrasetool.phrase_encoder.model import BilingualModel
    from phrasetool.translator.model import TranslatorModel

    text = " ".join(phrase).encode("utf-8", "surrogateescape")
    folder = model_folder or default_model()
    document = json_document(json_file, [pairs, sentences])
    if read_model_config(Path(folder))["model"] != "autoencoder":
        refuse_unused({"device": any_of(["autoencoder"])})
    if sentences is not None:
        if pairs is not None or side != "auto":
            raise click.UsageError("--pairs and --side are for phrases; leave them out with --sentences")
        result, shown = nearest_sentences(folder, text, sentences, count, device, threads, quiet)
        document(result)
        _show(shown, json_file)
        return
    model = load_saved_model(folder)
    if isinstance(model, TranslatorModel):
        if pairs is not None or side != "auto":
            raise click.UsageError("--pairs and --side are for models of phrase pairs; leave them out")
        result, shown = predicted_words(model, text, count)
    elif isinstance(model, BilingualModel):
        result, shown = _phrases(model, text, pairs, side, count)
    else:
        raise PhraseToolError(
            f"{folder}: not a model of phrase pairs; with an autoencoder or a syntactic encoder, name texts with "
            "--sentences"
        )
    document(result)
    _show(shown, json_file)


def _phrases(
    model: BilingualModel, text: bytes, pairs: str | None, side: str, count: int
) -> tuple[dict[str, Any], _Shown]:
    """Search the phrases of both languages."""
    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from phrasetool.phrase_encoder.neighbours import NearestPhrases, language_of

    side = language_of(model, text, side)
    file = pairs or model.training.get("pairs_file")
    if not file:
        raise PhraseToolError("the model does not record its training pairs; name phrases to search with --pairs")
    if pairs is None and not Path(file).exists():
        raise PhraseToolError(f"{file}: the training pairs of the model do not exist; name phrases with --pairs")
    vocabularies = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    with Input(file) as source:
        data = read_training_pairs(source, vocabularies=(vocabularies["source"], vocabularies["target"]))
    index = NearestPhrases(model, data.sources, data.targets)
    same, across = index.nearest(vocabularies[side].ids(text), side == "target", count)
    other_side = "source" if side == "target" else "target"
    nearest = {name: as_dicts(list_, "phrase") for name, list_ in ((side, same), (other_side, across))}
    shown = {f"nearest in the same language ({side})": same, f"nearest in the {other_side} language": across}
    return {"phrase": shown_text(text), "side": side, **nearest}, shown


def _show(tables: _Shown, json_file: str | None) -> None:
    """Print lists under their titles, unless JSON is written to standard output."""
    for title, neighbours in tables.items() if json_file != "-" else ():
        click.echo(title)
        for neighbour in neighbours:
            click.echo(f"  {neighbour.similarity:6.3f}  {shown_text(neighbour.text)}")


def nearest_sentences(
    folder: str, text: bytes, file: str, count: int, device: str, threads: int, quiet: bool
) -> tuple[dict[str, Any], _Shown]:
    """Search the sentences of a file; return the result as a document and as a list to show.

    Args:
        folder: folder of an autoencoder or a syntactic encoder.
        text: the sentence.
        file: file with one sentence per line.
        count: maximum number of sentences to list.
        device, threads: device and number of threads of an autoencoder.
        quiet: whether progress is not reported.

    Raises:
        PhraseToolError: the model or the file cannot be read, or the model knows no word of the sentence.
    """
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.models.saved_model import read_model_config
    from phrasetool.syntax.model import SyntaxModel

    if read_model_config(Path(folder))["model"] == "syntax":
        return _by_syntax(SyntaxModel.load(folder), text, file, count, quiet)
    return _by_meaning(AutoencoderModel.load(folder), text, file, count, device, threads, quiet)


def _by_syntax(model: SyntaxModel, text: bytes, file: str, count: int, quiet: bool) -> tuple[dict[str, Any], _Shown]:
    """Search by the vectors of a syntactic encoder."""
    from moses_compat.corpora.texts import read_texts
    from phrasetool.syntax.model import nearest_by_syntax

    with TableProgress("read sentences", 0, quiet) as reading:
        sentences, symbols = read_texts(file, reading)
    return _listed(text, *nearest_by_syntax(model, text, sentences, symbols.words, count))


def _by_meaning(
    model: AutoencoderModel, text: bytes, file: str, count: int, device: str, threads: int, quiet: bool
) -> tuple[dict[str, Any], _Shown]:
    """Search by the vectors of an autoencoder."""
    import torch

    from moses_compat.corpora.texts import read_texts
    from phrasetool.autoencoder.inference import NearestSentences, sentence_words
    from phrasetool.nn.device import choose_device
    from phrasetool.nn.positions import LONGEST
    from phrasetool.unique_phrases import distinct_phrases

    torch_device = choose_device(device)
    torch.set_num_threads(threads)
    sentence = sentence_words(model, text)
    with TableProgress("read sentences", 0, quiet) as reading:
        everything, symbols = read_texts(file, reading)
    sentences = everything.select(everything.lengths <= LONGEST)
    if not quiet and (left_out := len(everything) - len(sentences)):
        say(f"{left_out:,} lines of more than {LONGEST} words are left out")
    sentences = distinct_phrases(sentences)[1]
    with ItemProgress("encode", len(sentences), "sentence", quiet) as progress:
        index = NearestSentences(model, sentences, symbols.words, torch_device, progress.tick)
    return _listed(text, index.nearest(sentence, count), len(sentences))


def _listed(text: bytes, nearest: list[tuple[bytes, float]], searched: int) -> tuple[dict[str, Any], _Shown]:
    """Return the nearest of the sentences that were searched, as a document and as a list to show."""
    from phrasetool.phrase_encoder.neighbours import Neighbour

    neighbours = [Neighbour(*pair) for pair in nearest]
    document = {"sentence": shown_text(text), "searched": searched, "nearest": as_dicts(neighbours, "sentence")}
    return document, {f"nearest of {searched:,} sentences": neighbours}


# Shown in place of the end of a sentence.
_END = b"</s>"


def predicted_words(
    model: TranslatorModel, text: bytes, count: int
) -> tuple[dict[str, Any], dict[str, list[Neighbour]]]:
    """Return lists as a document and to show, one for each word of the greedy translation and its end.

    Args:
        model: a translator.
        text: a source sentence.
        count: number of words per list.

    Raises:
        PhraseToolError: the sentence has no word or too many, or the translator predicts no vectors.
    """
    from phrasetool.phrase_encoder.neighbours import Neighbour
    from phrasetool.phrases import Phrases
    from phrasetool.translator.decoding import nearest_words

    sentence = Phrases.from_lists([model.source_vocabulary.ids(text)])
    words = [*model.target_vocabulary.words, _END]
    try:
        steps = nearest_words(model.network, sentence, model.temperature, count)
    except ValueError as error:
        raise PhraseToolError(str(error)) from error
    lists = [
        [Neighbour(words[i], float(cosine)) for i, cosine in zip(step.words, step.cosines, strict=True)]
        for step in steps
    ]
    shown = {f"position {number}": near for number, near in enumerate(lists, 1)}
    document = {"sentence": shown_text(text), "predicted": [as_dicts(near, "word") for near in lists]}
    return document, shown


def shown_text(text: bytes) -> str:
    """Return text to show; bytes that are not UTF-8 are replaced."""
    return text.decode("utf-8", "replace")


def as_dicts(neighbours: Iterable[Neighbour], name: str) -> list[dict[str, Any]]:
    """Return neighbours for JSON documents, with their texts under the key `name`."""
    return [{name: shown_text(n.text), "similarity": round(n.similarity, 6)} for n in neighbours]
