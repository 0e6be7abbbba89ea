"""Prune a phrase table: read it, decide about every entry, and send it to where its lines go.

There are two ways to the same decision.  Where the rule can be followed block by block (`prune_table`), similarities
are asked for and entries decided about while the table streams.  Where criteria look at all entries together, the
table is measured first (`measures.measure`), decided about as a whole, and streamed once more (`prune_decided`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from moses_compat.files.names import scratch_place
from moses_compat.files.streams import Input
from moses_compat.jobs.sinks import DecidedBlock, Kept, Sink
from moses_compat.lines.counts import CountUse
from moses_compat.measures.entry_reader import EntryReader, Item, MeasuredReader, ReadBlock
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.finished_blocks import follow_blocks
from moses_compat.tables.line_marks import LineMarks
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.disk.scratch import scratch_folder
from phrasetool.errors import DataError
from phrasetool.phrases import DoubleArray
from phrasetool.pruning.decision import Decision, Rule, rank
from phrasetool.pruning.measured_table import MeasuredTable
from phrasetool.pruning.measures import OCCURRENCES, OPINION, SIMILARITIES, Measure, Measures
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.ranked_table import DecidedTable, TableReasons
from phrasetool.pruning.reasons import Reasons, explain
from phrasetool.pruning.sizes import SizeCurve

if TYPE_CHECKING:
    from moses_compat.measures.saved_similarities import ScoreWriter


@dataclass(frozen=True)
class Chosen:
    """What was decided about a whole table.

    Attributes:
        decision: about its entries.
        best: the rule that protected some.
        rule: for the signature line.
        figures: for the statistics.
    """

    decision: DecidedTable
    best: KeepBest
    rule: str
    figures: Mapping[str, Any] = field(default_factory=dict)


def measures_of(read: ReadBlock, occurrences: bool = False) -> Measures:
    """What is known of a block by itself: its groups, similarities if it was scored, and counts if they are needed."""
    block = read.block
    columns: dict[Measure[Any], npt.NDArray[Any]] = {}
    if read.scores:
        columns = {SIMILARITIES: read.scores.similarities, OPINION: read.scores.opinion}
    if occurrences:
        columns[OCCURRENCES] = read.counts.values
    return Measures(block.group_offsets, block.source_lengths, block.faulty, columns)


def _send(
    reader: EntryReader | MeasuredReader,
    judge: Callable[[ReadBlock], DecidedBlock],
    sinks: Sequence[Sink],
    scan: TableScan,
    order: SourceOrder,
) -> int:
    """Read, judge and write; the number of lines."""

    def work(item: Item) -> tuple[SourceLook | None, list[Any]]:
        decided = judge(reader(item))
        return order.look(decided.read.raw, decided.block), [sink.prepare(decided) for sink in sinks]

    done = 0
    for raw, prepared in follow_blocks("prune", reader.items(), work, order, scan, reader.pass_over):
        # Similarities come last, and need not be written again where an interrupted run came so far.
        for sink, part in zip(sinks, prepared[: len(sinks)], strict=True):
            sink.write(part)
        done += raw.lines
        scan.progress(raw.position, done)
    reader.finish(done)
    return done


def prune_table(
    source: Input,
    similarities: SimilaritySource,
    rule: Rule,
    sinks: Sequence[Sink],
    scan: TableScan,
    fingerprints: bool = False,
    ask_all: bool = True,
    fields: bool = True,
    count_use: CountUse | None = None,
) -> None:
    """Decide about the entries of a table while it streams, by a rule that needs no more than similarities.

    Args:
        source: the table, read from its beginning.
        similarities: of its entries.
        rule: whose method is meaning alone, and whose cut is a threshold.
        sinks: receive all blocks.
        fingerprints: whether a sink needs fingerprints of the pairs.
        ask_all: whether similarities of entries that stay whatever they say are wanted, too, for a sink.
        fields: whether a sink looks at fields of entries.
        count_use: what needs a joint count of each entry; None if nothing does.

    Raises:
        DataError: the table is damaged, has a faulty line, or does not fit the source of similarities; or, where the
            best of a source stay, a source comes back after others (unless `scan.force` is set); or an entry lacks a
            count that is needed.
    """

    def judge(read: ReadBlock) -> DecidedBlock:
        if count_use:
            read.check_counts(source.name, count_use)
        ranking = rule.ranking(measures_of(read, rule.best.frequent is not None))
        decision = rule.decide(ranking)
        return DecidedBlock(read, decision, explain(ranking, decision))

    settled = None if ask_all else rule.best.settles
    reader = EntryReader(source, scan, similarities, fingerprints=fingerprints, settled=settled, fields=fields)
    _send(reader, judge, sinks, scan, SourceOrder(source, scan, rule.best.by_source))


def prune_decided(
    source: Input,
    decision: Decision | DecidedTable,
    reasons: Reasons | TableReasons | None,
    sinks: Sequence[Sink],
    scan: TableScan,
    table: MeasuredTable | None = None,
) -> None:
    """Send a table where its lines go, after it was decided about as a whole.

    Args:
        source: the table, read from its beginning.
        decision: about all its N entries; faulty lines follow `scan.on_error`.
        reasons: of the N entries, if they are known.
        sinks: receive all blocks.
        table: what is known of the N entries; with it blocks come without fields, as no line is parsed again.

    Raises:
        DataError: the table is damaged, or is not the one that was decided about.
    """
    entries = len(decision)
    # A source of any number of entries is written piece by piece.
    scan = replace(scan, whole_groups=False)

    def judge(read: ReadBlock) -> DecidedBlock:
        last = read.raw.first_entry + len(read.block)
        if last > entries:
            raise DataError(source.name, f"has more than the {entries:,} lines it had when it was measured", last)
        part = slice(read.raw.first_entry, last)
        return DecidedBlock(read, decision.part(part), reasons.part(part) if reasons else None)

    reader = EntryReader(source, scan) if table is None else MeasuredReader(source, scan, table)
    done = _send(reader, judge, sinks, scan, SourceOrder(source, scan, needed=False))
    if done != entries:
        raise DataError(source.name, f"has {done:,} lines now, but had {entries:,} when it was measured")


def measure_sizes(
    source: Input,
    similarities: SimilaritySource,
    method: Method,
    best: KeepBest,
    scan: TableScan,
    thresholds: Sequence[float] = (),
    save: ScoreWriter | None = None,
    count_use: CountUse | None = None,
) -> SizeCurve:
    """Count how many entries each threshold leaves, in one pass, writing no table.

    Args:
        method: meaning alone.
        best: what stays in any case.
        thresholds: where exact counts are wanted.
        save: receives the similarities.
        count_use: see `prune_table`.

    Raises:
        DataError: as `prune_table`.
    """
    reader = EntryReader(source, scan, similarities, fingerprints=save is not None, fields=save is not None)
    order = SourceOrder(source, scan, best.by_source)

    def work(item: Item) -> tuple[SourceLook | None, tuple[Kept | None, DoubleArray, npt.NDArray[np.floating]]]:
        read = reader(item)
        if count_use:
            read.check_counts(source.name, count_use)
        ranking = rank(method, measures_of(read, best.frequent is not None))
        kept = (LineMarks.of(read.raw, read.block), read.scores) if save and read.scores else None
        return order.look(read.raw, read.block), (
            kept, ranking.strengths(best)[read.passes], ranking.worth[read.passes],
        )  # fmt: skip

    curve = SizeCurve(thresholds)
    done = 0
    for raw, (kept, strengths, worth) in follow_blocks("sizes", reader.items(), work, order, scan, reader.pass_over):
        curve.add(strengths, worth)
        if save and kept:
            save.write(*kept)
        done += raw.lines
        scan.progress(raw.position, done)
    reader.finish(done)
    return curve


@contextlib.contextmanager
def scratch_scores(beside: str) -> Iterator[str]:
    """A path for similarities that are needed only until the block ends, beside the file `beside` if it is a file."""
    with scratch_folder(scratch_place(beside), ".phrasetool-") as scratch:
        yield os.path.join(scratch, "scores.parquet")
