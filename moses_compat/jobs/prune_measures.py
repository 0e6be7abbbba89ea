"""What a pruning run measures before it decides, as asked for: similarities, sizes, or all that a method needs."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from moses_compat.files.names import is_stream
from moses_compat.files.streams import Input
from moses_compat.jobs.prune import measure_sizes
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.prune_sources import similarity_sources
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.plausible import REORDERING_TABLE, check_plausible
from moses_compat.tables.sorted_copy import sorted_copy
from moses_compat.tables.table_size import size_of_table
from phrasetool.disk.writable import check_space
from phrasetool.errors import PhraseToolError
from phrasetool.pruning.composition import Compositions
from phrasetool.pruning.measured_table import MeasuredTable
from phrasetool.pruning.measures import COUNTS, LOSSES, MODEL_SCORES, OPINIONS, PROBABILITIES
from phrasetool.pruning.methods import Method
from phrasetool.watch import Watch

if TYPE_CHECKING:
    from moses_compat.measures.measure import MeasureRequest
    from moses_compat.measures.model_weights import TableWeights
    from moses_compat.measures.saved_similarities import ScoreWriter
    from phrasetool.pruning.sizes import SizeCurve


# Bytes of files for a while that somebody may want to know of.
_MUCH = 1e9
# A sorted table begins with punctuation, of which there are fewer entries in as many bytes than of the rest.
_MARGIN = 1.15


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
        use = request.count_use(method)
        return measure_sizes(source, similarities, method, request.best, scan, thresholds, save, use)


def score_writer(path: str, similarities: SimilaritySource) -> ScoreWriter:
    """Opens a file for similarities."""
    from moses_compat.measures.saved_similarities import ScoreWriter

    return ScoreWriter(path, similarities.signature)


def whole_measures(request: PruneRequest, method: Method, watch: Watch) -> tuple[MeasuredTable, list[SimilaritySource]]:
    """What the method needs to know of the table, and where similarities came from."""
    # Here: a table that streams needs none of it, and its start is most of a short run.
    from moses_compat.measures.measure import MeasureRequest, measure_file

    _check_room(request, method, watch)
    sources = similarity_sources(request, method, watch)

    def wanted(scan: TableScan) -> MeasureRequest:
        return MeasureRequest.of(
            request.needs(method), scan, weights=lambda: _weights(request), similarities=sources,
            corpora=request.corpora, forced_pairs=request.forced_pairs, by_source=request.by_source(method),
            count_use=request.count_use(method),
        )  # fmt: skip

    scan, work = request.scan(watch), request.work_folder
    return measure_file(request.read_path, scan, watch, wanted, request.read_name, work), [*sources.values()]


def _check_room(request: PruneRequest, method: Method, watch: Watch) -> None:
    """Say what the files of the work will take, if it is much; and refuse a disk that has no room for them.

    Raises:
        PhraseToolError: there is too little room, and `force` is not asked for.
    """
    if is_stream(request.read_path):
        return
    with request.open_table() as source:
        size = size_of_table(source)
    measures = {
        PROBABILITIES,
        COUNTS,
        *request.needs(method),
        *(OPINIONS[one] for one in method.needs & OPINIONS.keys()),
    }
    # What the method says of an entry, what each criterion says, and the decision.
    entry = MeasuredTable.bytes_an_entry(measures) + 4 + 4 * len(method.parts) + 2
    composing = 0
    if LOSSES in method.needs:
        entry += MeasuredTable.bytes_an_entry({MODEL_SCORES}) - MeasuredTable.bytes_an_entry(())
        composing = Compositions.bytes_on_disk(size.entries, size.words)
    needed = size.entries * entry + composing
    # What is kept of each block holds the same once more.
    needed = int(needed * _MARGIN) * (2 if request.finished else 1)
    folder = request.work_folder or tempfile.gettempdir()
    if needed >= _MUCH:
        watch.say(f"some {needed / 1e9:,.1f} GB of work files go to {folder} until the table is written")
    try:
        check_space(folder, needed)
    except PhraseToolError as error:
        if not request.force:
            raise
        watch.warn(str(error))


def _weights(request: PruneRequest) -> TableWeights:
    from moses_compat.ini.reading import read_moses_ini
    from moses_compat.ini.tables import choose_table
    from moses_compat.measures.model_weights import weights_of

    assert request.ini is not None
    there = read_moses_ini(request.ini)
    return weights_of(there, choose_table(there, request.table))
