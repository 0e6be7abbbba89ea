"""The options of sentence encoders that were trained elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.command import sections

if TYPE_CHECKING:
    from moses_compat.measures.encoder_request import EncoderRequest

# Those of `EncoderRequest`, in order; and what they are called.
_FLAGS = {
    "target_encoder": "--target-encoder",
    "detokenise": "--detokenise",
    "prefix": "--prefix",
    "normalise": "--normalise",
    "encoder_store": "--encoder-store",
}

encoder_options = sections(
    "Sentence encoders from elsewhere",
    click.option("--encoder", metavar="FOLDER",
                 help="Similarities by a sentence encoder on this machine that knows both languages: of "
                      "sentence-transformers, of transformers (mean pooling), or static (model2vec).  Each phrase is "
                      "encoded once.  NAME:PATH is for the encoder NAME of another package."),
    click.option("--target-encoder", metavar="FOLDER",
                 help="Another encoder for the target side, of the same space.  [default: the same]"),
    click.option("--detokenise", metavar="LANG",
                 help="Put tokens together by the rules of this language (de, zh, ...), or of two: SOURCE,TARGET."),
    click.option("--prefix", metavar="TEXT", help="Put this before every phrase, as in 'query: '."),
    click.option("--normalise", type=click.Choice(["centred-margin", "margin", "centred", "cosine"]),
                 help="Take the mean of a language off its vectors; and from the cosine what a phrase reaches with its "
                      "10 nearest of 20,000 of the other side.  [default: centred-margin, both]"),
    click.option("--encoder-store", metavar="FOLDER",
                 help="Where vectors are kept between runs.  [default: TABLE.ID.vectors, with the ID of the encoder]"),
)  # fmt: skip


def chosen_encoder(given: dict[str, Any], table: str, inputs: bool = True) -> EncoderRequest | None:
    """The encoder that was asked for, taken out of the values of all options; None if none was.

    Args:
        given: values by name.
        table: the table; it is read twice.
        inputs: whether the encoder will be asked at all.

    Raises:
        click.UsageError: options that do not go together, or a language that is none.
    """
    folder, more = given.pop("encoder"), {name: given.pop(name) for name in _FLAGS}
    named = [flag for name, flag in _FLAGS.items() if more[name] is not None]
    if folder is None:
        if named:
            raise click.UsageError(f"{named[0]} is for a sentence encoder; name one with --encoder")
        return None
    from moses_compat.files.names import is_stream
    from moses_compat.measures.encoder_request import EncoderRequest

    if inputs and is_stream(table):
        raise click.UsageError("--encoder reads the table twice, so it cannot come from standard input or a pipe")
    if os.path.isfile(os.path.join(folder, "source.vocab")):
        raise click.UsageError(f"{folder} is a model of phrasetool; name it with -m")
    found = {"target_folder" if name == "target_encoder" else name.removeprefix("encoder_"): value
             for name, value in more.items() if value is not None}  # fmt: skip
    try:
        return EncoderRequest(folder, **found)
    except ValueError as error:
        raise click.UsageError(f"--detokenise: {error}") from error
