"""The sentences of a file that are nearest to a sentence: by meaning with an autoencoder, by syntax."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phrasetool_cli.progress import ItemProgress, TableProgress, say
from phrasetool_cli.shared.model_views.neighbour_lists import as_dicts, shown_text

if TYPE_CHECKING:
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.neighbours import Neighbour
    from phrasetool.syntax.model import SyntaxModel

    # Title -> what is listed under it.
    Shown = Mapping[str, Iterable[Neighbour]]


def nearest_sentences(
    folder: str, text: bytes, file: str, count: int, device: str, threads: int, quiet: bool
) -> tuple[dict[str, Any], Shown]:
    """Search the sentences of a file; what was found for programs and for people.

    Args:
        folder: of an autoencoder or an encoder of syntax.
        text: a sentence.
        file: with a sentence a line.
        count: how many to list.
        device, threads: where an autoencoder reads.
        quiet: no progress.

    Raises:
        PhraseToolError: the model or the file cannot be read, or nothing is known of the sentence.
    """
    from phrasetool.models.storage import load_autoencoder, read_model_config
    from phrasetool.syntax.model import load_syntax_model

    if read_model_config(Path(folder))["model"] == "syntax":
        return _by_syntax(load_syntax_model(folder), text, file, count, quiet)
    return _by_meaning(load_autoencoder(folder), text, file, count, device, threads, quiet)


def _by_syntax(model: SyntaxModel, text: bytes, file: str, count: int, quiet: bool) -> tuple[dict[str, Any], Shown]:
    """By the vectors of an encoder of syntax."""
    from moses_compat.corpora.texts import read_texts
    from phrasetool.neighbours import Neighbour
    from phrasetool.syntax.syntax_neighbours import nearest_by_syntax

    with TableProgress("read sentences", 0, quiet) as reading:
        sentences, symbols = read_texts(file, reading)
    near, searched = nearest_by_syntax(model, text, sentences, symbols.words, count)
    found = [Neighbour(*one) for one in near]
    told = {"sentence": shown_text(text), "searched": searched, "nearest": as_dicts(found, "sentence")}
    return told, {f"nearest of {searched:,} sentences": found}


def _by_meaning(
    model: AutoencoderModel, text: bytes, file: str, count: int, device: str, threads: int, quiet: bool
) -> tuple[dict[str, Any], Shown]:
    """Search the sentences of a file."""
    import torch

    from moses_compat.corpora.texts import read_texts
    from phrasetool.nn.device import choose_device
    from phrasetool.nn.positions import LONGEST
    from phrasetool.sentence_neighbours import NearestSentences, sentence_words
    from phrasetool.unique_phrases import distinct_phrases

    place = choose_device(device)
    torch.set_num_threads(threads)
    sentence = sentence_words(model, text)
    with TableProgress("read sentences", 0, quiet) as reading:
        everything, symbols = read_texts(file, reading)
    sentences = everything.select(everything.lengths <= LONGEST)
    if not quiet and (left_out := len(everything) - len(sentences)):
        say(f"{left_out:,} lines of more than {LONGEST} words are left out")
    sentences = distinct_phrases(sentences)[1]
    with ItemProgress("encode", len(sentences), "sentence", quiet) as progress:
        index = NearestSentences(model, sentences, symbols.words, place, progress.tick)
    found = index.nearest(sentence, count)
    told = {"sentence": shown_text(text), "searched": len(sentences), "nearest": as_dicts(found, "sentence")}
    return told, {f"nearest of {len(sentences):,} sentences": found}
