"""Read a table block by block: parse it, handle malformed lines, and compute the similarities of its entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.lines.counts import CountUse, EntryCounts, block_counts, require_joint_counts
from moses_compat.lines.insert_scores import selected_lines
from moses_compat.measures.similarities import SimilarityReader, SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan, block_without_fields
from moses_compat.tables.parser import LineScan, TableParser
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import DoubleArray, EntryBlock, Int64Array, Mask
from phrasetool.pruning.measures import MeasuredTable

# A raw block, and its part of each similarity source.
Item = tuple[RawBlock, Any]
# Function from the offsets of G sources, shape (G + 1,), and their numbers of words to a mask, shape (G,), of the
# sources whose entries are all kept.
Settled = Callable[[Int64Array, Int64Array], Mask]


@dataclass(frozen=True)
class ReadBlock:
    """A parsed and scored block of N entries.

    Attributes:
        raw: the raw block.
        block: its entries.
        columns: float64, shape (N, C), the requested score columns.
        all_scores: similarities of each source.
        passes: bool, shape (N,), the lines that the handling of malformed lines lets pass.
        faults: number of malformed lines.
        settled: number of entries that were not scored, because they are kept anyway.
    """

    raw: RawBlock
    block: EntryBlock
    columns: DoubleArray
    all_scores: tuple[Scores, ...]
    passes: Mask
    faults: int
    settled: int = 0

    @property
    def scores(self) -> Scores | None:
        """The similarities of the only source; None without a source."""
        return self.all_scores[0] if self.all_scores else None

    @cached_property
    def counts(self) -> EntryCounts:
        """The counts of the entries."""
        return block_counts(self.block)

    def check_counts(self, name: str, use: CountUse) -> None:
        """Reject entries without a joint count, see `require_joint_counts`."""
        require_joint_counts(name, self.block, self.counts, use)


class EntryReader:
    """Reader of a table, once from its beginning.

    Args:
        source: the table.
        scan: settings for reading the table.
        similarities: similarity sources; None is ignored.
        fingerprints: whether to fingerprint every pair.
        columns: function from the number of scores to further 0-based score columns to read.
        settled: function that returns the sources whose entries are all kept (see `KeepBest.keeps_everything`); if
            possible, these entries are not scored and get the similarity 1.  Only used with one similarity source.
        fields: whether fields of entries are needed; if not, lines that the similarity source recognises are not
            parsed.  False requires exactly one similarity source and no columns.
    """

    def __init__(
        self,
        source: Input,
        scan: TableScan,
        *similarities: SimilaritySource | None,
        fingerprints: bool = False,
        columns: Callable[[int], Sequence[int]] = lambda scores: (),
        settled: Settled | None = None,
        fields: bool = True,
    ) -> None:
        self._source, self._scan = source, scan
        self._similar = [requested.reader(source.name) for requested in similarities if requested]
        self._fingerprints = fingerprints or any(similar.fingerprints for similar in self._similar)
        self._columns, self._fields = columns, fields
        self._settled = settled if len(self._similar) == 1 and self._similar[0].by_entry else None
        with_words = [similar.vocabularies for similar in self._similar if similar.vocabularies != (None, None)]
        self._vocabularies = with_words[0] if with_words else (None, None)

    def items(self) -> Iterator[Item]:
        """Yield the blocks, in order.

        Raises:
            DataError: the table or a similarity source is damaged.
        """
        for raw in self.look_at(self._scan.raw_blocks(self._source)):
            yield raw, self.take(raw)

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """Pass blocks through the similarity sources, for callers that read the table by other means.

        Raises:
            DataError: a source does not match the table.
        """
        for similar in self._similar:
            raws = similar.look_at(raws)
        return raws

    @property
    def judged(self) -> bool:
        """Whether all similarity sources are known to match the table."""
        return all(similar.judged for similar in self._similar)

    def take(self, raw: RawBlock) -> Any:
        """Return each similarity source's part for the next block, for callers that read the table by other means."""
        return [similar.take(raw.lines) for similar in self._similar]

    def __call__(self, item: Item) -> ReadBlock:
        """Parse and score one of the `items`; may be called by several threads.

        Raises:
            DataError: a line is malformed and `on_error` is `fail`, or a source does not match the table.
        """
        raw, taken = item
        if not self._fields and (known := self._similar[0].recognise(raw, taken[0])):
            block, scores = known
            passes = self._scan.passes(self._source.name, block.malformed, ())
            return ReadBlock(raw, block, np.zeros((raw.lines, 0)), (scores,), passes, 0)
        columns_by_source = [tuple(similar.columns(raw.scores, raw.first_entry)) for similar in self._similar]
        similarity_columns = [column for columns in columns_by_source for column in columns]
        vocabularies = (None, None) if self._settled else self._vocabularies
        parser = TableParser(
            *vocabularies, raw.scores, (*similarity_columns, *self._columns(raw.scores)), self._fingerprints
        )
        block, faults = parser(raw.first_entry, raw.text, raw.line_offsets)
        passes = self._scan.passes(self._source.name, block.malformed, faults)
        settled, all_scores, first = 0, [], 0
        if self._settled:
            settled, scores = self._score_unsettled(block, raw.scores, self._similar[0], self._settled)
            all_scores.append(scores)
        else:
            for similar, columns, part in zip(self._similar, columns_by_source, taken, strict=True):
                all_scores.append(similar.score(block, block.columns[:, first : first + len(columns)], part))
                first += len(columns)
        return ReadBlock(
            raw, block, block.columns[:, len(similarity_columns) :], tuple(all_scores), passes, len(faults), settled
        )

    @staticmethod
    def _score_unsettled(
        block: EntryBlock, scores: int, similar: SimilarityReader, settled: Settled
    ) -> tuple[int, Scores]:
        """Score the entries of unsettled sources; return the number of settled entries, and all similarities."""
        is_settled = np.repeat(settled(block.group_offsets, block.source_lengths), np.diff(block.group_offsets))
        similarities = np.where(block.malformed, np.float32(0), np.float32(1))[:, None].repeat(2, axis=1)
        scored = ~block.malformed
        if not is_settled.all():
            text = selected_lines(block.text, block.line_offsets, ~is_settled)
            unsettled, _ = TableParser(*similar.vocabularies, scores)(block.first_entry, text)
            unsettled_scores = similar.score(unsettled, unsettled.columns, None)
            similarities[~is_settled], scored[~is_settled] = unsettled_scores.similarities, unsettled_scores.scored
        return int(np.count_nonzero(is_settled)), Scores(similarities, scored)

    def pass_over(self, raw: RawBlock, scan: LineScan) -> None:
        """Register a block whose stored result is reused; may be called by several threads.

        Raises:
            DataError: a similarity source does not match the table.
        """
        for similar in self._similar:
            similar.pass_over(raw, scan)

    def finish(self, entries: int) -> None:
        """Check that no similarity source has more entries.

        Raises:
            DataError: a source has more entries.
        """
        for similar in self._similar:
            similar.finish(entries)


class MeasuredReader:
    """Reader of a measured table that only finds the ends of its lines.

    Args:
        source: the table.
        scan: settings for reading the table; malformed lines have already been handled.
        table: the measures of all entries.
    """

    def __init__(self, source: Input, scan: TableScan, table: MeasuredTable) -> None:
        self._source, self._scan, self._table = source, scan, table

    def items(self) -> Iterator[Item]:
        """Yield the blocks, in order."""
        return ((raw, None) for raw in self._scan.raw_blocks(self._source))

    def __call__(self, item: Item) -> ReadBlock:
        """Return the lines of a block; its entries have no fields and no words."""
        raw, _ = item
        groups, lengths, malformed = self._table.lines(raw.first_entry, raw.first_entry + raw.lines)
        block = block_without_fields(raw, groups, lengths, malformed)
        passes = self._scan.passes(self._source.name, malformed, ())
        return ReadBlock(raw, block, np.zeros((raw.lines, 0)), (), passes, int(np.count_nonzero(malformed)))

    def pass_over(self, raw: RawBlock, scan: LineScan) -> None:
        """Do nothing."""

    def finish(self, entries: int) -> None:
        """Do nothing, because there is no similarity source."""
