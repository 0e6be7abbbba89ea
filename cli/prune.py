"""`phrasetool prune`."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.options import check_outputs, default_model, model_option, table_options, without_scipy
from phrasetool_cli.prune_method import DEFAULT, SEMANTIC, MethodRequest, chosen_method, run_method
from phrasetool_cli.prune_outputs import Request, write_tables

if TYPE_CHECKING:
    from moses_compat.prune import Similarities, TableScan
    from moses_compat.saved_scores import ScoreWriter
    from moses_compat.streams import Input
    from moses_compat.table_writer import TableWriter
    from phrasetool.pruning.selection import KeepBest
    from phrasetool.pruning.statistics import PruneStatistics


class Sweep(click.ParamType[Any]):
    """FIRST:LAST:STEP."""

    name = "first:last:step"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> list[float]:
        """Return the thresholds, the last one included."""
        if isinstance(value, list):
            return value
        try:
            first, last, step = (float(part) for part in value.split(":"))
            count = round((last - first) / step)
            if step <= 0 or count < 0 or count > 10_000:
                raise ValueError
        except (ValueError, OverflowError, ZeroDivisionError):
            self.fail(f"{value!r} is not FIRST:LAST:STEP, as in 0.4:0.8:0.1", param, context)
        return [round(first + i * step, 10) for i in range(count + 1) if first + i * step <= last + step * 1e-6]


class Columns(click.ParamType[Any]):
    """Two column numbers."""

    name = "a,b"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> tuple[int, int]:
        """Return 0-based positions."""
        if isinstance(value, tuple):
            return value
        parts = value.split(",")
        if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not two column numbers from 1, as in 5,6", param, context)
        return int(parts[0]) - 1, int(parts[1]) - 1


_EXAMPLE = """\b
Example:
  phrasetool prune --threshold 0.7 < phrase-table > small
  phrasetool prune phrase-table.gz --moses-ini moses.ini --protect words --target-size 0.1 -o small.gz
  phrasetool prune table.gz -t 0.7 -o small.gz --reordering-table reordering.gz --reordering-out small.reordering.gz
  phrasetool prune demo-output/engine/phrase-table.gz -m demo-output/model --sweep 0.0:0.8:0.2
"""


@click.command(short_help="Remove the entries of a phrase table that are no translations.", epilog=_EXAMPLE)
@click.argument("table", default="-")
@model_option
@click.option("-t", "--threshold", type=float, metavar="S",
              help="Prune entries whose similarities are BOTH below this (-1 to 1); with another --method, "
                   "entries whose worth is.")  # fmt: skip
@click.option("--target-size", type=click.FloatRange(0, 1, min_open=True), metavar="SHARE",
              help="Find the threshold that leaves at most this share of the entries (0.3 = 30 %).")  # fmt: skip
@click.option("--sweep", type=Sweep(), help="Only print the size of the table at each of these thresholds.")
@click.option("--method", metavar="NAMES",
              help="semantic, significance, composition, probability, count, top, random, or several with + between "
                   "them.  [default: semantic; with --moses-ini, composition+semantic]")  # fmt: skip
@click.option("--combine", type=click.Choice(["product", "rank"]), default="product", show_default=True,
              help="How several criteria become one number.")  # fmt: skip
@click.option("--moses-ini", "ini", metavar="INI",
              help="The model of TABLE: its weights say what is lost without an entry (composition, top).")  # fmt: skip
@click.option("--corpus", "corpora", nargs=2, metavar="SOURCE TARGET",
              help="The bitext TABLE was made from (significance).")  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Of the method `random`.")
@click.option("--keep-top", type=click.IntRange(0), default=10, show_default=True, metavar="K",
              help="Always keep the K best entries of a protected source.")  # fmt: skip
@click.option("--protect", type=click.Choice(["all", "words", "none"]), default="all", show_default=True,
              help="Whose best K stay: all sources, one-word sources (no word becomes unknown), none.")  # fmt: skip
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write.  [default: standard output]")
@click.option("--reordering-table", metavar="FILE",
              help="Prune this reordering table too: keep the lines of the pairs that stay, in any order.")  # fmt: skip
@click.option("--reordering-out", metavar="FILE", help="Where to write the pruned reordering table.")
@click.option("--rejected", metavar="FILE", help="Write the pruned lines here.")
@click.option("--stats", metavar="FILE", help="Write counts and the signature line here, as JSON.")
@click.option("--scores", metavar="FILE",
              help="Similarities in Parquet: used if the file exists, else computed and kept there.")  # fmt: skip
@click.option("--columns", type=Columns(),
              help="Use the similarities in these two score columns of TABLE (source-to-target first).")  # fmt: skip
@click.option("--scale", type=click.Choice(["exp", "probability", "raw"]), default="exp", show_default=True,
              help="How the similarities in --columns were written (see annotate).")  # fmt: skip
@table_options
@without_scipy()
def command(
    table: str,
    model_folder: str | None,
    threshold: float | None,
    target_size: float | None,
    sweep: list[float] | None,
    method: str | None,
    combine: str,
    ini: str | None,
    corpora: tuple[str, str] | None,
    seed: int,
    keep_top: int,
    protect: str,
    output: str,
    reordering_table: str | None,
    reordering_out: str | None,
    rejected: str | None,
    stats: str | None,
    scores: str | None,
    columns: tuple[int, int] | None,
    scale: str,
    threads: int,
    block_bytes: int,
    on_error: str,
    quiet: bool,
) -> None:
    """Remove the entries of TABLE that are no translations, or that can be missed.

    An entry goes when its similarity is below the threshold in BOTH directions, unless it is among the best K of its
    source.  With --moses-ini, it goes when shorter entries make it up at little loss, or when its sides do not mean
    the same; the more often it was seen, the more speaks for it.  --method chooses another criterion; it reads TABLE
    twice and takes up to 300 bytes an entry of memory.  Lines that stay are byte-identical and in their order.  TABLE
    is a Moses phrase table in text form, gzip or not; standard input by default.
    """
    from moses_compat.prune import TableScan
    from phrasetool.pruning.selection import KeepBest

    request = Request(
        table, output, threshold, sweep, target_size, rejected, stats, scores, reordering_table, reordering_out, quiet
    )
    _check(request, columns, [*([ini] if ini else []), *(corpora or ())])
    scan = TableScan(on_error, threads, block_bytes)
    best = KeepBest(keep_top, protect)
    method = method or (DEFAULT if ini else SEMANTIC)
    if method == SEMANTIC:
        _run(request, _similarities(request, model_folder, columns, scale), best, scan)
        return
    wanted = MethodRequest(method, combine, ini, corpora or None, seed)
    chosen = chosen_method(wanted)
    if table == "-":
        raise click.UsageError(f"--method {method} reads the table twice, so it cannot come from standard input")
    if scores and not os.path.exists(scores):
        raise click.UsageError(f"{scores}: no such file; --method {method} uses similarities that are there")
    run_method(request, wanted, chosen, lambda: _similarities(request, model_folder, columns, scale), best, scan)


def _check(request: Request, columns: tuple[int, int] | None, more_inputs: list[str]) -> None:
    """Refuse what cannot be meant, before any work starts."""
    if sum(option is not None for option in (request.threshold, request.target_size, request.sweep)) != 1:
        raise click.UsageError("give one of --threshold, --target-size and --sweep")
    if any(option is not None and math.isnan(option) for option in (request.threshold, request.target_size)):
        raise click.UsageError("a threshold or size must be a number, not NaN")
    if request.scores and columns:
        raise click.UsageError("--scores and --columns are two sources of similarities; give one")
    if request.table == "-" and request.target_size is not None:
        raise click.UsageError("--target-size reads the table twice, so it cannot come from standard input")
    tables = (request.rejected, request.stats, request.reordering_out, request.reordering_table)
    if request.sweep is not None and (any(tables) or request.output != "-"):
        raise click.UsageError(
            "--sweep writes no table; leave out --output, --rejected, --stats and the options of the reordering table"
        )
    if (request.reordering_table is None) != (request.reordering_out is None):
        raise click.UsageError("--reordering-table and --reordering-out go together; give both or none")
    if request.reordering_table == request.table == "-":
        raise click.UsageError("the phrase table and the reordering table cannot both come from standard input")
    saved = request.scores is not None and os.path.exists(request.scores)
    inputs = [request.table, *([request.scores] if request.scores and saved else []), *more_inputs]
    check_outputs(
        [*inputs, *([request.reordering_table] if request.reordering_table else [])],
        [
            request.output if request.sweep is None else None, request.reordering_out, request.rejected, request.stats,
            None if saved else request.scores,
        ],
    )  # fmt: skip


def _similarities(
    request: Request, model_folder: str | None, columns: tuple[int, int] | None, scale: str
) -> Similarities:
    """Where the similarities come from."""
    from moses_compat.prune import ColumnScores, FileScores, ModelScores

    if columns:
        return ColumnScores(*columns, scale)
    if request.scores and os.path.exists(request.scores):
        return FileScores(request.scores)
    from phrasetool.models.storage import load_model

    return ModelScores(load_model(model_folder or default_model()))


def _run(request: Request, similarities: Similarities, best: KeepBest, scan: TableScan) -> None:
    """Sweep, or find the threshold if need be and prune."""
    from moses_compat.prune import FileScores, scratch_scores

    keep = request.scores if request.scores and not isinstance(similarities, FileScores) else None
    if request.sweep is not None:
        _sweep(request, similarities, best, scan, keep)
        return
    threshold = request.threshold
    with contextlib.ExitStack() as stack:
        if threshold is None:
            if not isinstance(similarities, FileScores):
                keep = keep or stack.enter_context(scratch_scores(request.output))
            threshold = _find_threshold(request, similarities, best, scan, keep)
            if keep:
                similarities, keep = FileScores(keep), None
        _prune(request, similarities, best, scan, threshold, keep)


def _sweep(request: Request, similarities: Similarities, best: KeepBest, scan: TableScan, keep: str | None) -> None:
    curve = _measure(request, similarities, best, scan, keep)
    click.echo("threshold\tentries\tshare")
    for threshold, survivors in zip(curve.thresholds, curve.survivors.tolist(), strict=True):
        click.echo(f"{threshold:g}\t{survivors}\t{survivors / max(curve.entries, 1):.4f}")


def _find_threshold(
    request: Request, similarities: Similarities, best: KeepBest, scan: TableScan, keep: str | None
) -> float:
    from phrasetool.errors import PhraseToolError
    from phrasetool.pruning.sizes import TooSmallError
    from phrasetool_cli.progress import say

    assert request.target_size is not None
    curve = _measure(request, similarities, best, scan, keep)
    try:
        threshold: float = curve.threshold_for(request.target_size)
    except TooSmallError as error:
        raise PhraseToolError(f"{request.table}: {error}; try --protect words or a smaller --keep-top") from error
    if not request.quiet:
        say(f"threshold {threshold:.6f} leaves at most {request.target_size:.1%}")
    return threshold


def _measure(request: Request, similarities: Similarities, best: KeepBest, scan: TableScan, keep: str | None) -> Any:
    """One pass that counts."""
    from dataclasses import replace

    from moses_compat.prune import measure_sizes
    from moses_compat.streams import Input
    from phrasetool_cli.progress import TableProgress

    with contextlib.ExitStack() as stack:
        source = stack.enter_context(Input(request.table))
        progress = stack.enter_context(TableProgress("measure", source.size(), request.quiet))
        opened = _score_writer(keep, similarities)
        save = stack.enter_context(opened()) if opened else None
        return measure_sizes(source, similarities, best, replace(scan, progress=progress), request.sweep or (), save)


def _score_writer(path: str | None, similarities: Similarities) -> Callable[[], ScoreWriter] | None:
    """What opens the file that keeps the similarities."""
    if path is None:
        return None
    from moses_compat.saved_scores import ScoreWriter

    return lambda: ScoreWriter(path, similarities.signature)


def _prune(
    request: Request, similarities: Similarities, best: KeepBest, scan: TableScan, threshold: float, keep: str | None
) -> None:
    from moses_compat.prune import prune_table
    from phrasetool import __version__
    from phrasetool.pruning.semantic import BelowThreshold

    criterion = BelowThreshold(threshold)
    signature = f"{similarities.signature}|rule:t{threshold:g}+k{best.k}+{best.protect}|version:{__version__}"

    def prune(source: Input, writer: TableWriter, watched: TableScan, save: ScoreWriter | None) -> PruneStatistics:
        return prune_table(source, writer, similarities, criterion, best, watched, save)

    write_tables(request, scan, criterion.name, signature, prune, _score_writer(keep, similarities))
