"""`phrasetool neighbours`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.options import default_model, device_option, engine_options, model_option
from phrasetool_cli.shared.model_views.nearest_sentences import nearest_sentences
from phrasetool_cli.shared.model_views.neighbour_lists import as_dicts, predicted_words, shown_text

if TYPE_CHECKING:
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.neighbours import Neighbour

    # Title -> what is listed under it.
    _Shown = Mapping[str, Iterable[Neighbour]]

_EXAMPLE = """\b
Example:
  phrasetool neighbours "do not agree" -m phrasetool-model --pairs pairs.gz
  phrasetool neighbours "a man rides a horse ." -m autoencoder.en --sentences mono.en.gz
  phrasetool neighbours "a man rides a horse ." -m syntax --sentences mono.en.gz
  phrasetool neighbours "do not agree" -m demo-output/model --pairs demo-output/pairs.gz
  phrasetool train --model autoencoder demo-output/corpus.en -o demo-output/autoencoder --epochs 60
  phrasetool neighbours "he is the chairman ." -m demo-output/autoencoder --sentences demo-output/corpus.en
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("phrase", nargs=-1, required=True)
@sections(
    "What is searched",
    model_option,
    click.option("--pairs", metavar="FILE",
                 help="Phrases to search: pairs or a table.  [default: the pairs the model was trained on]"),
    click.option("--side", type=click.Choice(["source", "target", "auto"]), default="auto",
                 help="The language of PHRASE; auto: the one that knows more of its words."),
    click.option("--sentences", metavar="FILE",
                 help="Sentences to search, one a line, with an autoencoder or an encoder of syntax; PHRASE is a "
                      "sentence then."),
    "What is shown",
    click.option("-k", "--count", type=click.IntRange(1), default=5, metavar="N", help="How many neighbours."),
    json_option,
    None,
    device_option("Where to encode sentences: cpu, cuda or auto."),
    engine_options,
)  # fmt: skip
def command(
    phrase: tuple[str, ...], model_folder: str | None, pairs: str | None, side: str, sentences: str | None, count: int,
    device: str, json_file: str | None, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Show the nearest phrases or sentences.

    Of PHRASE, those nearest in its own language are shown, and those nearest to its transformation in the other.

    With a translator as the model, PHRASE is a sentence to translate: for each vector that it predicts, word by word,
    the nearest target words are shown, with their cosines.

    With --sentences, and an autoencoder or an encoder of syntax as the model, show the sentences of a file whose
    vectors are nearest to that of the sentence PHRASE by their cosine; the sentence itself is left out, and of equal
    ones all but the first.
    """
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.models.neural import NeuralModel
    from phrasetool.models.storage import load_model

    text = " ".join(phrase).encode("utf-8", "surrogateescape")
    folder = model_folder or default_model()
    document = json_document(json_file, [pairs, sentences])
    if sentences is not None:
        if pairs is not None or side != "auto":
            raise click.UsageError("--pairs and --side are for phrases; leave them out with --sentences")
        found, shown = nearest_sentences(folder, text, sentences, count, device, threads, quiet)
        document(found)
        _show(shown, json_file)
        return
    model = load_model(folder)
    if isinstance(model, NeuralModel):
        if pairs is not None or side != "auto":
            raise click.UsageError("--pairs and --side are for models of phrase pairs; leave them out")
        found, shown = predicted_words(model, text, count)
    elif isinstance(model, BilingualModel):
        found, shown = _phrases(model, text, pairs, side, count)
    else:
        raise PhraseToolError(
            f"{folder}: no model of phrase pairs; with an autoencoder or an encoder of syntax, name texts with "
            "--sentences"
        )
    document(found)
    _show(shown, json_file)


def _phrases(
    model: BilingualModel, text: bytes, pairs: str | None, side: str, count: int
) -> tuple[dict[str, Any], _Shown]:
    """Search the phrases of both languages."""
    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from phrasetool.neighbours import NearestPhrases, language_of

    side = language_of(model, text, side)
    file = pairs or model.training.get("pairs_file")
    if not file:
        raise PhraseToolError("the model does not say what it was trained on; name phrases to search with --pairs")
    vocabularies = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    with Input(file) as source:
        data = read_training_pairs(source, vocabularies=(vocabularies["source"], vocabularies["target"]))
    index = NearestPhrases(model, data.sources, data.targets)
    same, across = index.nearest(vocabularies[side].ids(text), side == "target", count)
    other = "source" if side == "target" else "target"
    found = {name: as_dicts(list_, "phrase") for name, list_ in ((side, same), (other, across))}
    shown = {f"nearest in the same language ({side})": same, f"nearest in the {other} language": across}
    return {"phrase": shown_text(text), "side": side, **found}, shown


def _show(tables: _Shown, json_file: str | None) -> None:
    """Print lists under their titles, unless JSON comes in their place."""
    for title, neighbours in tables.items() if json_file != "-" else ():
        click.echo(title)
        for neighbour in neighbours:
            click.echo(f"  {neighbour.similarity:6.3f}  {shown_text(neighbour.text)}")
