"""The options of sentence encoders that were trained elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.command import sections

if TYPE_CHECKING:
    from moses_compat.measures.similarity_requests import EncoderRequest

# Parameters of sentence encoders -> their options.
FOR_ENCODERS = {"target_encoder": "--target-encoder", "detokenise": "--detokenise", "prefix": "--prefix"}
# Parameters of `EncoderRequest`, in order -> their options.
_FLAGS = {
    "target_encoder": "--target-encoder",
    "detokenise": "--detokenise",
    "prefix": "--prefix",
    "normalise": "--normalise",
    "encoder_store": "--encoder-store",
}

sentence_encoder_options = sections(
    "Sentence encoder",
    click.option("--encoder", metavar="FOLDER",
                 help="Pretrained sentence encoder."),
    click.option("--target-encoder", metavar="FOLDER",
                 help="Encoder of the target side.  [default: the same]"),
    click.option("--detokenise", metavar="LANG",
                 help="Detokenise by language, or SOURCE,TARGET."),
    click.option("--prefix", metavar="TEXT", help="Put this before every text, as in 'query: '."),
)  # fmt: skip

encoder_options = sections(
    "Sentence encoder",
    sentence_encoder_options,
    click.option("--normalise", type=click.Choice(["centred-margin", "margin", "centred", "cosine"]),
                 help="Centre vectors, apply CSLS.  [default: the first]"),
    click.option("--encoder-store", metavar="FOLDER",
                 help="Folder of kept vectors.  [default: TABLE.ID.vectors]"),
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
    from moses_compat.files.paths import is_stream
    from moses_compat.measures.similarity_requests import EncoderRequest

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
