"""Measures of all entries of a table, for criteria that compare all entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.files.paths import STANDARD
from moses_compat.files.streams import Input
from moses_compat.ini.tables import TableWeights
from moses_compat.lines.counts import OF_PAIR, CountUse
from moses_compat.lines.hashes import hash_words
from moses_compat.lines.numbers import DIRECT_COLUMN, INVERSE_COLUMN, log_scores, require_trained_scores
from moses_compat.measures.entry_reader import EntryReader, Item, ReadBlock
from moses_compat.measures.pair_counts import PairUses, SmoothedProbabilities, count_table
from moses_compat.measures.pair_test import CorpusCheck, PairTest, PairTestResults, read_indexes
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.source_order import SourceLook, SourceOrder, follow_blocks
from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray, EntryBlock, FloatArray, Int64Array
from phrasetool.pruning.composition import Compositions, EntriesBySourceLength, Losses
from phrasetool.pruning.measures import (
    COUNTS,
    FORCED,
    LOSSES,
    MODEL_SCORES,
    OCCURRENCES,
    PROBABILITIES,
    SCORED_MASKS,
    SIGNIFICANCE,
    SMOOTHED,
    USES,
    Measure,
    MeasuredTable,
    Measures,
)
from phrasetool.smt.extraction.smoothing import forced_probabilities
from phrasetool.watch import Watch


@dataclass(frozen=True)
class FieldPlaces:
    """Positions of the fields of M entries of a block, in H source groups; all arrays int64.

    Attributes:
        starts: shape (M,), starts of their lines.
        source_ends, target_ends: shape (M,), positions of their first two `|||`.
        heads: shape (H,), the first entry of each group.
        groups: shape (M,), the group of each entry.
        words: shape (H,), number of words of each source, without labels such as `[X]`.
    """

    starts: Int64Array
    source_ends: Int64Array
    target_ends: Int64Array
    heads: Int64Array
    groups: Int64Array
    words: Int64Array

    @classmethod
    def of(cls, block: EntryBlock, rows: Int64Array) -> FieldPlaces:
        """Return the positions for the entries `rows`, int64, shape (M,), ascending."""
        groups = np.repeat(np.arange(len(block.source_lengths)), np.diff(block.group_offsets))[rows]
        first = np.ones(len(rows), np.bool_)
        first[1:] = groups[1:] != groups[:-1]
        heads = np.flatnonzero(first)
        return cls(
            block.line_offsets[:-1][rows], block.source_ends[rows], block.target_ends[rows], heads,
            np.cumsum(first) - 1, block.source_lengths[groups[heads]],
        )  # fmt: skip


@dataclass(frozen=True)
class ComposedEntries:
    """The data of some entries of a block for composition losses.

    Attributes:
        entries: the entries, ready to be written.
        sources: number of source groups.
        rules: number of source groups with a label such as `[X]`.
    """

    entries: EntriesBySourceLength
    sources: int
    rules: int

    @classmethod
    def of(cls, text: ByteArray, places: FieldPlaces, scores: FloatArray) -> ComposedEntries:
        """Hash the words of M entries.

        Args:
            text: uint8, the text of the block.
            places: positions of the fields of the M entries.
            scores: float32, shape (M,), scores of the entries.
        """
        heads = places.heads
        sources = hash_words(text, places.starts[heads], places.source_ends[heads])
        targets = hash_words(text, places.source_ends + 3, places.target_ends)
        sizes = np.bincount(places.groups, minlength=len(heads))
        rules = int(np.count_nonzero(sources.lengths > places.words))
        return cls(EntriesBySourceLength.of(sources, sizes, targets, scores), len(heads), rules)


_LARGEST = np.finfo(np.float32).max
# Arrays by measure.
Columns = dict[Measure[Any], npt.NDArray[Any]]


@dataclass(frozen=True)
class MeasureRequest:
    """The measures to compute for a table, in addition to those that every criterion uses.

    Attributes:
        weights: weights of a model, for model scores, if any.
        similarities: sources of semantic, syntactic and other similarities, by measure.
        corpora: the two sides of the bitext that the table was made from, for the significance test, if any.
        losses: whether to compute composition losses.
        forced_pairs: pairs of forced decoding with counts, for usage, if any.
        forced_probabilities: whether to compute phrase probabilities from these counts.
        probabilities: whether entries are ranked by p(target | source), which requires the scores of Moses' training;
            if not, the last score takes its place in a table with fewer scores.
        smoothing: one of `SMOOTHINGS`, for probabilities from the counts of the table, if any.
        by_source: whether the entries of a source must be contiguous; other tables are rejected.
        scan: settings for reading the table; its threads are also used for other work.
        occurrences: whether to read all three counts.
        count_use: the feature that needs a joint count of each entry, if any.

    Raises:
        ValueError: losses are requested without weights, or probabilities without pairs.
    """

    weights: TableWeights | None = None
    similarities: Mapping[Measure[np.float32], SimilaritySource] = field(default_factory=dict)
    corpora: tuple[str, str] | None = None
    losses: bool = False
    forced_pairs: PairUses | None = None
    forced_probabilities: bool = False
    probabilities: bool = False
    smoothing: str | None = None
    by_source: bool = True
    scan: TableScan = field(default_factory=TableScan)
    occurrences: bool = False
    count_use: CountUse | None = None

    def __post_init__(self) -> None:
        if self.losses and self.weights is None:
            raise ValueError("losses cannot be measured without the weights of a model")
        if self.forced_probabilities and self.forced_pairs is None:
            raise ValueError("probabilities of forced decoding cannot be measured without its pairs")

    @classmethod
    def of(
        cls,
        needs: Collection[Measure[Any]],
        scan: TableScan,
        *,
        weights: Callable[[], TableWeights],
        similarities: Mapping[Measure[np.float32], SimilaritySource] | None = None,
        corpora: tuple[str, str] | None = None,
        forced_pairs: str | None = None,
        by_source: bool = True,
        count_use: CountUse | None = None,
    ) -> MeasureRequest:
        """Return a request for the measures that criteria or columns need; other inputs are not read.

        Args:
            needs: measures that criteria or columns need.
            scan: settings for reading the table.
            weights: returns the weights of a model.
            similarities, corpora: see the attributes.
            forced_pairs: the file of the pairs.
            by_source: see the attributes.
            count_use: see the attributes; counts are also required if it is None but `needs` has counts.

        Raises:
            DataError: the file of the pairs is damaged or has a malformed line.
        """
        needs = frozenset(needs)
        forced = forced_pairs if needs & {USES, FORCED} else None
        return cls(
            weights=weights() if needs & {LOSSES, MODEL_SCORES} else None,
            similarities={measure: source for measure, source in (similarities or {}).items() if measure in needs},
            corpora=corpora if SIGNIFICANCE in needs else None,
            losses=LOSSES in needs,
            forced_pairs=PairUses.read(forced, totals=FORCED in needs, say=scan.warn) if forced else None,
            forced_probabilities=FORCED in needs,
            probabilities=PROBABILITIES in needs,
            smoothing="kneser-ney" if SMOOTHED in needs else None,
            by_source=by_source,
            scan=scan,
            occurrences=OCCURRENCES in needs,
            count_use=count_use or (CountUse("the method", remedy="prune without counts") if COUNTS in needs else None),
        )

    @property
    def block_measures(self) -> tuple[Measure[Any], ...]:
        """The measures that are computed block by block: all except losses."""
        requested: dict[Measure[Any], object] = {
            MODEL_SCORES: self.weights, SIGNIFICANCE: self.corpora, USES: self.forced_pairs,
            FORCED: self.forced_probabilities, SMOOTHED: self.smoothing, OCCURRENCES: self.occurrences,
        }  # fmt: skip
        similarity_measures = [measure for similar in self.similarities for measure in (similar, SCORED_MASKS[similar])]
        return (
            PROBABILITIES,
            COUNTS,
            *similarity_measures,
            *(measure for measure, needed in requested.items() if needed),
        )


def measure_table(source: Input, request: MeasureRequest, work: str | None = None) -> MeasuredTable:
    """Read a table once (twice for smoothing) and compute the requested measures of all its entries.

    Malformed lines that `scan.on_error` lets pass are entries whose other measures are 0; they do not take part in
    compositions.  An entry with a side without words has infinite significance, as it cannot be tested.  A joint count
    that is missing or invalid is NaN, unless counts are required.  The result does not depend on threads or on the size
    of blocks.

    Measures are stored in unnamed files.  Memory does not grow with the table, except by 18 bytes per entry for losses,
    by the size of the corpora and of the pairs of forced decoding, and, for smoothing, by the number of phrases.

    Args:
        source: the table, read from its beginning.
        request: the measures to compute.
        work: folder for these files; None for the system's folder for temporary files.

    Raises:
        DataError: the table is damaged or has a malformed line (see `scan.on_error`); it does not match the weights,
            the saved similarities or the pairs of forced decoding; or, with weights, a score is negative or infinite;
            or, for losses, it has only rules; or, for probabilities of forced decoding, it has fewer than four scores;
            or, for smoothing, or with `count_use`, an entry has no counts; or, with `by_source`, the entries of a
            source are not contiguous, unless `scan.force` is set.
        CorpusMismatchError: more than half of the first entries do not occur in the corpora.
        PhraseToolError: the files cannot be written.
        ValueError: smoothed probabilities are requested for standard input.
    """
    scan, weights = request.scan, request.weights
    test = PairTest(*read_indexes(*request.corpora, scan.threads)) if request.corpora else None
    measurer = _BlockMeasurer(source, request, test, _smoothed(source.path, request))
    check = CorpusCheck(source.name, test) if test else None
    table = MeasuredTable(request.block_measures, work)
    compositions = Compositions(work) if request.losses else None
    lines_read, rules = 0, [0, 0]
    for raw, part in follow_blocks(
        "measure", measurer.reader.items(), measurer, measurer.order, scan, measurer.reader.pass_over
    ):
        if check and part.tested:
            check.add(part.tested)
        if compositions is not None and part.composed:
            compositions.add(part.composed.entries)
            rules[0] += part.composed.sources
            rules[1] += part.composed.rules
        table.append(part.measures, raw.continued)
        lines_read += raw.lines
        scan.progress(raw.position, lines_read)
    measurer.reader.finish(lines_read)
    if check:
        check.check()
    table.alpha = test.alpha if test else 0.0
    if request.forced_pairs:
        _check_uses(table, request.forced_pairs.path, source.name)
    # Their memory is needed for the composition losses.
    del measurer, test, check, request
    if compositions is not None and weights:
        if rules[0] and rules[0] == rules[1]:
            message = "all its entries are rules with labels such as [X]; compositions need a table of phrases"
            raise DataError(source.name, message)
        _add_losses(table, compositions.losses(weights.distortion, scan.threads), weights.size)
    return table


def _check_uses(table: MeasuredTable, pairs: str, name: str) -> None:
    """Reject pairs of another table."""
    good = False
    for part in table.parts():
        if part[USES].any():
            return
        good = good or not part.malformed.all()
    if good:
        raise DataError(pairs, f"none of its pairs with a count above 0 is in {name}")


def _add_losses(table: MeasuredTable, losses: Losses, scale: float) -> None:
    column = table.new_column(np.float32)
    for part in table.parts():
        values = np.zeros(len(part), np.float32)
        good = ~part.malformed
        values[good] = losses.take(int(np.count_nonzero(good))) / np.float32(scale)
        column.append(values)
    table.add(LOSSES, column)


def measure_file(
    path: str,
    scan: TableScan,
    watch: Watch,
    request: Callable[[TableScan], MeasureRequest],
    name: str | None = None,
    work: str | None = None,
) -> MeasuredTable:
    """Measure a table from its file, with progress reporting.

    Args:
        path: path of the table.
        scan: settings for reading the table; progress is reported to `watch`.
        watch: progress listener.
        request: returns the measures to compute; called when the table is open.
        name: name of the table in messages, if not its path.
        work: folder for temporary files, see `measure_table`.

    Raises:
        DataError: as `measure_table`.
        PhraseToolError: as `measure_table`.
    """
    with Input(path, name) as source, watch.file("measure", source.size()) as progress:
        return measure_table(source, request(replace(scan, progress=progress)), work)


def _smoothed(path: str, request: MeasureRequest) -> SmoothedProbabilities | None:
    """Read the table a first time, and return its smoothed probabilities if they are requested."""
    if request.smoothing is None:
        return None
    if path == STANDARD:
        raise ValueError("to smooth, a table is read twice, which standard input cannot be")
    scan = request.scan
    with Input(path) as source:
        counts = count_table(source, TableScan(scan.on_error, scan.threads, scan.block_bytes))
    return SmoothedProbabilities(source.name, counts, request.smoothing)


@dataclass(frozen=True)
class _MeasuredBlock:
    """The measures of a block.

    Attributes:
        measures: measures of its entries.
        composed: data for composition losses, if requested.
        tested: results of the significance test, if requested.
    """

    measures: Measures
    composed: ComposedEntries | None
    tested: PairTestResults | None


class _BlockMeasurer:
    """Measurement of one block; may be called by several threads."""

    def __init__(
        self,
        source: Input,
        request: MeasureRequest,
        test: PairTest | None,
        smoothed: SmoothedProbabilities | None,
    ) -> None:
        self._name = source.name
        self._request = request
        self._test = test
        self._smoothed = smoothed
        # The entries of a source may be measured in several blocks.
        scan = replace(request.scan, whole_groups=False)
        self.order = SourceOrder(source, scan, request.by_source)
        self.reader = EntryReader(source, scan, *request.similarities.values(), columns=self._columns)

    def _columns(self, scores: int) -> Sequence[int]:
        """Return all score columns if weighted, else p(target | source), after p(source | target) if needed."""
        if scores < 0:
            return ()
        if self._request.weights:
            return range(scores)
        direct = min(DIRECT_COLUMN, scores - 1)
        return (INVERSE_COLUMN, direct) if self._request.forced_probabilities else (direct,)

    def __call__(self, item: Item) -> tuple[SourceLook | None, _MeasuredBlock]:
        raw, _ = item
        self._check_scores(raw)
        read = self.reader(item)
        block = read.block
        rows = np.flatnonzero(~block.malformed)
        positions = FieldPlaces.of(block, rows) if self._test or self._request.losses else None
        columns = self._by_scores(read, rows)
        if self._request.count_use:
            read.check_counts(self._name, self._request.count_use)
        if self._request.occurrences:
            columns[OCCURRENCES] = read.counts.values
        for similar, scores in zip(self._request.similarities, read.all_scores, strict=True):
            columns |= {similar: scores.similarities, SCORED_MASKS[similar]: scores.scored}
        tested = None
        if self._test and positions:
            tested = self._test(raw.text, positions.starts, positions.source_ends, positions.target_ends)
            columns[SIGNIFICANCE] = _spread(block, rows, np.where(tested.wordless, np.inf, tested.values))
        if self._smoothed:
            columns[SMOOTHED] = np.where(block.malformed[:, None], 0, self._smoothed(block)).astype(np.float32)
        composed = None
        if self._request.losses and positions:
            composed = ComposedEntries.of(raw.text, positions, columns[MODEL_SCORES][rows])
        # These arrays do not keep the text in memory.
        part = Measures(block.group_offsets, block.source_lengths, block.malformed, columns)
        return self.order.look(raw, block), _MeasuredBlock(part, composed, tested)

    def _check_scores(self, raw: RawBlock) -> None:
        """Reject entries whose number of scores does not match the requested measures."""
        weights = self._request.weights
        if weights and raw.scores >= 0 and raw.scores != len(weights.scores):
            raise DataError(
                self._name,
                f"the entries have {raw.scores} scores, but {weights.name} has {len(weights.scores)} weights",
                raw.first_entry + 1,
            )
        if self._request.forced_probabilities:
            require_trained_scores(self._name, raw.scores, raw.first_entry + 1, "probabilities of forced decoding")
        if self._request.probabilities:
            require_trained_scores(self._name, raw.scores, raw.first_entry + 1, "the method probability")

    def _by_scores(self, read: ReadBlock, rows: Int64Array) -> Columns:
        """Compute the measures from score and count fields, and from pairs of forced decoding.

        Args:
            read: the block, with the score columns of `_columns`.
            rows: the entries that are not malformed.
        """
        block, values = read.block, read.columns[rows]
        # A score beyond single precision is not a probability, but must remain finite.
        direct = values[:, min(DIRECT_COLUMN, values.shape[1] - 1)] if values.shape[1] else np.zeros(len(rows))
        columns: Columns = {PROBABILITIES: _spread(block, rows, np.clip(direct, -_LARGEST, _LARGEST))}
        if weights := self._request.weights:
            totals = np.zeros(len(rows), np.float32)
            if values.shape[1]:
                totals = weights.total(log_scores(self._name, values, block.first_entry + rows))
            columns[MODEL_SCORES] = _spread(block, rows, totals)
        columns[COUNTS] = _spread(block, rows, read.counts.values[rows, OF_PAIR])
        if pairs := self._request.forced_pairs:
            uses = pairs.look_up(block.text, block.line_offsets, ~block.malformed)
            columns[USES] = np.ascontiguousarray(uses[:, 0])
            if self._request.forced_probabilities:
                forced = np.zeros((len(rows), 2))
                if values.shape[1]:
                    forced = forced_probabilities(uses[rows], direct, values[:, INVERSE_COLUMN])
                columns[FORCED] = _spread(block, rows, forced)
        return columns


def _spread(block: EntryBlock, rows: Int64Array, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Expand the values of some entries of a block to an array of all entries, with 0 for the others."""
    spread = np.zeros((len(block), *values.shape[1:]), np.float32)
    spread[rows] = values
    return spread
