"""What a pruning run measures before it decides, as asked for: similarities, sizes, or all that a method needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from moses_compat.files.names import is_stream
from moses_compat.files.streams import Input
from moses_compat.jobs.prune import measure_sizes
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.prune_sources import similarity_source
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.plausible import REORDERING_TABLE, check_plausible
from moses_compat.tables.sorted_copy import sorted_copy
from phrasetool.pruning.measures import SIMILARITIES, Measures
from phrasetool.pruning.methods import Method
from phrasetool.watch import Watch

if TYPE_CHECKING:
    from moses_compat.measures.measure import MeasureRequest
    from moses_compat.measures.model_weights import TableWeights
    from moses_compat.measures.saved_similarities import ScoreWriter
    from phrasetool.pruning.sizes import SizeCurve


@contextlib.contextmanager
def checked_tables(request: PruneRequest, watch: Watch) -> Iterator[PruneRequest]:
    """The request, when its tables can be meant, and with a sorted copy if one is wanted; before any long work."""
    scan = request.scan(watch)
    with contextlib.ExitStack() as stack:
        if request.sort:
            copy = stack.enter_context(sorted_copy(request.table, request.output, scan, watch))
            request = replace(request, sorted_table=copy)
        elif not is_stream(request.table):
            with Input(request.table) as source:
                check_plausible(source, scan)
        if request.reordering_table and not is_stream(request.reordering_table):
            with Input(request.reordering_table) as source:
                check_plausible(source, scan, REORDERING_TABLE)
        yield request


def checked_method(request: PruneRequest) -> Method:
    """The method of a request that has all it needs.

    Raises:
        ValueError: the method lacks something, or options do not go together.
    """
    method = request.parsed_method()
    if lacking := request.lacking(method):
        raise ValueError(f"the method {method.name} needs {lacking}")
    if (request.reordering_table is None) != (request.reordering_out is None):
        raise ValueError("a reordering table to read and one to write need each other")
    if request.target_size is not None and not 0 < request.target_size <= 1:
        raise ValueError(f"a size is a share of the entries above 0, at most 1, not {request.target_size}")
    return method


def sizes_by_threshold(
    request: PruneRequest,
    method: Method,
    similarities: SimilaritySource,
    keep: str | None,
    watch: Watch,
    thresholds: Sequence[float] = (),
) -> SizeCurve:
    """One pass that counts."""
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(request.open_table())
        progress = stack.enter_context(watch.file("measure", source.size()))
        save = stack.enter_context(score_writer(keep, similarities)) if keep else None
        scan = replace(request.scan(watch), progress=progress)
        return measure_sizes(source, similarities, method, request.best, scan, thresholds, save)


def score_writer(path: str, similarities: SimilaritySource) -> ScoreWriter:
    """Opens a file for similarities."""
    from moses_compat.measures.saved_similarities import ScoreWriter

    return ScoreWriter(path, similarities.signature)


def whole_measures(request: PruneRequest, method: Method, watch: Watch) -> tuple[Measures, SimilaritySource | None]:
    """What the method needs to know of the table, and where similarities came from if it asked for any."""
    # Here: a table that streams needs none of it, and its start is most of a short run.
    from moses_compat.measures.measure import MeasureRequest, measure_file

    similarities = similarity_source(request, watch) if SIMILARITIES in method.needs else None

    def wanted(scan: TableScan) -> MeasureRequest:
        return MeasureRequest.of(
            method.needs, scan, weights=lambda: _weights(request), similarities=similarities,
            corpora=request.corpora, forced_pairs=request.forced_pairs, by_source=request.by_source(method),
        )  # fmt: skip

    return measure_file(request.read_path, request.scan(watch), watch, wanted, request.read_name), similarities


def _weights(request: PruneRequest) -> TableWeights:
    from moses_compat.ini.reading import read_moses_ini
    from moses_compat.ini.tables import choose_table
    from moses_compat.measures.model_weights import weights_of

    assert request.ini is not None
    there = read_moses_ini(request.ini)
    return weights_of(there, choose_table(there, request.table))
