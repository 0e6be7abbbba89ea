"""`phrasetool annotate`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from phrasetool_cli.commands.moses_ini import weight_option
from phrasetool_cli.shared.annotate_ini import ini_edit, is_given
from phrasetool_cli.shared.click_options import check_outputs, default_model, table_options

if TYPE_CHECKING:
    from moses_compat.jobs.annotate import AnnotateCounts
    from moses_compat.measures.pair_uses import PairUses
    from moses_compat.measures.smoothed import SmoothedProbabilities
    from phrasetool_cli.shared.annotate_ini import IniEdit

_EXAMPLE = """\b
Example:
  phrasetool annotate phrase-table.gz -m phrasetool-model -o phrase-table.annotated.gz
  phrasetool annotate phrase-table.gz --moses-ini moses.ini --moses-ini-out annotated.ini
  phrasetool force-decode --moses-ini moses.ini train.de train.en --leave-one-out -o forced.gz
  phrasetool annotate phrase-table.gz --forced-pairs forced.gz
  phrasetool annotate phrase-table.gz --smoothing kneser-ney --moses-ini moses.ini --moses-ini-out smoothed.ini
  phrasetool annotate demo-output/engine/phrase-table.gz -m demo-output/model -o - | head -3
"""


@click.command(epilog=_EXAMPLE)
@click.argument("table")
@click.option("-m", "--model", "model_folders", multiple=True, metavar="FOLDER",
              help="Model folder; may be repeated.  [default: $PHRASETOOL_MODEL, else ./phrasetool-model]")  # fmt: skip
@click.option("--forced-pairs", metavar="PAIRS",
              help="Pairs that `phrasetool force-decode --leave-one-out` wrote: append p(e|f) and p(f|e) by their "
                   "counts.  Without -m, no similarities.")  # fmt: skip
@click.option("--smoothing", type=click.Choice(["kneser-ney", "good-turing"]),
              help="Append p(e|f) and p(f|e) smoothed so, from the counts in TABLE.  Without -m, no "
                   "similarities.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE",
              help="Where to write; `-` is standard output.  [default: TABLE.annotated.gz]")  # fmt: skip
@click.option("--scale", type=click.Choice(["exp", "probability", "raw"]), default="exp", show_default=True,
              help="How a similarity s is written: exp(s - 1), (1 + s)/2, or s.  Moses takes the logarithm of every "
                   "score, so only the first two are for Moses.")  # fmt: skip
@click.option("--moses-ini", "ini", metavar="INI",
              help="The moses.ini of TABLE, or of the table that it was pruned from.")  # fmt: skip
@click.option("--moses-ini-out", "ini_output", metavar="FILE",
              help="Write INI here with the annotated table in place of TABLE; all else in it stays.")  # fmt: skip
@weight_option
@table_options
def command(
    table: str,
    model_folders: tuple[str, ...],
    forced_pairs: str | None,
    smoothing: str | None,
    output: str | None,
    scale: str,
    ini: str | None,
    ini_output: str | None,
    weight: float,
    threads: int,
    block_bytes: int,
    on_error: str,
    quiet: bool,
) -> None:
    """Append the similarity of source and target, in both directions, to the scores of every entry of TABLE.

    Two columns per model: source-to-target, then target-to-source.  Behind them, with --forced-pairs, two phrase
    probabilities that count a pair where it explains a sentence from which it was not extracted; where there is little
    to count, they follow those of TABLE (its third and first score).  Last, with --smoothing, the two that `extract`
    with that smoothing would have written; TABLE is read twice for them, and should be whole: annotate it before it is
    pruned.  Everything else of a line stays as it is, byte for byte.  TABLE is a Moses phrase table in text form, gzip
    or not; `-` is standard input.
    """
    from moses_compat.files.streams import Input, Output
    from moses_compat.jobs.annotate import FORCED_COLUMNS, MODEL_COLUMNS, SMOOTHED_COLUMNS, annotate_table
    from moses_compat.measures.pair_uses import PairUses
    from phrasetool.models.storage import load_bilingual_model
    from phrasetool_cli.shared.progress import TableProgress, say

    output = output or _default_output(table)
    folders = model_folders or (() if forced_pairs or smoothing else (default_model(),))
    if not folders and is_given("scale"):
        raise click.UsageError("--scale is for the similarities of a model; name one with -m")
    if table == forced_pairs == "-":
        raise click.UsageError("TABLE and --forced-pairs cannot both be standard input")
    if smoothing and (table == "-" or _is_stream(table)):
        raise click.UsageError("--smoothing reads the table twice, so it cannot come from standard input or a pipe")
    pairs = [forced_pairs] if forced_pairs else []
    check_outputs([table, *pairs], [output, ini_output])
    edit = ini_edit(table, output, ini, ini_output, weight, scale)
    models = [load_bilingual_model(folder) for folder in folders]
    forced = PairUses.read(forced_pairs) if forced_pairs else None
    smoothed = _smoothed(table, smoothing, on_error, threads, block_bytes, quiet) if smoothing else None
    columns = MODEL_COLUMNS * len(models) + FORCED_COLUMNS * len(pairs) + SMOOTHED_COLUMNS * bool(smoothing)
    # The ini is the last to be renamed: its name appears only beside its table's.
    with contextlib.ExitStack() as outputs:
        if edit:
            edit.write_to(outputs.enter_context(Output(edit.output)), columns)
        with (
            Input(table) as source,
            Output(output) as destination,
            TableProgress("annotate", source.size(), quiet) as progress,
        ):
            counts = annotate_table(
                source,
                destination,
                models,
                forced=forced,
                smoothed=smoothed,
                scale=scale,
                on_error=on_error,
                threads=threads,
                block_bytes=block_bytes,
                progress=progress,
            )
            if edit:
                edit.check(counts.scores)
    if not quiet:
        for line in _summary(counts, columns, forced, edit):
            say(line)


def _is_stream(path: str) -> bool:
    """Whether this can be read only once."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def _smoothed(
    table: str, smoothing: str, on_error: str, threads: int, block_bytes: int, quiet: bool
) -> SmoothedProbabilities:
    """Read the table for the first time."""
    from moses_compat.files.streams import Input
    from moses_compat.measures.smoothed import SmoothedProbabilities, count_table
    from phrasetool_cli.shared.progress import TableProgress, say

    with Input(table) as source, TableProgress("count", source.size(), quiet) as progress:
        counts = count_table(source, on_error=on_error, threads=threads, block_bytes=block_bytes, progress=progress)
    if counts.statistics.pairs and not counts.statistics.by_count[1] and not quiet:
        say(f"no entry of {table} was seen only once: if they were pruned, annotate the whole table before")
    return SmoothedProbabilities(source.name, counts, smoothing)


def _summary(counts: AnnotateCounts, columns: int, forced: PairUses | None, edit: IniEdit | None) -> Iterator[str]:
    silent = f"; {counts.without_opinion:,} have only unknown words on a side" if counts.without_opinion else ""
    faulty = f"; {counts.faulty:,} faulty lines" if counts.faulty else ""
    yield f"annotated {counts.entries:,} entries{silent}{faulty}"
    if forced:
        yield f"forced decoding used {counts.used:,} of them" if counts.used else f"none of them is in {forced.path}"
    if edit:
        yield (
            f"{edit.output} names {edit.table} as {edit.feature.name}, with {edit.scores + columns} scores instead of "
            f"{edit.scores}; the new weights are {edit.weight:g}"
        )
    elif counts.scores >= 0:
        yield (
            f"entries now have {counts.scores + columns} scores instead of {counts.scores}: set "
            f"num-features={counts.scores + columns} in moses.ini and give the weight line {columns} more numbers"
        )


def _default_output(table: str) -> str:
    if table == "-":
        return "-"
    return table.removesuffix(".gz") + ".annotated.gz"
