"""`phrasetool prune --method`: criteria that look at all entries of a table together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.prune_outputs import Request, write_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from moses_compat.prune import Similarities, TableScan
    from moses_compat.saved_scores import ScoreWriter
    from moses_compat.streams import Input
    from moses_compat.table_weights import TableWeights
    from moses_compat.table_writer import TableWriter
    from phrasetool.pruning.measures import Measures
    from phrasetool.pruning.methods import Method
    from phrasetool.pruning.selection import KeepBest
    from phrasetool.pruning.statistics import PruneStatistics

# What is best by measurement, where the weights of a model are given; see the README.
DEFAULT = "composition+semantic"
SEMANTIC = "semantic"


@dataclass(frozen=True)
class MethodRequest:
    """What the user asked for, of what these methods need.

    Attributes:
        method: names of criteria with `+` between them.
        combine: how several are made one.
        ini: the moses.ini whose weights make the score of an entry.
        corpora: both sides of the bitext.
        seed: of the random criterion.
    """

    method: str
    combine: str
    ini: str | None
    corpora: tuple[str, str] | None
    seed: int


def chosen_method(request: MethodRequest) -> Method:
    """The method, if all that it needs was given."""
    from phrasetool.pruning.methods import parse_method

    try:
        method = parse_method(request.method, request.combine, request.seed)
    except ValueError as error:
        raise click.UsageError(f"--method: {error}") from error
    if method.needs & {"model_scores", "composition"} and request.ini is None:
        raise click.UsageError(f"--method {method.name} needs the weights of a model: give --moses-ini")
    if "significance" in method.needs and request.corpora is None:
        raise click.UsageError(
            f"--method {method.name} needs the bitext that the table was made from: give --corpus SOURCE TARGET"
        )
    return method


def run_method(
    request: Request,
    wanted: MethodRequest,
    method: Method,
    similarities: Callable[[], Similarities],
    best: KeepBest,
    scan: TableScan,
) -> None:
    """Measure the table, decide, and prune; or print sizes."""
    import numpy as np

    from moses_compat.prune_selected import prune_selected
    from moses_compat.table_writer import Verdict
    from phrasetool import __version__
    from phrasetool.pruning.selection import select_entries
    from phrasetool.pruning.sizes import TooSmallError

    source_of_similarities = similarities() if "similarities" in method.needs else None
    measures = _measure(request, wanted, method, source_of_similarities, scan)
    worth = method.worth(measures)
    if request.sweep is not None:
        click.echo("threshold\tentries\tshare")
        for threshold in request.sweep:
            kept = int(select_entries(measures, worth, best, threshold=threshold, size=None).keep.sum())
            click.echo(f"{threshold:g}\t{kept}\t{kept / max(len(measures), 1):.4f}")
        return
    try:
        selection = select_entries(measures, worth, best, threshold=request.threshold, size=request.target_size)
    except TooSmallError as error:
        raise PhraseToolError(f"{request.table}: {error}; try --protect words or a smaller --keep-top") from error
    nobody = np.zeros(len(measures), np.bool_)
    verdict = Verdict(selection.keep, selection.fails, selection.protected, nobody)
    rule = f"size{request.target_size:g}" if request.threshold is None else f"t{request.threshold:g}"
    signature = "|".join(
        [
            *([source_of_similarities.signature] if source_of_similarities else []),
            f"method:{method.name}",
            *([f"seed:{wanted.seed}"] if "random" in method.name else []),
            f"rule:{rule}+k{best.k}+{best.protect}",
            f"version:{__version__}",
        ]
    )

    def prune(source: Input, writer: TableWriter, watched: TableScan, save: ScoreWriter | None) -> PruneStatistics:
        return prune_selected(source, writer, verdict, watched)

    write_tables(request, scan, "below_threshold", signature, prune)


def _measure(
    request: Request, wanted: MethodRequest, method: Method, similarities: Similarities | None, scan: TableScan
) -> Measures:
    from moses_compat.streams import Input
    from moses_compat.table_measures import MeasureRequest, measure_table
    from phrasetool_cli.progress import TableProgress

    weighted = method.needs & {"composition", "model_scores"}
    with Input(request.table) as source, TableProgress("measure", source.size(), request.quiet) as progress:
        return measure_table(
            source,
            MeasureRequest(
                weights=_weights(request.table, wanted.ini) if weighted and wanted.ini else None,
                similarities=similarities,
                corpora=wanted.corpora if "significance" in method.needs else None,
                losses="composition" in method.needs,
                scan=replace(scan, progress=progress),
            ),
        )


def _weights(table: str, ini: str) -> TableWeights:
    from moses_compat.ini_tables import choose_table
    from moses_compat.moses_ini import read_moses_ini
    from moses_compat.table_weights import weights_of

    there = read_moses_ini(ini)
    return weights_of(there, choose_table(there, table))
