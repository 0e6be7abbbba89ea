"""Ranking of entries for a pruning request: sources of similarities, and measurement of a table.

A method that ranks by similarity alone needs one pass that counts entries by their threshold (`sizes_by_threshold`),
and only if a size is requested.  Every other method ranks the whole table, after all its measures have been computed
(`measured_table`).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from moses_compat.files.paths import is_stream, scratch_place
from moses_compat.files.streams import Input
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.sinks import Kept
from moses_compat.measures.entry_reader import EntryReader, Item, ReadBlock
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.similarities import ColumnSimilarities, FileSimilarities, SimilaritySource
from moses_compat.tables.blocks import LineMarks, TableScan, raw_blocks
from moses_compat.tables.parser import scan_lines
from moses_compat.tables.source_order import SourceLook, SourceOrder, follow_blocks
from phrasetool.disk.folders import check_space, scratch_folder
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.kernels.bytes import SPACE
from phrasetool.phrases import prefix_sums
from phrasetool.pruning.composition import Compositions
from phrasetool.pruning.decision import rank
from phrasetool.pruning.measures import (
    COUNTS,
    LOSSES,
    MODEL_SCORES,
    OCCURRENCES,
    PARALLEL,
    PROBABILITIES,
    SCORED,
    SCORED_MASKS,
    SIMILARITIES,
    SYNTAX,
    Measure,
    MeasuredTable,
    Measures,
)
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.ranked_table import DecidedTable
from phrasetool.pruning.sizes import SizeCurve, allowed_entries
from phrasetool.watch import SILENT, Watch

if TYPE_CHECKING:
    from moses_compat.ini.tables import TableWeights
    from moses_compat.measures.measure import MeasureRequest
    from moses_compat.measures.saved_scores import ScoreWriter

Floats = npt.NDArray[np.floating]
# Bytes of text that are read for an estimate of the table's size.
_SAMPLE_BYTES = 1 << 23


@dataclass(frozen=True)
class TableSize:
    """The (estimated) size of a table.

    Attributes:
        entries: number of its lines.
        words: number of words of the sources and targets of all entries.
    """

    entries: int
    words: int


def size_of_table(source: Input) -> TableSize:
    """Return the size of a table: exact up to a few megabytes, extrapolated for larger tables.

    Args:
        source: the table, read from its beginning.

    Raises:
        DataError: the table is damaged.
    """
    entries = words = size = 0
    share = 1.0
    for raw in raw_blocks(source, _SAMPLE_BYTES // 4):
        scan = scan_lines(raw.text, line_offsets=raw.line_offsets)
        blanks = prefix_sums(raw.text == SPACE)
        starts, ends = scan.line_offsets[:-1], scan.target_ends
        # There is one space after each word, and one after the separator.
        words += int(np.maximum(blanks[ends] - blanks[starts] - 1, 0)[ends >= 0].sum())
        entries += raw.lines
        size += len(raw.text)
        if size >= _SAMPLE_BYTES:
            share = max(source.size() / max(raw.position, 1), 1.0)
            break
    return TableSize(int(entries * share), int(words * share))


# Bytes of temporary files above which users are informed.
_MUCH = 1e9
# A sorted table begins with punctuation, whose entries are longer than the average.
_MARGIN = 1.15


@dataclass(frozen=True)
class Chosen:
    """The decision about a whole table.

    Attributes:
        decision: decision about its entries.
        best: the rule that protected some of them.
        rule: text of the cut in the signature line.
        figures: further values for the statistics.
    """

    decision: DecidedTable
    best: KeepBest
    rule: str
    figures: Mapping[str, Any] = field(default_factory=dict)


def measures_of(read: ReadBlock, occurrences: bool = False) -> Measures:
    """Return the measures of a block: groups, similarities if it was scored, and counts if they are needed."""
    block = read.block
    columns: dict[Measure[Any], npt.NDArray[Any]] = {}
    if read.scores:
        columns = {SIMILARITIES: read.scores.similarities, SCORED: read.scores.scored}
    if occurrences:
        columns[OCCURRENCES] = read.counts.values
    return Measures(block.group_offsets, block.source_lengths, block.malformed, columns)


def similarity_sources(request: PruneRequest, watch: Watch = SILENT) -> dict[Measure[np.float32], SimilaritySource]:
    """Return the sources of the similarities that the method of a request needs.

    Semantic similarities may come from any model, from columns, from saved similarities or from a sentence encoder;
    those of a syntactic encoder or a classifier come from such a model, or, if the method needs nothing else, from the
    same columns or files.

    Args:
        request: the pruning run.
        watch: receives reports on how well models match the table.

    Raises:
        ModelError: a model cannot be loaded, or is not of the kind that the method needs.
    """
    method = request.parsed_method
    needed = [measure for measure in SCORED_MASKS if measure in method.needs]
    if not needed:
        # Modules of models are slow to import.
        return {}
    if len(needed) == 1 and (ready := _similarities_without_model(request, watch)):
        return {needed[0]: ready}
    unused_models, sources = list(range(len(request.folders))), dict[Measure[np.float32], SimilaritySource]()
    for measure, is_suitable, kind in _models_of_criteria():
        if measure not in needed:
            continue
        suitable = [index for index in unused_models if is_suitable(request.folders[index])]
        if not suitable:
            name = next(part.name for part in method.parts if measure in part.needs)
            raise ModelError(
                f"{request.model_folder}: not {kind}, which the method {name} needs", remedy=f"train {kind}"
            )
        sources[measure] = _similarities_of_models(request, suitable[:1], watch)
        unused_models.remove(suitable[0])
    if SIMILARITIES in needed:
        meaning = _similarities_without_model(request, watch) or _similarities_of_models(request, unused_models, watch)
        return {SIMILARITIES: meaning, **sources}
    if sources and unused_models:
        raise ModelError(f"{request.folders[unused_models[0]]}: the method {method.name} does not use this model")
    return sources


def similarity_source(request: PruneRequest, watch: Watch = SILENT) -> SimilaritySource:
    """Return the source of semantic similarities.

    Raises:
        ModelError: the model cannot be loaded, or two models are given and one is not a translator.
    """
    ready = _similarities_without_model(request, watch)
    return ready or _similarities_of_models(request, range(len(request.folders)), watch)


def _models_of_criteria() -> tuple[tuple[Measure[np.float32], Callable[[str], bool], str], ...]:
    """Return, for criteria with their own kind of model, the measure, a test for folders, and the name of the kind."""
    from moses_compat.measures.model_sources import is_classifier, is_syntax

    return (PARALLEL, is_classifier, "a classifier of sentence pairs"), (SYNTAX, is_syntax, "a syntactic encoder")


def _similarities_without_model(request: PruneRequest, watch: Watch) -> SimilaritySource | None:
    """Return existing similarities, or those of a sentence encoder; None if models have to compute them."""
    if request.columns:
        return ColumnSimilarities(*request.columns, request.scale)
    if request.scores and os.path.exists(request.scores):
        return FileSimilarities(request.scores)
    if request.encoder:
        from moses_compat.measures.encoded import encoder_similarities

        scan = request.scan_for(watch)
        return encoder_similarities(request.encoder, request.table, request.open_table, scan, watch)
    return None


def _similarities_of_models(request: PruneRequest, places: Sequence[int], watch: Watch) -> SimilaritySource:
    """Return the similarities of some of the request's folders: of one model, or of two translators.

    Raises:
        ModelError: there is no model for them.
    """
    from moses_compat.measures.model_sources import both_directions, model_source

    if not places:
        raise ModelError(
            f"{request.model_folder}: the method also needs semantic similarities; name a model for them with -m"
        )
    folders = [request.folders[index] for index in places]
    checks = [FitCheck(folder, watch, request.scan.force) for folder in folders]
    models = [
        model_source(check, request.reading, request.scan.threads, request.part_folders[index], request.device)
        for index, check in zip(places, checks, strict=True)
    ]
    return both_directions(models, folders)


def fit_of_source(similarities: SimilaritySource | None) -> dict[str, Any]:
    """Return the fit of a model or encoder to the table after the last pass; empty if it was not measured."""
    check = getattr(similarities, "check", None)
    # The fit of an encoder was measured before.
    fit: Any = check.fit if isinstance(check, FitCheck) else getattr(similarities, "fit", None)
    report: dict[str, Any] = fit.as_dict() if fit else {}
    return report


def path_to_save(request: PruneRequest, similarities: SimilaritySource) -> str | None:
    """Return the file that similarities are to be saved in; None if they come from a file, or none is requested."""
    return None if isinstance(similarities, FileSimilarities) else request.scores


def score_writer(path: str, similarities: SimilaritySource) -> ScoreWriter:
    """Open a file for similarities."""
    from moses_compat.measures.saved_scores import ScoreWriter

    return ScoreWriter(path, similarities.signature)


@contextlib.contextmanager
def scratch_scores(output: str) -> Iterator[str]:
    """Yield the path of a temporary file for similarities, in the folder of the output if that is a file."""
    with scratch_folder(scratch_place(output), ".phrasetool-") as scratch:
        yield os.path.join(scratch, "scores.parquet")


def protection_for_size(request: PruneRequest, size: float, watch: Watch) -> KeepBest:
    """Return the protection rule for a share of a table: as requested, or as much as fits, found in one pass.

    Args:
        request: the pruning run; its method ranks by similarity alone.
        size: the share of the entries to keep.
        watch: progress listener.

    Raises:
        DataError: as `prune_table`.
    """
    if requested := request.requested_for_size:
        return requested
    budget, count_use = request.budget, request.count_use
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(request.open_table())
        progress = stack.enter_context(watch.file("count", source.size()))
        scan = replace(request.scan_for(watch), progress=progress)
        order, reader = SourceOrder(source, scan, True), EntryReader(source, scan)

        def work(item: Item) -> tuple[SourceLook | None, Measures]:
            read = reader(item)
            if count_use:
                read.check_counts(source.name, count_use)
            return order.look(read.raw, read.block), measures_of(read, budget.frequent is not None)

        lines = 0
        for raw, measures in follow_blocks("protection", reader.items(), work, order, scan):
            budget.add(measures)
            lines += raw.lines
            scan.progress(raw.position, lines)
    best = budget.best(allowed_entries(size, budget.entries))
    if best.protect != "none":
        watch.say(f"always kept: {best.words}")
    return best


def sizes_by_threshold(
    request: PruneRequest,
    similarities: SimilaritySource,
    save_to: str | None,
    watch: Watch,
    best: KeepBest,
    thresholds: Sequence[float] = (),
) -> SizeCurve:
    """Count how many entries each threshold leaves, in one pass that writes no table.

    Args:
        request: the pruning run; its method ranks by similarity alone.
        similarities: similarities of the entries.
        save_to: file that receives the similarities, if any.
        watch: progress listener.
        best: the protection rule.
        thresholds: thresholds for which exact counts are needed.

    Raises:
        DataError: as `prune_table`.
    """
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(request.open_table())
        progress = stack.enter_context(watch.file("measure", source.size()))
        save = stack.enter_context(score_writer(save_to, similarities)) if save_to else None
        scan = replace(request.scan_for(watch), progress=progress)
        method, count_use = request.parsed_method, request.count_use
        reader = EntryReader(source, scan, similarities, fingerprints=save is not None, fields=save is not None)
        order = SourceOrder(source, scan, best.by_source)

        def work(item: Item) -> tuple[SourceLook | None, tuple[Kept | None, Floats, Floats]]:
            read = reader(item)
            if count_use:
                read.check_counts(source.name, count_use)
            ranking = rank(method, measures_of(read, best.frequent is not None))
            kept = (LineMarks.of(read.raw, read.block), read.scores) if save and read.scores else None
            strengths = ranking.strengths(best)[read.passes]
            return order.look(read.raw, read.block), (kept, strengths, ranking.scores[read.passes])

        curve = SizeCurve(thresholds)
        lines = 0
        passes = follow_blocks("sizes", reader.items(), work, order, scan, reader.pass_over)
        for raw, (kept, strengths, scores) in passes:
            curve.add(strengths, scores)
            if save and kept:
                save.write(*kept)
            lines += raw.lines
            scan.progress(raw.position, lines)
        reader.finish(lines)
        return curve


def measured_table(request: PruneRequest, watch: Watch) -> tuple[MeasuredTable, list[SimilaritySource]]:
    """Compute all measures that the method of a request needs.

    Args:
        request: the pruning run.
        watch: progress listener.

    Returns:
        The measured table, and the sources of its similarities.

    Raises:
        DataError: a file is damaged, or does not match the others.
        ModelError: see `similarity_sources`.
        PhraseToolError: there is too little room for temporary files.
    """
    # Imported here: pruning in one pass does not need it, and imports dominate the time of a short run.
    from moses_compat.measures.measure import MeasureRequest, measure_file

    _check_room(request, watch)
    sources = similarity_sources(request, watch)

    def measures_to_take(scan: TableScan) -> MeasureRequest:
        return MeasureRequest.of(
            request.needs, scan, weights=lambda: _weights(request), similarities=sources,
            corpora=request.corpora, forced_pairs=request.forced_pairs, by_source=request.by_source,
            count_use=request.count_use,
        )  # fmt: skip

    scan, folder = request.scan_for(watch), request.work_folder
    table = measure_file(request.read_path, scan, watch, measures_to_take, request.read_name, folder)
    return table, [*sources.values()]


def _check_room(request: PruneRequest, watch: Watch) -> None:
    """Report the size of temporary files if it is large, and raise an error if the disk has too little space.

    Raises:
        PhraseToolError: there is too little space, and `force` is not set.
    """
    if is_stream(request.read_path):
        return
    with request.open_table() as source:
        size = size_of_table(source)
    method = request.parsed_method
    measures = {
        PROBABILITIES,
        COUNTS,
        *request.needs,
        *(SCORED_MASKS[measure] for measure in method.needs & SCORED_MASKS.keys()),
    }
    # The score of an entry, the score of each criterion, and the decision.
    entry = MeasuredTable.bytes_an_entry(measures) + 4 + 4 * len(method.parts) + 2
    composing = 0
    if LOSSES in method.needs:
        entry += MeasuredTable.bytes_an_entry({MODEL_SCORES}) - MeasuredTable.bytes_an_entry(())
        composing = Compositions.bytes_on_disk(size.entries, size.words)
    needed = size.entries * entry + composing
    # A run that can be resumed stores the same numbers again for each block.
    needed = int(needed * _MARGIN) * (2 if request.scan.finished else 1)
    folder = request.work_folder or tempfile.gettempdir()
    if needed >= _MUCH:
        watch.say(f"some {needed / 1e9:,.1f} GB of temporary files will be in {folder} until the table is written")
    try:
        check_space(folder, needed)
    except PhraseToolError as error:
        if not request.scan.force:
            raise
        watch.warn(str(error))


def _weights(request: PruneRequest) -> TableWeights:
    from moses_compat.ini.reading import read_moses_ini
    from moses_compat.ini.tables import choose_table, weights_of

    assert request.ini is not None
    ini = read_moses_ini(request.ini)
    return weights_of(ini, choose_table(ini, request.table))
