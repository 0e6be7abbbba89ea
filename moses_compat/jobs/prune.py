"""Prune a phrase table: decide about every entry, and write the table, its reordering table and reports.

There are two procedures.  A rule that needs only the similarities of each entry is applied while the table is streamed
(`prune_table`).  If criteria compare all entries, the table is measured first (`measured_table`), then the decision is
made, and the table is streamed again (`prune_decided`).  Either all files appear or none: each is written under a
temporary name and renamed when everything is complete, the table last.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from moses_compat.files.finished_work import forget_finished
from moses_compat.files.paths import is_stream
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.prune_ranking import (
    Chosen,
    fit_of_source,
    measured_table,
    measures_of,
    path_to_save,
    protection_for_size,
    score_writer,
    scratch_scores,
    similarity_source,
    sizes_by_threshold,
)
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.remove_orphans import OrphanCounts, remove_orphans
from moses_compat.jobs.sinks import Counts, DecidedBlock, KeptScores, SelectedLines, Sink, SurvivingPairs
from moses_compat.lines.counts import CountUse
from moses_compat.lines.hashes import PairSet
from moses_compat.measures.entry_reader import EntryReader, Item, MeasuredReader, ReadBlock
from moses_compat.measures.similarities import FileSimilarities, SimilaritySource, finishing
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.opening import REORDERING_TABLE, check_plausible, sorted_copy
from moses_compat.tables.source_order import SourceLook, SourceOrder, follow_blocks
from phrasetool import __version__
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pruning.decision import Decision, OfSize, Reasons, Rule, explain
from phrasetool.pruning.measures import MeasuredTable
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.ranked_table import DecidedTable, RankedTable, TableReasons
from phrasetool.pruning.sizes import TooSmallError, allowed_entries
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import SILENT, Watch


class TableTooSmallError(PhraseToolError):
    """The requested size is impossible: too many entries are protected.

    Args:
        table: name of the table.
        reason: how many entries are protected, and how many the size allows.
        best: the rule that protects them.
    """

    def __init__(self, table: str, reason: TooSmallError, best: KeepBest) -> None:
        self.best = best
        super().__init__(f"{table}: {reason}")


@dataclass(frozen=True)
class PruneResult:
    """The result of a run.

    Attributes:
        statistics: counts.
        signature: one line that describes how the table was pruned.
        criteria: names of the criteria.
        orphans: counts of the reordering table, if there is one.
        figures: further values for the statistics.
        best: the protection rule, if known.
    """

    statistics: PruneStatistics
    signature: str
    criteria: tuple[str, ...]
    orphans: OrphanCounts | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    best: KeepBest | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, for a file of statistics."""
        document = {**self.statistics.as_dict(self.signature), **self.figures}
        if self.orphans:
            document["reordering"] = self.orphans.as_dict()
        return document


def prune(request: PruneRequest, watch: Watch = SILENT, more: Sequence[Sink] = ()) -> PruneResult:
    """Write the table without the removed entries, and the other files of the request.

    Args:
        request: the pruning run, but not a sweep (see `sweep`).
        watch: progress listener.
        more: sinks in addition to those of the files.

    Raises:
        DataError: a file is damaged, has a malformed line, or does not match the others; or, unless forced, the model
            does not match the table.
        TableTooSmallError: more entries are protected than the requested size allows.
        PhraseToolError: a file cannot be written.
        ValueError: the request is for a sweep.
    """
    if request.sweep is not None:
        raise ValueError("a request for a sweep removes no entry")
    with finishing(request.part_folders), _checked_tables(request, watch) as request:
        with request.keeping(watch) as finished:
            request = replace(request, scan=replace(request.scan, finished=finished))
            run = _prune_streaming if request.streams else _prune_as_a_whole
            result = run(request, watch, more)
        forget_finished(request.output)
        return result


@contextlib.contextmanager
def _checked_tables(request: PruneRequest, watch: Watch) -> Iterator[PruneRequest]:
    """Check that the files are tables before any long work; yield the request, with a sorted copy if requested."""
    scan = request.scan_for(watch)
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


def _prune_streaming(request: PruneRequest, watch: Watch, more: Sequence[Sink]) -> PruneResult:
    """Prune while streaming; a requested size needs earlier passes that determine the protection and the threshold."""
    method = request.parsed_method
    similarities = scored = similarity_source(request, watch)
    save_to, threshold, best = path_to_save(request, similarities), request.threshold, request.best
    with contextlib.ExitStack() as stack:
        if request.target_size is not None:
            best = protection_for_size(request, request.target_size, watch)
            # Without pyarrow, similarities are computed twice.
            if not isinstance(similarities, FileSimilarities) and importlib.util.find_spec("pyarrow"):
                save_to = save_to or stack.enter_context(scratch_scores(request.output))
            curve = sizes_by_threshold(request, similarities, save_to, watch, best)
            try:
                threshold = Threshold.of(curve.threshold_for(request.target_size))
            except TooSmallError as reason:
                raise TableTooSmallError(request.table, reason, best) from reason
            watch.say(f"threshold {threshold.value(0.0):.9g} leaves at most {request.target_size:.1%}")
            if save_to:
                similarities, save_to = FileSimilarities(save_to), None
        rule = Rule.of(method, best, threshold=threshold)
        cut = (threshold or method.thresholds[0]).value(0.0)
        signature = f"{similarities.signature}|rule:t{cut:.9g}+{rule.best.text}|version:{__version__}"

        fields = bool(save_to or request.reasons or more)
        ask_all = request.ask_all or fields or bool(request.stats)

        def send(source: Input, sinks: Sequence[Sink], scan: TableScan) -> None:
            saves = save_to is not None
            prune_table(source, similarities, rule, sinks, scan, saves, ask_all, fields, request.count_use)

        result = PruneResult(PruneStatistics(), signature, method.names, best=rule.best)
        return _write(request, result, send, scored, watch, more, save_to)


def _prune_as_a_whole(request: PruneRequest, watch: Watch, more: Sequence[Sink]) -> PruneResult:
    """Measure the table, decide, and stream it once more."""
    method = request.parsed_method
    development = None
    if request.max_bleu_loss is not None:
        # A development set that cannot be read, or does not match, is rejected before the long work.
        from moses_compat.jobs.bleu_budget import DevelopmentSet, FullTable, search_budget

        development = FullTable.translate(request, DevelopmentSet.read(request, watch), watch)
    table, sources = measured_table(request, watch)
    ranking = RankedTable(method, table)
    if development:
        chosen = search_budget(request, development, ranking, watch)
    else:
        chosen = _choose(request, ranking, watch)
    decision = chosen.decision
    # For an explanation, each criterion scores all entries.
    explained = request.stats or request.reasons or (len(method.parts) > 1 and request.by_criterion)
    reasons = ranking.explain(decision) if explained else None
    signature = "|".join(
        [
            *(similar.signature for similar in sources),
            f"method:{method.name}",
            *([f"seed:{request.seed}"] if "random" in method.name else []),
            f"rule:{chosen.rule}{chosen.best.text}",
            f"version:{__version__}",
        ]
    )

    def send(source: Input, sinks: Sequence[Sink], scan: TableScan) -> None:
        # Selecting lines is faster than sending them to other processes.  Only a file of reasons needs the phrases.
        prune_decided(source, decision, reasons, sinks, replace(scan, runner=None), None if request.reasons else table)

    result = PruneResult(PruneStatistics(), signature, method.names, figures=chosen.figures, best=chosen.best)
    return _write(request, result, send, next(iter(sources), None), watch, more)


def _choose(request: PruneRequest, ranking: RankedTable, watch: Watch) -> Chosen:
    """Decide by a threshold, by thresholds of the criteria, or by a size."""
    method, size = ranking.method, request.target_size
    if size is None:
        rule = Rule.of(method, request.best, threshold=request.threshold)
        text = f"t{request.threshold.text}+" if request.threshold else ""
        return Chosen(ranking.decide(rule.cut, rule.best), rule.best, text)
    entries = len(ranking)
    if request.skips_malformed:
        entries -= sum(int(np.count_nonzero(part.malformed)) for part in ranking.table.parts())
    best = request.rule_for_size(ranking.table)(allowed_entries(size, entries))
    try:
        decision = ranking.decide(OfSize(size, request.skips_malformed), best)
    except TooSmallError as error:
        raise TableTooSmallError(request.table, error, best) from error
    if request.keep_top is None and best.protect != "none":
        watch.say(f"always kept: {best.words}")
    return Chosen(decision, best, f"size{size:g}+")


def _write(
    request: PruneRequest,
    result: PruneResult,
    send: Callable[[Input, Sequence[Sink], TableScan], None],
    similarities: SimilaritySource | None,
    watch: Watch,
    more: Sequence[Sink],
    save_to: str | None = None,
) -> PruneResult:
    """Send the table to the files of the request; either all files appear or none.

    Args:
        request: the pruning run.
        result: the result without the counts of this pass.
        send: function that sends the table through sinks.
        similarities: the source of similarities, which reports at the end how well a model matches the table.
        watch: progress listener.
        more: sinks in addition to those of the files.
        save_to: file for the similarities, which appears with the tables or not at all.
    """
    scan = request.scan_for(watch)
    with contextlib.ExitStack() as stack:

        def opened(path: str | None) -> Output | None:
            return stack.enter_context(Output(path)) if path else None

        source = stack.enter_context(request.open_table())
        reordering = stack.enter_context(Input(request.reordering_table)) if request.reordering_table else None
        # A table that can be read only once has not been checked yet.
        if is_stream(request.read_path):
            check_plausible(source, scan)
        if reordering and is_stream(reordering.path):
            check_plausible(reordering, scan, REORDERING_TABLE)
        # Files are renamed in reverse order of opening, so that the table appears last.
        kept = SelectedLines(stack.enter_context(Output(request.output)))
        in_step, rejected, report, reasons = map(
            opened, (request.reordering_out, request.rejected, request.stats, request.reasons)
        )
        counts, surviving = Counts(result.best.frequent if result.best else None), SurvivingPairs()
        sinks: list[Sink] = [kept, counts, *more]
        if rejected:
            sinks.append(SelectedLines(rejected, rejected=True))
        if reordering:
            sinks.append(surviving)
        if reasons:
            # Parquet is slow to import.
            from moses_compat.jobs.reasons_file import ReasonsWriter

            sinks.append(stack.enter_context(ReasonsWriter(reasons, result.criteria)))
        if save_to and similarities:
            sinks.append(KeptScores(stack.enter_context(score_writer(save_to, similarities))))
        with watch.file("prune", source.size()) as progress:
            send(source, sinks, replace(scan, progress=progress))
        counts.total.model_fit = fit_of_source(similarities)
        result = replace(result, statistics=counts.total)
        if reordering and in_step:
            result = replace(result, orphans=_in_step(reordering, in_step, surviving, scan, watch))
        if report:
            report.write_text((json.dumps(result.as_dict(), indent=2) + "\n").encode())
    return result


def _in_step(source: Input, output: Output, surviving: SurvivingPairs, scan: TableScan, watch: Watch) -> OrphanCounts:
    """Write the reordering table of the surviving pairs."""
    pairs = PairSet(surviving.hashes)
    surviving.hashes.clear()
    with watch.file("reordering table", source.size()) as progress:
        return remove_orphans(source, output, pairs, replace(scan, progress=progress))


class Swept(NamedTuple):
    """The size of the table at a threshold.

    Attributes:
        threshold: score below which entries fail.
        kept: entries that are kept.
        entries: all entries.
        failing: entries that would be removed if none were protected.
    """

    threshold: float
    kept: int
    entries: int
    failing: int

    @property
    def protected(self) -> int:
        """Entries below the threshold that are kept anyway."""
        return self.failing - (self.entries - self.kept)


def sweep(request: PruneRequest, watch: Watch = SILENT) -> list[Swept]:
    """Count how many entries each threshold of `request.sweep` leaves; no table is written.

    Raises:
        DataError: as `prune`.
    """
    method, thresholds = request.parsed_method, list(request.sweep or ())
    with _checked_tables(request, watch) as request:
        if request.streams:
            similarities = similarity_source(request, watch)
            save_to = path_to_save(request, similarities)
            curve = sizes_by_threshold(request, similarities, save_to, watch, request.best, thresholds)
            counts = zip(thresholds, curve.survivors.tolist(), curve.failing.tolist(), strict=True)
            return [Swept(threshold, kept, curve.entries, failing) for threshold, kept, failing in counts]
        ranking = RankedTable(method, measured_table(request, watch)[0])
    sizes = []
    for threshold in thresholds:
        rule = Rule.of(method, request.best, threshold=Threshold.of(threshold))
        decision = ranking.decide(rule.cut, rule.best)
        totals = np.zeros(3, np.int64)
        for measures in ranking.table.parts():
            part = decision.part(slice(measures.first, measures.first + len(measures)))
            counted = ~(measures.malformed & request.skips_malformed)
            totals += [np.count_nonzero(mask & counted) for mask in (part.keep, counted, part.fails)]
        sizes.append(Swept(threshold, *totals.tolist()))
    return sizes


def _send(
    reader: EntryReader | MeasuredReader,
    judge: Callable[[ReadBlock], DecidedBlock],
    sinks: Sequence[Sink],
    scan: TableScan,
    order: SourceOrder,
) -> int:
    """Read, judge and write all blocks; return the number of lines."""

    def work(item: Item) -> tuple[SourceLook | None, list[Any]]:
        decided = judge(reader(item))
        return order.look(decided.read.raw, decided.block), [sink.prepare(decided) for sink in sinks]

    lines = 0
    for raw, prepared in follow_blocks("prune", reader.items(), work, order, scan, reader.pass_over):
        # Stored similarities, which come last, are not written again if an interrupted run has completed their file.
        for sink, part in zip(sinks, prepared[: len(sinks)], strict=True):
            sink.write(part)
        lines += raw.lines
        scan.progress(raw.position, lines)
    reader.finish(lines)
    return lines


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
    """Decide about the entries of a table while streaming it, by a rule that needs only similarities.

    Args:
        source: the table, read from its beginning.
        similarities: similarities of its entries.
        rule: a rule with the method semantic and a threshold.
        sinks: receive all blocks.
        fingerprints: whether a sink needs fingerprints of the pairs.
        ask_all: whether a sink also needs similarities of protected entries.
        fields: whether a sink needs fields of entries.
        count_use: the feature that needs a joint count of each entry, if any.

    Raises:
        DataError: the table is damaged, has a malformed line, or does not match the source of similarities; or, if the
            best entries of a source are protected, the entries of a source are not contiguous (unless `scan.force` is
            set); or an entry lacks a required count.
    """

    def judge(read: ReadBlock) -> DecidedBlock:
        if count_use:
            read.check_counts(source.name, count_use)
        ranking = rule.ranking(measures_of(read, rule.best.frequent is not None))
        decision = rule.decide(ranking)
        return DecidedBlock(read, decision, explain(ranking, decision))

    settled = None if ask_all else rule.best.keeps_everything
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
    """Send a table through sinks after the decision about all its entries.

    Args:
        source: the table, read from its beginning.
        decision: decision about all N entries; malformed lines are handled by `scan.on_error`.
        reasons: reasons for the N entries, if known.
        sinks: receive all blocks.
        table: the measures of the N entries; with it, lines are not parsed again, and blocks have no fields.

    Raises:
        DataError: the table is damaged, or is not the table of the decision.
    """
    entries = len(decision)
    # The entries of a source may be written in several blocks.
    scan = replace(scan, whole_groups=False)

    def judge(read: ReadBlock) -> DecidedBlock:
        last = read.raw.first_entry + len(read.block)
        if last > entries:
            raise DataError(source.name, f"has more than the {entries:,} lines it had when it was measured", last)
        part = slice(read.raw.first_entry, last)
        return DecidedBlock(read, decision.part(part), reasons.part(part) if reasons else None)

    reader = EntryReader(source, scan) if table is None else MeasuredReader(source, scan, table)
    lines = _send(reader, judge, sinks, scan, SourceOrder(source, scan, needed=False))
    if lines != entries:
        raise DataError(source.name, f"has {lines:,} lines now, but had {entries:,} when it was measured")
