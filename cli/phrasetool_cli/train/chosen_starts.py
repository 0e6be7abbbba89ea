"""What the encoders of both languages start from."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from phrasetool.training.start import Start

_SIDES = ("source", "target")


def chosen_starts(chosen: dict[str, Any]) -> tuple[Start, Start]:
    """What both languages start from; takes it out of what was chosen, and leaves there what autoencoders prescribe.

    Raises:
        click.UsageError: flags contradict each other, or what an autoencoder prescribes.
        ModelError: a folder does not hold an autoencoder that can serve as the encoder of phrases.
    """
    from moses_compat.corpora.texts import unescaped_sentences
    from moses_compat.files.byte_stream import open_bytes
    from phrasetool.models.storage import load_autoencoder
    from phrasetool.training.start import Start, prescribed_settings

    given = {side: {what: chosen.pop(f"{side}_{what}") for what in ("text", "vectors", "autoencoder")}
             for side in _SIDES}  # fmt: skip
    for side in _SIDES:
        for what in ("text", "vectors"):
            if given[side]["autoencoder"] and given[side][what]:
                raise click.UsageError(f"--{side}-autoencoder brings word vectors; leave out --{side}-{what}")
            if chosen["vectors"] == "random" and given[side][what]:
                raise click.UsageError(f"--vectors random draws all word vectors; leave out --{side}-{what}")
    folders = [given[side]["autoencoder"] for side in _SIDES]
    if chosen["vectors"] and all(folders):
        raise click.UsageError("autoencoders bring word vectors; leave out --vectors")
    models = [load_autoencoder(folder) if folder else None for folder in folders]
    for folder, model in zip(folders, models, strict=True):
        if model is not None:
            try:
                chosen.update(prescribed_settings(model, folder, chosen))
            except ValueError as error:
                raise click.UsageError(str(error)) from error
    if chosen.get("transformation") == "identity" and not all(given[side]["vectors"] for side in _SIDES):
        raise click.UsageError("--transformation identity is for word vectors of one space; name them with "
                               "--source-vectors and --target-vectors")  # fmt: skip
    named = [tuple(filter(None, (*given[side]["text"], given[side]["vectors"]))) for side in _SIDES]
    source, target = (
        Start(functools.partial(unescaped_sentences, given[side]["text"]) if given[side]["text"] else None,
              given[side]["vectors"], model, folder or ", ".join(files), files, open_bytes)
        for side, folder, model, files in zip(_SIDES, folders, models, named, strict=True)
    )  # fmt: skip
    return source, target
