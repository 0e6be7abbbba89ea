"""Append score columns to a phrase table: similarities, and probabilities by forced decoding and by smoothing.

`annotate` reads and writes files: the table, and the moses.ini that uses its new columns.  Either both are written or
neither; the ini is renamed last, so that it never exists without its table.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moses_compat.files.finished_work import FinishedWork, forget_finished, settings_of
from moses_compat.files.paths import is_stream
from moses_compat.files.streams import Input, Output, check_readable
from moses_compat.ini.editing import with_relative_paths, with_table_file
from moses_compat.ini.moses_ini import ENCODING, FeatureLine, MosesIni
from moses_compat.ini.reading import parse_moses_ini, read_moses_ini
from moses_compat.ini.tables import check_table, find_table
from moses_compat.lines.insert_scores import (
    SCALES,
    SOFTMAX,
    annotated_lines,
    least_probability,
    scale_logarithms,
    scale_similarities,
)
from moses_compat.lines.numbers import DIRECT_COLUMN, INVERSE_COLUMN, require_trained_scores
from moses_compat.measures.entry_reader import EntryReader, ReadBlock
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.model_sources import columns_of_model, model_sources, sources_of_model
from moses_compat.measures.pair_counts import PairUses, SmoothedProbabilities, check_whole, count_table
from moses_compat.measures.similarities import (
    EncoderRequest,
    LikelihoodRequest,
    SimilaritySource,
    finishing,
    parts_folder,
)
from moses_compat.measures.windowed_scores import WindowedScores
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from moses_compat.tables.opening import check_plausible
from moses_compat.tables.parser import LineScan
from moses_compat.tables.source_order import SourceLook, SourceOrder, follow_blocks
from phrasetool.errors import DataError
from phrasetool.models.fit import ModelCompatibility
from phrasetool.phrase_encoder.model import CPU
from phrasetool.phrases import ByteArray, DoubleArray
from phrasetool.smt.extraction.smoothing import candidate_probabilities, forced_probabilities
from phrasetool.translator.settings import READINGS
from phrasetool.watch import SILENT, Watch

if TYPE_CHECKING:
    from moses_compat.measures.encoded import EncoderSimilarities
    from phrasetool.text_encoders.vector_store import EncoderFit

Made = TypeVar("Made")

# Number of columns that a source of similarities, forced decoding and smoothing each add.
MODEL_COLUMNS = FORCED_COLUMNS = SMOOTHED_COLUMNS = 2


@dataclass
class AnnotateCounts:
    """Counts of an annotation run.

    Attributes:
        entries: lines read.
        unscored: entries with a side that has no known word in the first source of similarities.
        malformed: lines that could not be read.
        scores: number of score columns in the input, -1 for a table without entries.
        used: entries that forced decoding used.
        too_long: entries with a side that is longer than the input limit of a translator.
        fits: how well each model and the encoder match a sample of the table, if it was large enough.
    """

    entries: int = 0
    unscored: int = 0
    malformed: int = 0
    scores: int = -1
    used: int = 0
    too_long: int = 0
    fits: list[ModelCompatibility | EncoderFit] = field(default_factory=list)

    def add(self, other: AnnotateCounts) -> None:
        """Add the counts of the next block."""
        self.entries += other.entries
        self.unscored += other.unscored
        self.malformed += other.malformed
        self.scores = other.scores
        self.used += other.used


def annotate_table(
    source: Input,
    output: Output,
    similarities: Sequence[SimilaritySource],
    scan: TableScan,
    *,
    forced: PairUses | None = None,
    smoothed: SmoothedProbabilities | None = None,
    scale: str = "exp",
) -> AnnotateCounts:
    """Copy a table with additional scores: similarities, probabilities of forced decoding, smoothed probabilities.

    Args:
        similarities: sources of similarities; in this order, each appends two columns, source-to-target first, and a
            translator one column.
        scan: settings for reading the table.
        forced: the pairs that forced decoding used; p(e|f) and p(f|e) from their counts (see `forced_probabilities`)
            follow the similarities.
        smoothed: smoothed p(e|f) and p(f|e) of this table, appended last.
        scale: conversion of similarities to scores; see `insert_scores`.  Probabilities of translators are not scaled,
            except by `softmax`.

    Raises:
        DataError: the table is damaged, or has a malformed line and `scan.on_error` is `fail`; or, with a softmax, the
            entries of a source are not contiguous; or, with `forced`, it has fewer than the four scores of Moses'
            training; or, with `smoothed`, it is not the table that was counted; or no entry is among the pairs of
            forced decoding.
        ValueError: there is nothing to append.
    """
    if not similarities and forced is None and smoothed is None:
        raise ValueError("no similarities, no pairs of forced decoding, no smoothing: there is nothing to append")
    columns = (DIRECT_COLUMN, INVERSE_COLUMN) if forced else ()
    # A block is parsed once for each source of similarities, with its vocabulary.
    readers = [
        EntryReader(source, scan, similar, columns=lambda scores: columns) for similar in similarities or (None,)
    ]

    by_source = bool(similarities) and scale == SOFTMAX
    order = SourceOrder(source, scan, by_source)

    def work(item: tuple[RawBlock, list[Any]]) -> tuple[SourceLook | None, tuple[bytes, AnnotateCounts]]:
        raw, parts = item
        if forced:
            require_trained_scores(source.name, raw.scores, raw.first_entry + 1, "probabilities of forced decoding")
        reads = [reader((raw, part)) for reader, part in zip(readers, parts, strict=True)]
        text, counts = _annotated(reads, forced, smoothed, scale)
        return order.look(raw, reads[0].block), (output.encode(text), counts)

    total = AnnotateCounts()
    raws = raw_blocks(source, scan.block_bytes, scan.max_line, whole_groups=by_source)
    for reader in readers:
        raws = reader.look_at(raws)
    items = ((raw, [reader.take(raw) for reader in readers]) for raw in raws)

    def pass_over(raw: RawBlock, lines: LineScan) -> None:
        for reader in readers:
            reader.pass_over(raw, lines)

    results = follow_blocks("annotate", items, work, order, scan, pass_over)
    for raw, (data, counts) in _held(results, lambda: all(reader.judged for reader in readers)):
        output.write(data)
        total.add(counts)
        scan.progress(raw.position, total.entries)
    for reader in readers:
        reader.finish(total.entries)
    if forced and total.entries > total.malformed and not total.used:
        scan.refuse(
            DataError(forced.path, f"none of its pairs with a count above 0 is in {source.name}", remedy="go on")
        )
    return total


def _held(made: Iterable[Made], judged: Callable[[], bool]) -> Iterator[Made]:
    """Yield the results of blocks, held back until all models have been checked against the table."""
    kept: list[Made] = []
    for result in made:
        kept.append(result)
        if judged():
            yield from kept
            kept.clear()
    yield from kept


def _annotated(
    reads: Sequence[ReadBlock], forced: PairUses | None, smoothed: SmoothedProbabilities | None, scale: str
) -> tuple[ByteArray, AnnotateCounts]:
    """Return the text of a block with additional columns, and its counts.

    Args:
        reads: the block, parsed once for each source of similarities.
    """
    first = reads[0]
    block = first.block
    counts = AnnotateCounts(len(block), malformed=first.faults, scores=first.raw.scores)
    written = [_written(read, scale) for read in reads if read.scores]
    columns = [values for values, _ in written]
    exact = [np.full(values.shape[1], significant) for values, significant in written]
    if first.scores:
        counts.unscored = int((~first.scores.scored & ~block.malformed).sum())
    if forced:
        used = forced.look_up(block.text, block.line_offsets, ~block.malformed)
        counts.used = int((used[:, 0] > 0).sum())
        columns.append(forced_probabilities(used, *first.columns.T))
    if smoothed:
        columns.append(smoothed(block))
    exact.extend(np.ones(values.shape[1], np.bool_) for values in columns[len(written) :])
    return annotated_lines(block, np.hstack(columns), first.passes, np.concatenate(exact)), counts


def _written(read: ReadBlock, scale: str) -> tuple[DoubleArray, bool]:
    """Return the columns of one source of similarities, and whether they are written with six significant digits."""
    assert read.scores is not None
    values, block = read.scores.similarities, read.block
    if scale == SOFTMAX:
        return least_probability(candidate_probabilities(values, block.group_offsets, block.malformed)), True
    if read.scores.logarithms:
        return scale_logarithms(values), True
    return scale_similarities(values, scale), False


def ini_of_table(table: str, ini: str) -> MosesIni:
    """Read the moses.ini of a table.

    Raises:
        DataError: the table or the ini cannot be read.
    """
    # Report a missing table before any problem with its ini.
    check_readable(table)
    return read_moses_ini(ini)


@dataclass(frozen=True)
class IniEdit:
    """A planned change of a moses.ini.

    Attributes:
        ini: the ini to read.
        feature: the feature of the table that is annotated.
        table: the annotated table that replaces it.
        output: the ini to write.
        weight: weight of each new column.
        relative: whether paths become relative to the folder of the written ini.

    Raises:
        ValueError: the weight is not a finite number.
    """

    ini: MosesIni
    feature: FeatureLine
    table: str
    output: str
    weight: float = 0.0
    relative: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.weight):
            raise ValueError(f"the weight is {self.weight}, expected a finite number")

    @classmethod
    def of(cls, ini: MosesIni, table: str, annotated: str, output: str, weight: float = 0.0) -> IniEdit:
        """Check the ini before any work starts, and return the planned change.

        Args:
            ini: the ini of `table`, or of the table that it was pruned from; see `ini_of_table`.
            table: the table to annotate.
            annotated: the output table.
            output: the ini to write.
            weight: weight of each new column.

        Raises:
            DataError: the table cannot be read, or no columns can be added to it in the ini.
        """
        feature = find_table(ini, table)
        check_table(ini, feature)
        edit = cls(ini, feature, annotated, output, weight)
        with Input(table) as source:
            edit.check(next((block.scores for block in raw_blocks(source, 1 << 16)), -1))
        return edit

    @property
    def scores(self) -> int:
        """The number of scores of the table according to the ini."""
        return int(self.feature.arguments.get("num-features", "1"))

    def check(self, scores: int) -> None:
        """Reject a table whose number of scores differs from that of the ini; -1 stands for a table without entries."""
        if scores not in (-1, self.scores):
            raise self.ini.error(
                f"{self.feature.name} has num-features={self.scores}, but the entries of the table have {scores} "
                "scores; Moses stops at that",
                self.feature.line,
            )

    def write_to(self, out: Output, columns: int) -> None:
        """Write the ini for this many new columns."""
        text = with_table_file(self.ini, self.feature, self.table, self.scores + columns, self.weight, self.output)
        if self.relative:
            text = with_relative_paths(parse_moses_ini(self.output, text))
        out.write_text(text.encode(*ENCODING))
        out.flush()


@dataclass(frozen=True)
class AnnotateRequest:
    """Settings of an annotation run.

    Attributes:
        table: the phrase table, compressed or not; `-` for standard input.
        output: the annotated table; `-` for standard output.
        models: folders of models, whose similarities are appended.
        forced_pairs: pairs of forced decoding, whose probabilities are appended.
        smoothing: one of `SMOOTHINGS`, whose probabilities are appended.
        scale: conversion of similarities to scores; see `insert_scores`.
        edit: the change of a moses.ini, if any.
        scan: settings for reading the table.
        reading: how translators score pairs, see `phrasetool.translator.decoding`.
        encoder: a sentence encoder, whose similarities are appended after those of the models.
        resume: whether to store finished results next to the output, and to reuse those of an interrupted run.
        likelihood: the columns of syntactic encoders; only the cosine if None.
        device: the device that encodes phrases, see `BilingualModel.scorer`.

    Raises:
        ValueError: `scale` or `reading` has another value.
    """

    table: str
    output: str
    models: Sequence[str] = ()
    forced_pairs: str | None = None
    smoothing: str | None = None
    scale: str = "exp"
    edit: IniEdit | None = None
    scan: TableScan = field(default_factory=TableScan)
    reading: str = "normalised"
    encoder: EncoderRequest | None = None
    resume: bool = False
    likelihood: LikelihoodRequest | None = None
    device: str = CPU

    def __post_init__(self) -> None:
        if self.scale not in (scales := (*SCALES, SOFTMAX)):
            raise ValueError(f"unknown scale {self.scale!r}; expected one of {', '.join(scales)}")
        if self.reading not in READINGS:
            raise ValueError(f"unknown reading {self.reading!r}; expected one of {', '.join(READINGS)}")

    @property
    def columns(self) -> int:
        """The number of columns that are appended."""
        return (
            sum(columns_of_model(folder, self.likelihood) for folder in self.models)
            + MODEL_COLUMNS * bool(self.encoder)
            + FORCED_COLUMNS * bool(self.forced_pairs)
            + SMOOTHED_COLUMNS * bool(self.smoothing)
        )


def annotate(request: AnnotateRequest, watch: Watch = SILENT, more: Sequence[SimilaritySource] = ()) -> AnnotateCounts:
    """Write the table with additional columns, and the ini if one is requested.

    Args:
        request: the settings.
        watch: progress listener.
        more: further sources of similarities; each adds two columns after those of the models.

    Raises:
        DataError: a file is damaged, has a malformed line, or does not match the others; or, unless forced, a model
            does not match the table, or the table was annotated with it before.
        ModelError: a model cannot be loaded.
        PhraseToolError: a file cannot be written.
        ValueError: there is nothing to append.
    """
    request = replace(request, scan=replace(request.scan, warn=watch.warn))
    if not is_stream(request.table):
        with Input(request.table) as source:
            check_plausible(source, request.scan)
    checks = [FitCheck(folder, watch, request.scan.force, appended=True, ahead=True) for folder in request.models]
    counted = [sources_of_model(folder, request.likelihood) for folder in request.models]
    folders = [parts_folder(request.output, number) for number in range(1, sum(counted) + 1)]
    parts = iter(folders)
    models = [
        source
        for check, count in zip(checks, counted, strict=True)
        for source in model_sources(
            check,
            request.reading,
            request.scan.threads,
            list(itertools.islice(parts, count)),
            request.likelihood,
            request.device,
        )
    ]
    encoded = _encoded(request, watch) if request.encoder else None
    sources: list[SimilaritySource] = [*models, *([encoded] if encoded else []), *more]
    forced = PairUses.read(request.forced_pairs, say=watch.say) if request.forced_pairs else None
    smoothed = _smoothed(request, watch) if request.smoothing else None
    columns = request.columns + MODEL_COLUMNS * len(more)
    with contextlib.ExitStack() as outputs:
        outputs.enter_context(finishing(folders))
        request = replace(request, scan=replace(request.scan, finished=_finished(request, outputs, watch)))
        if request.edit:
            request.edit.write_to(outputs.enter_context(Output(request.edit.output)), columns)
        with (
            Input(request.table) as source,
            Output(request.output) as destination,
            watch.file("annotate", source.size()) as progress,
        ):
            # A table that can be read only once has not been checked yet.
            if is_stream(request.table):
                check_plausible(source, request.scan)
            counts = annotate_table(
                source, destination, sources, replace(request.scan, progress=progress),
                forced=forced, smoothed=smoothed, scale=request.scale,
            )  # fmt: skip
            if request.edit:
                request.edit.check(counts.scores)
    forget_finished(request.output)
    for model in models:
        if isinstance(model, WindowedScores):
            counts.too_long += model.too_long
            watch.say(f"a column is {model.column} by {model.folder}")
    counts.fits.extend(check.fit for check in checks if check.fit)
    counts.fits.extend([encoded.fit] if encoded else [])
    return counts


def _finished(request: AnnotateRequest, outputs: contextlib.ExitStack, watch: Watch) -> FinishedWork | None:
    """Return the stored results of interrupted work, which are removed when all outputs are complete."""
    if not request.resume:
        return None
    return outputs.enter_context(FinishedWork(request.output, request.table, work_settings(request), watch.say))


def work_settings(request: AnnotateRequest) -> dict[str, str]:
    """Return the settings that stored results depend on, in addition to the table; see `FinishedWork`."""
    return settings_of(request, ("table", "output", "edit", "scan", "resume")) | request.scan.settings


def _encoded(request: AnnotateRequest, watch: Watch) -> EncoderSimilarities:
    """Encode the phrases of the table in a first pass."""
    # Imported here, because this is rarely used.
    from moses_compat.measures.encoded import encoder_similarities

    assert request.encoder is not None
    return encoder_similarities(request.encoder, request.table, lambda: Input(request.table), request.scan, watch)


def _smoothed(request: AnnotateRequest, watch: Watch) -> SmoothedProbabilities:
    """Compute smoothed probabilities in a first pass over the table."""
    with Input(request.table) as source, watch.file("count", source.size()) as progress:
        counts = count_table(source, replace(request.scan, progress=progress), remedy="leave out smoothing")
    check_whole(source.name, counts, request.scan)
    if counts.statistics.pairs and not counts.statistics.by_count[1]:
        watch.say(
            f"no entry of {request.table} was seen only once: if they were pruned, annotate the whole table first"
        )
    assert request.smoothing is not None
    return SmoothedProbabilities(source.name, counts, request.smoothing)
