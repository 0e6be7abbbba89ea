"""`phrasetool improve`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_inputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    PROGRAM,
    dev_option,
    force_option,
    json_document,
    json_option,
    quiet_option,
    threads_option,
)
from phrasetool_cli.parameter_types import Share, names_of

if TYPE_CHECKING:
    from moses_compat.experiments.improve import ImproveResult

# The steps of `moses_compat.experiments.improve`, which is imported when the command runs.
STEPS = ("forced-decoding", "model", "augment", "columns", "tune", "prune", "rerank")

_EXAMPLE = """\b
Example:
  phrasetool improve --moses-ini moses.ini --train train.de train.en --dev dev.de dev.en --test test.de test.en \
--size 10% -o better
  phrasetool improve --moses-ini moses.ini --train train.de train.en --dev dev.de dev.en --without rerank -o better
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@sections(
    "Input",
    click.option("--moses-ini", "ini", required=True, metavar="INI", help="moses.ini of the model to improve."),
    click.option("--train", nargs=2, required=True, metavar="SOURCE TARGET", help="Bitext of its phrase table."),
    dev_option("Development set: source and reference.  [required]"),
    click.option("--test", "tests", nargs=2, multiple=True, metavar="SOURCE TARGET",
                 help="Test set to report BLEU on; repeatable.  [default: --dev]"),
    click.option("--oov-text", "texts", multiple=True, metavar="FILE",
                 help="Source text whose unknown words get entries; repeatable.  [default: --dev and --test]"),
    click.option("--monolingual", multiple=True, metavar="FILE",
                 help="Source text, to find words with similar use; repeatable."),
    "Steps",
    click.option("--without", type=names_of(STEPS), metavar="NAME,...",
                 help=f"Leave out steps: {', '.join(STEPS)}."),
    click.option("--size", type=Share(min_open=True), metavar="SHARE",
                 help="Share of the entries to keep, as in 0.1 or 10%.  [default: the smallest that is non-inferior "
                      "on --dev by a margin of 0.3 BLEU]"),
    click.option("--seed", type=click.IntRange(1), default=1, metavar="N", help="Random seed."),
    "Output",
    click.option("-o", "--output", required=True, metavar="FOLDER", help="Output folder; an earlier run there is "
                                                                         "continued."),
    json_option,
    None,
    threads_option(),
    force_option,
    quiet_option,
)  # fmt: skip
def command(
    ini: str, train: tuple[str, str], development: tuple[str, str] | None, tests: tuple[tuple[str, str], ...],
    texts: tuple[str, ...], monolingual: tuple[str, ...], without: tuple[str, ...] | None, size: float | None,
    seed: int, output: str, json_file: str | None, threads: int, force: bool, quiet: bool,
) -> None:  # fmt: skip
    """Make a Moses model better and smaller, in one command.

    Runs forced decoding of the bitext, trains a phrase model, adds entries for out-of-vocabulary words and feature
    columns, tunes, prunes, and trains a neural reranker.  FOLDER gets the new model (moses.ini, for Moses and
    `phrasetool decode`), and a table shows BLEU after each step, with the 95 % interval of the gain.

    The same command continues an interrupted run, and repeats no finished step.
    """
    from moses_compat.experiments.improve import ImproveRequest, improve
    from moses_compat.experiments.settings import TextPair
    from phrasetool_cli.progress import TerminalWatch

    if development is None:
        raise click.UsageError("--dev SOURCE REFERENCE is required, to tune on")
    inputs = [ini, *train, *development, *(path for pair in tests for path in pair), *texts, *monolingual]
    if "-" in inputs:
        raise click.UsageError("files are read more than once, so none can be standard input")
    check_inputs(inputs)
    document = json_document(json_file, inputs)
    try:
        request = ImproveRequest(
            ini, TextPair(*train), TextPair(*development), output, [TextPair(*pair) for pair in tests], texts,
            monolingual, frozenset(without or ()), size, seed, threads, force,
        )  # fmt: skip
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    watch = TerminalWatch(quiet)
    result = improve(request, PROGRAM, watch)
    document(asdict(result))
    if json_file != "-":
        for line in result_lines(result):
            click.echo(line)


def result_lines(result: ImproveResult) -> Iterator[str]:
    """Yield the table of steps, the files and the commands that use them."""
    on = "the test set" if result.text == "test" else "the development set, which the weights were tuned on"
    yield f"BLEU on {on} ({result.sentences:,} sentences)"
    yield ""
    yield f"{'step':<14}  {'entries':>11}  {'table':>9}  {'BLEU':>6}  {'gain':>6}  {'95 %':>14}  {'minutes':>7}"
    for step in result.steps:
        size = f"{step.table_bytes / 1e6:,.1f} MB"
        gain = interval = ""
        if step.gain is not None:
            gain, interval = f"{step.gain:+.2f}", f"{step.gain_low:+.2f} to {step.gain_high:+.2f}"
        row = f"{step.step:<14}  {step.entries:>11,}  {size:>9}  {step.bleu:>6.2f}  {gain:>6}  {interval:>14}"
        yield f"{row}  {step.seconds / 60:>7.1f}"
    yield ""
    width = max(map(len, result.files))
    for name, use in result.files.items():
        yield f"{name:<{width}}  {use}"
    yield ""
    yield "Translate new text:"
    for line in result.commands:
        yield f"  {line}"
