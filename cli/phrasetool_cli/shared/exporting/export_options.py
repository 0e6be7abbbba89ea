"""The options of `phrasetool export`, and which of them go with what it writes."""

from __future__ import annotations

import re
from typing import Any

import click

from phrasetool_cli.command import sections
from phrasetool_cli.options import output_option
from phrasetool_cli.parameter_types import Share, column_pair

# What is written -> its forms, the first by default, and the options that belong to it.
KINDS = {
    "vmap": ((), {"most", "longest", "always", "least", "source_vocabulary", "target_vocabulary", "evaluate", "sort",
                  "model_folder", "columns", "scale"}),
    "shortlist": (("text", "binary"), {"form", "most", "always", "least", "source_vocabulary", "target_vocabulary",
                                       "evaluate", "sort", "model_folder", "columns", "scale"}),
    "lexicon": (("tsv", "csv", "tbx"), {"form", "languages", "most", "longest", "least", "count", "stop_words",
                                        "sample", "evaluate", "model_folder", "columns", "scale"}),
    "bicleaner": ((), {"reverse", "least"}),
}  # fmt: skip
_FLAGS = {
    "form": "--format", "languages": "--languages", "most": "--targets", "longest": "--longest", "always": "--always",
    "least": "--min-prob", "count": "--min-count", "stop_words": "--stop-words", "sample": "--sample",
    "source_vocabulary": "--source-vocab", "target_vocabulary": "--target-vocab", "evaluate": "--evaluate",
    "reverse": "--reverse-out", "model_folder": "--model", "columns": "--columns", "scale": "--scale", "sort": "--sort",
}  # fmt: skip


def _two_languages(value: str) -> tuple[str, str]:
    """SOURCE,TARGET, as in de,en or zh-Hans,en."""
    if not re.fullmatch(r"[A-Za-z]{2,8}(-\w{1,8})*,[A-Za-z]{2,8}(-\w{1,8})*", value):
        raise click.BadParameter(f"{value!r} is not two codes of languages, as in de,en")
    source, _, target = value.partition(",")
    return source, target


export_options = sections(
    "What is written",
    click.option("--to", "kind", type=click.Choice(list(KINDS)), required=True, help="What for, see above."),
    output_option(),
    click.option("--format", "form", type=click.Choice(["text", "binary", "tsv", "csv", "tbx"]),
                 help="Of a shortlist: text, or binary, as Marian and Firefox map it into memory.  Of a lexicon: tsv, "
                      "csv or tbx.  [default: the first]"),
    click.option("--languages", type=_two_languages, metavar="SOURCE,TARGET", help="Of tbx: their codes, as in de,en."),
    click.option("--reverse-out", "reverse", metavar="FILE",
                 help="Write the dictionary of bicleaner from target to source here."),
    click.option("--sample", type=click.IntRange(1), metavar="N",
                 help="Of a lexicon write N pairs alone, evenly over all ranks, to be looked at by hand."),
    "What is taken",
    click.option("--targets", "most", type=click.IntRange(1), metavar="N",
                 help="Candidates of a source phrase; or translations of a term.  [default: 100, or 3]"),
    click.option("--longest", type=click.IntRange(1), metavar="N",
                 help="Words of a phrase, or of a term.  [default: 3, or 4]"),
    click.option("--always", type=click.IntRange(0), default=100, metavar="N",
                 help="The most frequent target units, which are always candidates; for a shortlist, the first ones of "
                      "the vocabulary, as Marian takes them."),
    click.option("--min-prob", "least", type=Share(), metavar="P",
                 help="Leave out what is less probable; of a term pair, in either direction.  [default: 0.01, or 0.1]"),
    click.option("--min-count", "count", type=click.IntRange(1), default=2, metavar="N",
                 help="Leave out term pairs that were extracted less often; needs joint counts if it is given."),
    click.option("--stop-words", type=click.IntRange(0), default=50, metavar="N",
                 help="The N most frequent words begin and end no term of several words."),
    "Units of the other system",
    click.option("--source-vocab", "source_vocabulary", metavar="FILE",
                 help="What splits source words into pieces: a SentencePiece model, a tokenizer.json, or merges of "
                      "subword-nmt; or a list of words."),
    click.option("--target-vocab", "target_vocabulary", metavar="FILE",
                 help="The same for target words.  What is not in it is left out."),
    "What is known of the entries",
    click.option("-m", "--model", "model_folder", metavar="FOLDER",
                 help="Weigh entries by how similar their sides are, as this model says."),
    click.option("--columns", type=column_pair, metavar="A,B",
                 help="The same by two score columns of TABLE (source-to-target first)."),
    click.option("--scale", type=click.Choice(["exp", "probability", "raw"]), default="exp",
                 help="How the similarities in --columns were written (see annotate)."),
    "How good it is",
    click.option("--evaluate", nargs=2, metavar="SRC REF",
                 help="Sentences and their translations: say how many words of REF are candidates; or how many pairs "
                      "are right.  Running text if a vocabulary splits it, else tokenised as TABLE."),
)  # fmt: skip


def checked(kind: str, given: dict[str, Any], named: set[str]) -> dict[str, Any]:
    """The options that belong to what is written, with its defaults.

    Args:
        kind: what is written.
        given: the values of all options.
        named: the options that were given.

    Raises:
        click.UsageError: one was given that does not belong to it, or two do not go together.
    """
    forms, wanted = KINDS[kind]
    for name in _FLAGS:
        if name in named and name not in wanted:
            raise click.UsageError(f"{_FLAGS[name]} does not go with --to {kind}")
    if given["form"] and given["form"] not in forms:
        raise click.UsageError(f"--to {kind} has the forms {', '.join(forms)}, not {given['form']}")
    if given["model_folder"] and given["columns"]:
        raise click.UsageError("-m and --columns both say how similar entries are; give one")
    if "scale" in named and not given["columns"]:
        raise click.UsageError("--scale is for --columns")
    found = {name: value for name, value in given.items() if name in wanted}
    if forms:
        found["form"] = given["form"] or forms[0]
    if (found.get("form") == "tbx") != bool(given["languages"]):
        raise click.UsageError("--format tbx and --languages go together")
    if kind == "lexicon":
        by_count = [_FLAGS[name] for name in ("count", "stop_words") if name in named and given[name]]
        found["by_count"] = " or ".join(by_count)
    if kind == "bicleaner":
        for path in (given["output"], given["reverse"]):
            if path and path != "-" and not path.endswith(".gz"):
                raise click.UsageError(f"bicleaner reads gzipped dictionaries; expected a name with .gz, not {path}")
    return {name: value for name, value in found.items() if value is not None}
