"""The options of mining."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.command import sections
from phrasetool_cli.parameter_types import FiniteRange, finite_number

if TYPE_CHECKING:
    from moses_compat.measures.encoder_request import EncoderRequest
    from phrasetool.bitext.pair_encoder import PairEncoder

_FOR_ENCODERS = {"target_encoder": "--target-encoder", "detokenise": "--detokenise", "prefix": "--prefix"}

mining_encoder_options = sections(
    "What sentences mean",
    click.option("-m", "--model", "model_folder", metavar="FOLDER",
                 help="A classifier of sentence pairs: it gives vectors, and the probability that a pair is parallel."),
    click.option("--encoder", metavar="FOLDER",
                 help="In its place, a sentence encoder on this machine that knows both languages: of "
                      "sentence-transformers, of transformers (mean pooling), or static (model2vec).  NAME:PATH is for "
                      "the encoder NAME of another package."),
    click.option("--target-encoder", metavar="FOLDER",
                 help="Another encoder for the target side, of the same space.  [default: the same]"),
    click.option("--detokenise", metavar="LANG",
                 help="Put tokens together by the rules of this language (de, zh, ...), or of two: SOURCE,TARGET."),
    click.option("--prefix", metavar="TEXT", help="Put this before every sentence, as in 'query: '."),
    click.option("--encoder-store", metavar="FOLDER",
                 help="Where vectors are kept: an interrupted run goes on there, and another one takes them.  "
                      "[default: OUTPUT.ID.vectors, with the ID of the encoder; none for standard output]"),
)  # fmt: skip

mining_search_options = sections(
    "How pairs are found",
    click.option("-k", "--neighbours", "k", type=click.IntRange(1), default=4, metavar="N",
                 help="Nearest sentences of the other side that are looked at."),
    click.option("--margin", type=click.Choice(["ratio", "distance", "absolute"]), default="ratio",
                 help="The cosine of a pair over, or minus, what both reach with their neighbours; or the cosine."),
    click.option("--retrieval", type=click.Choice(["max", "forward", "backward", "intersection"]), default="max",
                 help="Each sentence once, best pairs first; or the best target of each source, the best source of "
                      "each target, or what both say."),
    click.option("--search", type=click.Choice(["auto", "exact", "approximate"]), default="auto",
                 help="Compare all with all, or look into some of many cells, as many as 98 % of a sample need to find "
                      "their nearest; auto: exact up to 300,000 sentences a side."),
    click.option("--rerank", type=click.IntRange(0), metavar="N",
                 help="Candidates of a sentence that the classifier sees: the logarithm of the probability that they "
                      "are parallel, times --weight, is added to their margin; 0: none.  [default: 4 with --model]"),
    click.option("--weight", type=FiniteRange(0, 100), metavar="X",
                 help="Of probabilities, beside margins.  [default: what is best by --dev-gold of 0, 0.01, 0.02, 0.05, "
                      "0.1 and 0.2; without it 0.02]"),
    click.option("--block-rows", "block", type=click.IntRange(1), metavar="N",
                 help="Sentences that a thread takes at a time.  Changes speed and memory, never the output."),
    "What is written",
    click.option("--threshold", type=finite_number, metavar="X", help="Leave out pairs with lower scores."),
    click.option("--dev-gold", metavar="FILE",
                 help="Take the threshold with the best F1 on these pairs: all right ones of both texts."),
    click.option("--dev-source", metavar="FILE", help="The pairs of --dev-gold are of this text,"),
    click.option("--dev-target", metavar="FILE", help="and of this one, which are searched first, in the same way."),
    click.option("--min-cosine", type=FiniteRange(-1, 1), default=0.0, metavar="X",
                 help="Leave out pairs with a lower cosine, whatever their margin."),
    click.option("--drop-copies", is_flag=True, help="Leave out pairs of two equal sentences."),
    click.option("--ids", is_flag=True,
                 help="A name and a tab stand before each sentence, as in BUCC's files; names are written."),
    click.option("--explain", is_flag=True,
                 help="Columns more: margin, cosine, and with a classifier its probability, with and without length."),
)  # fmt: skip


def chosen_pair_encoder(given: dict[str, Any]) -> tuple[PairEncoder, EncoderRequest]:
    """The model or encoder that was asked for, taken out of the values of all options; and how texts are made ready.

    Raises:
        click.UsageError: options that do not go together, or a language that is none.
        ModelError: there is no such model or encoder, or it is refused.
    """
    from moses_compat.measures.encoder_request import EncoderRequest

    model, encoder, store = (given.pop(name) for name in ("model_folder", "encoder", "encoder_store"))
    more = {name: given.pop(name) for name in _FOR_ENCODERS}
    if (model is None) == (encoder is None):
        raise click.UsageError("name a classifier with --model, or a sentence encoder with --encoder")
    if named := [flag for name, flag in _FOR_ENCODERS.items() if encoder is None and more[name] is not None]:
        raise click.UsageError(f"{named[0]} is for a sentence encoder; name one with --encoder")
    if encoder is not None:
        for name, flag in (("rerank", "--rerank"), ("weight", "--weight")):
            if given[name]:
                raise click.UsageError(f"{flag} asks a classifier; name one with --model")
    try:
        request = EncoderRequest(encoder or model, more["target_encoder"], more["detokenise"], more["prefix"] or "",
                                 store=store)  # fmt: skip
    except ValueError as error:
        raise click.UsageError(f"--detokenise: {error}") from error
    from phrasetool.bitext.pair_encoder import find_pair_encoder, load_pair_model

    found = load_pair_model(model) if model is not None else find_pair_encoder(encoder, more["target_encoder"])
    return found, request
