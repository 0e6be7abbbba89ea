"""`phrasetool annotate`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from phrasetool_cli.moses_ini import edited, weight_option
from phrasetool_cli.options import check_outputs, default_model, table_options, without_scipy

if TYPE_CHECKING:
    from moses_compat.annotate import AnnotateCounts
    from moses_compat.ini_lines import FeatureLine
    from moses_compat.moses_ini import MosesIni
    from moses_compat.pair_counts import PairCounts
    from moses_compat.streams import Output

_EXAMPLE = """\b
Example:
  phrasetool annotate phrase-table.gz -m phrasetool-model -o phrase-table.annotated.gz
  phrasetool annotate phrase-table.gz --moses-ini moses.ini --moses-ini-out annotated.ini
  phrasetool force-decode --moses-ini moses.ini train.de train.en --leave-one-out -o forced.gz
  phrasetool annotate phrase-table.gz --forced-pairs forced.gz
  phrasetool annotate demo-output/engine/phrase-table.gz -m demo-output/model -o - | head -3
"""


@click.command(short_help="Add columns to a phrase table.", epilog=_EXAMPLE)
@click.argument("table")
@click.option("-m", "--model", "model_folders", multiple=True, metavar="FOLDER",
              help="Model folder; may be repeated.  [default: $PHRASETOOL_MODEL, else ./phrasetool-model]")  # fmt: skip
@click.option("--forced-pairs", metavar="PAIRS",
              help="Pairs that `phrasetool force-decode --leave-one-out` wrote: append p(e|f) and p(f|e) by their "
                   "counts.  Without -m, these columns alone.")  # fmt: skip
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
@without_scipy()
def command(
    table: str,
    model_folders: tuple[str, ...],
    forced_pairs: str | None,
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
    to count, they follow those of TABLE (its third and first score).  Everything else of a line stays as it is, byte
    for byte.  TABLE is a Moses phrase table in text form, gzip or not; `-` is standard input.
    """
    from moses_compat.annotate import FORCED_COLUMNS, MODEL_COLUMNS, annotate_table
    from moses_compat.pair_counts import PairCounts
    from moses_compat.streams import Input, Output
    from phrasetool.models.storage import load_model
    from phrasetool_cli.progress import TableProgress, say

    output = output or _default_output(table)
    folders = model_folders or (() if forced_pairs else (default_model(),))
    if not folders and _is_given("scale"):
        raise click.UsageError("--scale is for the similarities of a model; name one with -m")
    if table == forced_pairs == "-":
        raise click.UsageError("TABLE and --forced-pairs cannot both be standard input")
    pairs = [forced_pairs] if forced_pairs else []
    check_outputs([table, *pairs], [output, ini_output])
    edit = _ini_edit(table, output, ini, ini_output, weight, scale)
    models = [load_model(folder) for folder in folders]
    forced = PairCounts.read(forced_pairs) if forced_pairs else None
    columns = MODEL_COLUMNS * len(models) + FORCED_COLUMNS * len(pairs)
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


def _is_given(option: str) -> bool:
    """Whether an option stands on the command line."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def _summary(counts: AnnotateCounts, columns: int, forced: PairCounts | None, edit: _IniEdit | None) -> Iterator[str]:
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


@dataclass(frozen=True)
class _IniEdit:
    """What happens to a moses.ini.

    Attributes:
        ini: as it is.
        feature: the table that is annotated.
        table: what is to come into its place.
        output: the ini to write.
        weight: of each new column.
    """

    ini: MosesIni
    feature: FeatureLine
    table: str
    output: str
    weight: float

    @property
    def scores(self) -> int:
        """How many scores the ini says the table has."""
        return int(self.feature.arguments.get("num-features", "1"))

    def check(self, scores: int) -> None:
        """Refuse a table with other than these scores; -1 stands for a table without entries."""
        if scores not in (-1, self.scores):
            raise self.ini.error(
                f"{self.feature.name} has num-features={self.scores}, but the entries of the table have {scores} "
                "scores; Moses stops at that",
                self.feature.line,
            )

    def write_to(self, out: Output, columns: int) -> None:
        """Write the ini for so many new columns."""
        from moses_compat.moses_ini import ENCODING

        text = edited(self.ini, self.feature, self.table, self.scores + columns, self.weight, self.output)
        out.write_text(text.encode(*ENCODING))
        out.flush()


def _ini_edit(
    table: str, output: str, ini: str | None, ini_output: str | None, weight: float, scale: str
) -> _IniEdit | None:
    """Check all that can be wrong with an ini, before any work starts."""
    if ini is None and ini_output is None:
        if _is_given("weight"):
            raise click.UsageError("--weight is for the ini that --moses-ini-out writes")
        return None
    if ini is None or ini_output is None:
        raise click.UsageError("--moses-ini and --moses-ini-out need each other")
    if scale == "raw":
        raise click.UsageError(
            "--scale raw is not for Moses: the logarithm of a negative score is no number, even at weight 0"
        )
    for option, path in (("TABLE", table), ("--output", output), ("--moses-ini-out", ini_output)):
        if path == "-":
            raise click.UsageError(f"with --moses-ini, {option} must be a file")

    from moses_compat.ini_tables import check_table, find_table
    from moses_compat.moses_ini import read_moses_ini
    from moses_compat.streams import Input
    from moses_compat.table_blocks import raw_blocks

    # A table that is not there has no place in an ini either.
    Input(table).close()
    there = read_moses_ini(ini)
    check_outputs([table, ini, *there.paths], [output, ini_output])
    feature = find_table(there, table)
    check_table(there, feature)
    edit = _IniEdit(there, feature, output, ini_output, weight)
    with Input(table) as source:
        edit.check(next((block.scores for block in raw_blocks(source, 1 << 16)), -1))
    return edit


def _default_output(table: str) -> str:
    if table == "-":
        return "-"
    return table.removesuffix(".gz") + ".annotated.gz"
