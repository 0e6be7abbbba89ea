"""The options of an encoder of syntax whose columns are more than its cosine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.command import sections

if TYPE_CHECKING:
    from moses_compat.measures.likelihood_request import LikelihoodRequest

syntax_options = sections(
    "Encoders of syntax",
    click.option("--columns", type=click.Choice(["cosine", "likelihood", "all"]), default="cosine",
                 help="How alike the syntax of both sides is; how probable the parts of speech of the target are given "
                      "the source, and those of the source given the target; or all three."),
    click.option("--tagger", metavar="FOLDER", help="Of these: tells the parts of speech of both sides."),
    click.option("--languages", metavar="SOURCE,TARGET", help="Of these: the languages of the table, as the tagger "
                                                              "calls them."),
)  # fmt: skip


def chosen_likelihood(given: dict[str, Any], models: Sequence[str]) -> LikelihoodRequest | None:
    """What is wanted of encoders of syntax, taken out of the values of all options; None for the cosine alone.

    Args:
        given: values by name.
        models: folders of models.

    Raises:
        click.UsageError: options that do not go together, or a language that is not known.
        ModelError: a folder holds no model, or no tagger.
    """
    columns, tagger, languages = (given.pop(name) for name in ("columns", "tagger", "languages"))
    if columns == "cosine":
        if tagger or languages:
            flag = "--tagger" if tagger else "--languages"
            raise click.UsageError(f"{flag} is for --columns likelihood or all")
        return None
    from moses_compat.measures.likelihood_request import SYNTAX_COLUMNS, LikelihoodRequest
    from moses_compat.measures.model_sources import is_syntax
    from phrasetool.errors import ModelError
    from phrasetool.models.storage import read_model_config

    encoders = [folder for folder in models if is_syntax(folder)]
    if not encoders:
        raise click.UsageError(f"--columns {columns} is for an encoder of syntax; name one with -m")
    if tagger is None:
        raise click.UsageError(f"--columns {columns} needs a tagger; name one with --tagger FOLDER")
    named = tuple((languages or "").split(","))
    if len(named) != 2:
        raise click.UsageError(f"--columns {columns} needs --languages SOURCE,TARGET, such as de,en")
    config = read_model_config(Path(tagger))
    if config["model"] != "tagger":
        raise ModelError(f"{tagger}: not a tagger", remedy="train a tagger")
    known = [("tagger", config["languages"])]
    known += [("encoder", read_model_config(Path(folder))["targets"]) for folder in encoders]
    for what, there in known:
        for language in named:
            if language not in there:
                raise click.UsageError(f"unknown language {language!r}; the {what} knows {', '.join(there)}")
    return LikelihoodRequest(SYNTAX_COLUMNS[columns], tagger, (named[0], named[1]))
