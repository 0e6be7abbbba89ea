"""Prune from files to files: the table, its reordering table, and whatever else is wanted of the run.

All files appear, or none: each is written beside its name and renamed when everything is done, the table last.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moses_compat.files.finished_work import forget_finished
from moses_compat.files.names import is_stream
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.prune import Chosen, prune_decided, prune_table, scratch_scores
from moses_compat.jobs.prune_measures import (
    checked_method,
    checked_tables,
    score_writer,
    sizes_by_threshold,
    whole_measures,
)
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.prune_sources import fit_of_source, kept_path, similarity_source
from moses_compat.jobs.sinks import Counts, KeptScores, SelectedLines, Sink, SurvivingPairs
from moses_compat.lines.pair_hashes import PairSet
from moses_compat.measures.neural.part_folders import finishing
from moses_compat.measures.similarities import FileSimilarities, SimilaritySource
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.orphans import OrphanCounts, remove_orphans
from moses_compat.tables.plausible import REORDERING_TABLE, check_plausible
from phrasetool import __version__
from phrasetool.errors import PhraseToolError
from phrasetool.pruning.decision import OfSize, Rule
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.ranked_table import RankedTable
from phrasetool.pruning.sizes import TooSmallError, allowed_entries
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import NOBODY, Watch

if TYPE_CHECKING:
    from moses_compat.measures.saved_similarities import ScoreWriter


class TableTooSmallError(PhraseToolError):
    """The wanted size cannot be had: too many entries are protected.

    Args:
        table: its name.
        reason: how many are protected, and how many may stay.
        best: what protects them.
    """

    def __init__(self, table: str, reason: TooSmallError, best: KeepBest) -> None:
        self.best = best
        super().__init__(f"{table}: {reason}")


@dataclass(frozen=True)
class PruneResult:
    """What a run did.

    Attributes:
        statistics: counts.
        signature: one line that says how it was done.
        criteria: their names.
        orphans: what happened to the reordering table, if there is one.
        figures: more for the statistics.
        best: what was protected, if that is known.
    """

    statistics: PruneStatistics
    signature: str
    criteria: tuple[str, ...]
    orphans: OrphanCounts | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    best: KeepBest | None = None

    def as_dict(self) -> dict[str, Any]:
        """For a file of statistics."""
        done = {**self.statistics.as_dict(self.signature), **self.figures}
        if self.orphans:
            done["reordering"] = self.orphans.as_dict()
        return done


def prune(request: PruneRequest, watch: Watch = NOBODY, more: Sequence[Sink] = ()) -> PruneResult:
    """Write the table without the entries that go, and what else was asked for.

    Args:
        request: what is wanted; its `sweep` is not looked at.
        watch: follows the work.
        more: sinks besides those of the files.

    Raises:
        DataError: a file is damaged, has a faulty line, or does not fit the others; or, unless forced, the model does
            not fit the table.
        TableTooSmallError: more entries are protected than the wanted size allows.
        PhraseToolError: a file cannot be written.
        ValueError: nothing or too much says what goes, or the method lacks something.
    """
    method = checked_method(request)
    cuts = request.threshold, request.target_size, request.max_bleu_loss, method.thresholds or None
    if sum(cut is not None for cut in cuts) != 1:
        raise ValueError("expected a threshold or a size, or a loss of BLEU, or criteria with thresholds of their own")
    with finishing(request.part_folders), checked_tables(request, watch) as request:
        prune_it = _prune_streaming if request.streams(method) else _prune_as_a_whole
        with request.keeping(watch) as finished:
            result = prune_it(replace(request, finished=finished), method, watch, more)
        forget_finished(request.output)
        return result


def _prune_streaming(request: PruneRequest, method: Method, watch: Watch, more: Sequence[Sink]) -> PruneResult:
    """Prune while the table streams; a wanted size takes a pass before, for the threshold."""
    similarities = similarity_source(request, watch)
    fit = fit_of_source(similarities)
    keep, threshold = kept_path(request, similarities), request.threshold
    with contextlib.ExitStack() as stack:
        if request.target_size is not None:
            # Without pyarrow they are computed twice.
            if not isinstance(similarities, FileSimilarities) and importlib.util.find_spec("pyarrow"):
                keep = keep or stack.enter_context(scratch_scores(request.output))
            try:
                threshold = Threshold.of(_threshold_for_size(request, method, similarities, keep, watch))
            except TableTooSmallError as error:
                # Protection that nobody asked for gives way to what there is room for.
                if request.protect or request.keep_top is not None or is_stream(request.read_path):
                    raise
                watch.say(f"{error}; fewer are protected")
                return _prune_as_a_whole(replace(request, scores=keep or request.scores), method, watch, more)
            if keep:
                similarities, keep = FileSimilarities(keep), None
        rule = Rule.of(method, request.best, threshold=threshold)
        cut = (threshold or method.thresholds[0]).value(0.0)
        signature = f"{similarities.signature}|rule:t{cut:g}+{rule.best.text}|version:{__version__}"

        fields = bool(keep or request.reasons or more)
        ask_all = request.ask_all or fields or bool(request.stats)
        count_use = request.count_use(method)

        def send(source: Input, sinks: Sequence[Sink], scan: TableScan) -> None:
            prune_table(source, similarities, rule, sinks, scan, keep is not None, ask_all, fields, count_use)

        save = (lambda: score_writer(keep, similarities)) if keep else None
        result = PruneResult(PruneStatistics(), signature, method.names, best=rule.best)
        return _write(request, send, result, watch, more, fit, save)


def _threshold_for_size(
    request: PruneRequest, method: Method, similarities: SimilaritySource, keep: str | None, watch: Watch
) -> float:
    assert request.target_size is not None
    curve = sizes_by_threshold(request, method, similarities, keep, watch)
    try:
        threshold = curve.threshold_for(request.target_size)
    except TooSmallError as error:
        raise TableTooSmallError(request.table, error, request.best) from error
    watch.say(f"threshold {threshold:.6f} leaves at most {request.target_size:.1%}")
    return threshold


def _prune_as_a_whole(request: PruneRequest, method: Method, watch: Watch, more: Sequence[Sink]) -> PruneResult:
    """Measure the table, decide, and stream it once more."""
    development = None
    if request.max_bleu_loss is not None:
        # What cannot be read, or makes no sense, is found out before the long work.
        from moses_compat.jobs.bleu_budget import DevelopmentSet, FullTable, search_budget

        development = FullTable.translate(request, DevelopmentSet.read(request, watch), watch)
    table, sources = whole_measures(request, method, watch)
    ranking = RankedTable(method, table)
    if development:
        chosen = search_budget(request, development, ranking, watch)
    else:
        chosen = _choose(request, ranking, watch)
    decision = chosen.decision
    # Each criterion is asked about all entries for that.
    told = request.stats or request.reasons or (len(method.parts) > 1 and request.by_criterion)
    reasons = ranking.explain(decision) if told else None
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
        # Lines are sent on faster than they would travel.  Only a file of reasons shows the phrases.
        prune_decided(source, decision, reasons, sinks, replace(scan, runner=None), None if request.reasons else table)

    result = PruneResult(PruneStatistics(), signature, method.names, figures=chosen.figures, best=chosen.best)
    return _write(request, send, result, watch, more, fit_of_source(next(iter(sources), None)))


def _choose(request: PruneRequest, ranking: RankedTable, watch: Watch) -> Chosen:
    """By a threshold, thresholds or a size."""
    method, size = ranking.method, request.target_size
    if size is None:
        rule = Rule.of(method, request.best, threshold=request.threshold)
        text = f"t{request.threshold.text}+" if request.threshold else ""
        return Chosen(ranking.decide(rule.cut, rule.best), rule.best, text)
    best = request.rule_for_size(ranking.table)(allowed_entries(size, len(ranking)))
    try:
        decision = ranking.decide(OfSize(size), best)
    except TooSmallError as error:
        raise TableTooSmallError(request.table, error, best) from error
    if request.keep_top is None and best.protect != "none":
        watch.say(f"always kept: {best.words}")
    return Chosen(decision, best, f"size{size:g}+")


def _write(
    request: PruneRequest,
    send: Callable[[Input, Sequence[Sink], TableScan], None],
    result: PruneResult,
    watch: Watch,
    more: Sequence[Sink],
    fit: Callable[[], dict[str, Any]],
    save: Callable[[], ScoreWriter] | None = None,
) -> PruneResult:
    """Send the table to the files that were asked for; all of them appear, or none.

    Args:
        send: sends the table through sinks.
        result: without what is counted on the way.
        fit: what is known, in the end, of how a model fits the table.
        save: opens a file for similarities, which appears with the tables or not at all.
    """
    scan = request.scan(watch)
    with contextlib.ExitStack() as stack:

        def opened(path: str | None) -> Output | None:
            return stack.enter_context(Output(path)) if path else None

        source = stack.enter_context(request.open_table())
        reordering = stack.enter_context(Input(request.reordering_table)) if request.reordering_table else None
        # What can be read only once was not looked at before.
        if is_stream(request.read_path):
            check_plausible(source, scan)
        if reordering and is_stream(reordering.path):
            check_plausible(reordering, scan, REORDERING_TABLE)
        # The last one opened is the first one renamed: the table itself must be the last to appear.
        kept = SelectedLines(stack.enter_context(Output(request.output)))
        in_step, rejected, report, why = map(
            opened, (request.reordering_out, request.rejected, request.stats, request.reasons)
        )
        counts, surviving = Counts(result.best.frequent if result.best else None), SurvivingPairs()
        sinks: list[Sink] = [kept, counts, *more]
        if rejected:
            sinks.append(SelectedLines(rejected, rejected=True))
        if reordering:
            sinks.append(surviving)
        if why:
            # Parquet is slow to import.
            from moses_compat.jobs.reasons_file import ReasonsWriter

            sinks.append(stack.enter_context(ReasonsWriter(why, result.criteria)))
        if save:
            sinks.append(KeptScores(stack.enter_context(save())))
        with watch.file("prune", source.size()) as progress:
            send(source, sinks, replace(scan, progress=progress))
        counts.total.model_fit = fit()
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
