"""`phrasetool lm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.options import json_document, json_option, output_option, quiet_option, temporary_option
from phrasetool_cli.parameter_types import size_in_bytes
from phrasetool_cli.progress import TerminalWatch, say

if TYPE_CHECKING:
    from moses_compat.files.streams import Output

# With orders of some hundreds, lmplz does not terminate.
_LARGEST_ORDER = 100
_EXAMPLE = """\b
Example:
  phrasetool lm train.en.gz more.en.gz --order 5 --prune 0 0 1 1 2 -o lm.arpa.gz
  phrasetool lm demo-output/corpus.en --order 3 -o - | head
"""


class _NumbersAfterPrune(SectionedCommand):
    """A command that takes all numbers after `--prune`, as lmplz does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join the numbers after `--prune` into one value."""
        joined: list[str] = []
        numbers: list[str] | None = None
        for argument in args:
            if numbers is not None and argument.isdecimal():
                numbers.append(argument)
                continue
            if numbers:
                joined.append(" ".join(numbers))
            numbers = [] if argument == "--prune" else None
            joined.append(argument)
        if numbers:
            joined.append(" ".join(numbers))
        return super().parse_args(ctx, joined)


def _parse_prune(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    from phrasetool.smt.language_model.kneser_ney import pruning_thresholds

    fields = value.split()
    if not all(field.isdecimal() for field in fields):
        raise click.BadParameter(f"expected numbers, found {value!r}")
    prune = [int(field) for field in fields]
    try:
        pruning_thresholds(prune, context.params["order"])
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return prune


@click.command(cls=_NumbersAfterPrune, epilog=_EXAMPLE)
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@output_option("Output file (ARPA text).")
@click.option("--order", type=click.IntRange(1, _LARGEST_ORDER), default=5, metavar="N", is_eager=True,
              help="Length of the longest n-grams.")  # fmt: skip
@click.option("--prune", default="", show_default=False, metavar="N...", callback=_parse_prune,
              help="Drop n-grams with at most this count, for each order (as lmplz).")  # fmt: skip
@click.option("--estimator", type=click.Choice(["auto", "lmplz", "built-in"]), default="auto",
              help="Estimate with kenlm's lmplz, or built-in; same model.")  # fmt: skip
@click.option(
    "--memory",
    type=size_in_bytes,
    default="2G",
    metavar="BYTES",
    help="Memory for n-grams before temporary files are used.",
)
@temporary_option
@json_option
@quiet_option
def command(
    corpora: tuple[str, ...], output: str, order: int, prune: list[int], estimator: str, memory: int,
    temporary: str | None, json_file: str | None, quiet: bool,
) -> None:  # fmt: skip
    """Estimate a language model.

    CORPUS... is text with one sentence per line and words separated by spaces.  The smoothing is interpolated modified
    Kneser-Ney.  If the corpus is too small to estimate the discounts of an order, those of
    `lmplz --discount_fallback` (0.5 1 1.5) are used, with a warning.  Files may be gzip; `-` is standard input.
    """
    from moses_compat.engine.language_models import find_lmplz
    from moses_compat.files.paths import same_file
    from moses_compat.files.streams import Output
    from phrasetool.errors import PhraseToolError

    check_outputs(list(corpora), [output])
    check_inputs(corpora)
    document = json_document(json_file, corpora, [output])
    for i, path in enumerate(corpora):
        if any(same_file(path, earlier) for earlier in corpora[:i]):
            TerminalWatch(quiet).warn(f"{path}: is given twice; its words count twice")
    program = find_lmplz() if estimator != "built-in" else None
    if estimator == "lmplz" and not program:
        raise PhraseToolError("lmplz is not on the PATH; install kenlm's programs, or use --estimator built-in")
    with Output(output) as destination:
        if program:
            replaced = _with_lmplz(program, corpora, destination, order, prune, memory, temporary, quiet)
        else:
            replaced = _built_in(corpora, destination, order, prune, memory, temporary, quiet)
    document(
        {
            "estimator": "lmplz" if program else "built-in", "order": order, "prune": prune,
            "replaced_discounts": replaced, "output": output,
        }
    )  # fmt: skip
    if replaced:
        named = ", ".join(map(str, replaced))
        say(f"lm: warning: the corpus is too small or odd to estimate the discounts of order {named}; "
            "they are 0.5 1 1.5")  # fmt: skip


def _with_lmplz(
    program: str, corpora: Sequence[str], destination: Output, order: int, prune: list[int], memory: int,
    folder: str | None, quiet: bool,
) -> list[int]:  # fmt: skip
    from moses_compat.corpora.texts import corpus_blocks
    from moses_compat.engine.language_models import run_lmplz
    from phrasetool.smt.language_model.ngram_counts import MARKERS

    TerminalWatch(quiet).say(f"lm: estimating with {program}")
    return run_lmplz(program, corpus_blocks(corpora, MARKERS), destination, order, prune, memory, folder)


def _built_in(
    corpora: Sequence[str], destination: Output, order: int, prune: list[int], memory: int, folder: str | None,
    quiet: bool,
) -> list[int]:  # fmt: skip
    from moses_compat.engine.language_models import estimate_arpa

    (watch := TerminalWatch(quiet)).say("lm: estimating with the built-in estimator")
    estimate = estimate_arpa(corpora, destination, order, prune, memory, folder)
    orders = [
        f"{size:,}{f' of {counted:,}' if counted > size else ''} {n}-grams"
        for n, (size, counted) in enumerate(zip(estimate.ngrams, estimate.counted, strict=True), 1)
    ]
    where = ", with files" if estimate.on_disk else ""
    watch.say(f"lm: {', '.join(orders)} from {estimate.sentences:,} sentences{where}")
    return [n for n, discounts in enumerate(estimate.discounts, 1) if not discounts.estimated]
