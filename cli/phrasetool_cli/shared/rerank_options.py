"""What `rescore` and `rerank` share: the models and what is made of their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.shared.sections import sections

if TYPE_CHECKING:
    from moses_compat.engine.n_best_lists import NBestList
    from moses_compat.jobs.rerank import FeaturedList
    from moses_compat.jobs.rescore import NeuralColumns, SourceText
    from phrasetool.watch import Watch

source_option = click.option(
    "--source", required=True, metavar="FILE",
    help="The text that the list translates, a tokenised sentence a line; sentence 0 of the list is its first line.",
)  # fmt: skip

column_options = sections(
    "What the columns say",
    click.option("--length", type=click.Choice(["words", "none"]), default="words",
                 help="Divide a log probability by the words it is of, and their end, or leave it."),
    click.option("--each", is_flag=True,
                 help="A column a model; else a column a direction, the mean of its models' log probabilities."),
)  # fmt: skip


def models_option(required: bool) -> Callable[[Any], Any]:
    """`--model`, several times."""
    return click.option(
        "-m", "--model", "folders", multiple=True, required=required, metavar="FOLDER",
        help="A neural translator, of either direction: its vocabularies tell.  Again for another one.",
    )  # fmt: skip


def load_columns(folders: Sequence[str], text: SourceText, found: NBestList, length: str, each: bool) -> NeuralColumns:
    """The features that models give of a list.

    Raises:
        ModelError: a model cannot be loaded, or its languages are others.
    """
    from moses_compat.jobs.rescore import NeuralColumns, load_directed

    return NeuralColumns([load_directed(folder, text, found) for folder in folders], length, each)


def featured_list(
    columns: NeuralColumns, text: SourceText, found: NBestList, threads: int, force: bool, watch: Watch
) -> FeaturedList:
    """A list with its features, after it was asked whether it is a list of the text.

    Raises:
        PhraseToolError: it is not; or it has the features already.
    """
    from moses_compat.jobs.rerank import FeaturedList
    from moses_compat.jobs.rescore import check_fit

    check_fit(columns.models, text, found, threads, force, watch)
    missing = len(text.sentences) - len(set(found.sentences.tolist()))
    if missing:
        watch.warn(f"{found.name}: no hypotheses of {missing:,} of the {len(text.sentences):,} lines of {text.name}")
    return FeaturedList.of(found, *columns.values(text, found, threads, watch))
