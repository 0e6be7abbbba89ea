"""`phrasetool prune`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.shared.click_options import default_model
from phrasetool_cli.shared.prune_method import SEMANTIC, chosen_method, default_method, run_method
from phrasetool_cli.shared.prune_options import GroupedCommand, PruneRequest, check_request, prune_options, request_of
from phrasetool_cli.shared.prune_outputs import write_tables

if TYPE_CHECKING:
    from moses_compat.files.streams import Input
    from moses_compat.jobs.prune import Similarities
    from moses_compat.jobs.sinks import TableWriter
    from moses_compat.measures.saved_similarities import ScoreWriter
    from moses_compat.tables.blocks import TableScan
    from phrasetool.pruning.selection import KeepBest
    from phrasetool.pruning.statistics import PruneStatistics
    from phrasetool.pruning.thresholds import Threshold

# From this share of a table on, the criterion matters little.
_SMALL = 0.8

_EXAMPLE = """\b
Example:
  phrasetool prune --threshold 0.7 < phrase-table > small
  phrasetool prune phrase-table.gz --moses-ini moses.ini --target-size 0.1 -o small.gz
  phrasetool prune phrase-table.gz --moses-ini moses.ini --max-bleu-loss 0.1 --dev dev.de dev.en -o small.gz
  phrasetool force-decode --moses-ini moses.ini train.de train.en --leave-one-out -o forced.gz
  phrasetool prune phrase-table.gz --moses-ini moses.ini --forced-pairs forced.gz --target-size 0.1 -o small.gz
  phrasetool prune table.gz --method semantic:0.7+significance:a+e --corpus train.de train.en -o small.gz
  phrasetool prune table.gz -t 0.7 -o small.gz --reordering-table reordering.gz --reordering-out small.reordering.gz
  phrasetool prune demo-output/engine/phrase-table.gz -m demo-output/model --sweep 0.0:0.8:0.2
"""


@click.command(cls=GroupedCommand, epilog=_EXAMPLE)
@click.argument("table", default="-")
@prune_options
def command(**given: Any) -> None:
    """Remove the entries of TABLE that are no translations, or that can be missed.

    An entry goes when its similarity is below the threshold in BOTH directions, unless it is among the best K of its
    source.  With --moses-ini, it goes when shorter entries make it up at little loss, or when its sides do not mean
    the same; the more often it was seen (and, with --forced-pairs, used by forced decoding), the more speaks for it.
    --method chooses another criterion; it reads TABLE twice and takes up to 300 bytes an entry of memory.  Lines that
    stay are byte-identical and in their order.  TABLE is a Moses phrase table in text form, gzip or not; standard
    input by default.

    With --max-bleu-loss, the size is searched for: tables of many sizes translate the development set, none of them
    written; first each half as large as the one before, then those about the answer.  BLEU does not rise evenly with
    the size, so the answer must hold both by itself and by the rising curve through all sizes tried.  Each step is
    reported with the 95 % interval of its difference to the full table (paired bootstrap).
    """
    from phrasetool.pruning.selection import KeepBest

    request = request_of(given)
    method = chosen_method(request, request.method or default_method(request))
    check_request(request, bool(method.thresholds))
    if method.names == (SEMANTIC,) and request.max_bleu_loss is None:
        best = KeepBest(10 if request.keep_top is None else request.keep_top, request.protect or "all")
        threshold = method.thresholds[0] if method.thresholds else request.threshold
        _warn_of_meaning_alone(request)
        _run(request, _similarities(request), best, threshold)
        return
    if request.table == "-":
        raise click.UsageError(f"--method {method.name} reads the table twice, so it cannot come from standard input")
    if request.scores and not os.path.exists(request.scores):
        message = f"{request.scores}: no such file; --method {method.name} uses similarities that are there"
        raise click.UsageError(message)
    run_method(request, method, lambda: _similarities(request))


def _warn_of_meaning_alone(request: PruneRequest) -> None:
    """Who names no method should know that there are better ones for a small table; see the README's figure."""
    from phrasetool_cli.shared.progress import say

    small = request.target_size is not None and request.target_size < _SMALL
    if small and request.method is None and not request.quiet:
        say(
            "note: meaning alone is a poor guide to a table this small; with --moses-ini INI the weights of the model "
            "decide, too, and without an ini --method count+semantic does well"
        )


def _similarities(request: PruneRequest) -> Similarities:
    """Where the similarities come from."""
    from moses_compat.jobs.prune import ColumnScores, FileScores, ModelScores

    if request.columns:
        source_to_target, target_to_source = request.columns
        return ColumnScores(source_to_target, target_to_source, request.scale)
    if request.scores and os.path.exists(request.scores):
        return FileScores(request.scores)
    from phrasetool.models.storage import load_bilingual_model

    return ModelScores(load_bilingual_model(request.model_folder or default_model()))


def _run(request: PruneRequest, similarities: Similarities, best: KeepBest, given: Threshold | None) -> None:
    """Sweep, or find the threshold if need be and prune."""
    from moses_compat.jobs.prune import FileScores, scratch_scores

    keep = request.scores if request.scores and not isinstance(similarities, FileScores) else None
    if request.sweep is not None:
        _sweep(request, similarities, best, keep)
        return
    with contextlib.ExitStack() as stack:
        if given is not None:
            threshold = given.value(0.0)
        else:
            if not isinstance(similarities, FileScores):
                keep = keep or stack.enter_context(scratch_scores(request.output))
            threshold = _find_threshold(request, similarities, best, keep)
            if keep:
                similarities, keep = FileScores(keep), None
        _prune(request, similarities, best, threshold, keep)


def _sweep(request: PruneRequest, similarities: Similarities, best: KeepBest, keep: str | None) -> None:
    curve = _measure(request, similarities, best, keep)
    click.echo("threshold\tentries\tshare")
    for threshold, survivors in zip(curve.thresholds, curve.survivors.tolist(), strict=True):
        click.echo(f"{threshold:g}\t{survivors}\t{survivors / max(curve.entries, 1):.4f}")


def _find_threshold(request: PruneRequest, similarities: Similarities, best: KeepBest, keep: str | None) -> float:
    from phrasetool.errors import PhraseToolError
    from phrasetool.pruning.sizes import TooSmallError
    from phrasetool_cli.shared.progress import say

    assert request.target_size is not None
    curve = _measure(request, similarities, best, keep)
    try:
        threshold: float = curve.threshold_for(request.target_size)
    except TooSmallError as error:
        raise PhraseToolError(f"{request.table}: {error}; try --protect words or a smaller --keep-top") from error
    if not request.quiet:
        say(f"threshold {threshold:.6f} leaves at most {request.target_size:.1%}")
    return threshold


def _measure(request: PruneRequest, similarities: Similarities, best: KeepBest, keep: str | None) -> Any:
    """One pass that counts."""
    from dataclasses import replace

    from moses_compat.files.streams import Input
    from moses_compat.jobs.prune import measure_sizes
    from phrasetool_cli.shared.progress import TableProgress

    with contextlib.ExitStack() as stack:
        source = stack.enter_context(Input(request.table))
        progress = stack.enter_context(TableProgress("measure", source.size(), request.quiet))
        opened = _score_writer(keep, similarities)
        save = stack.enter_context(opened()) if opened else None
        scan = replace(request.scan(), progress=progress)
        return measure_sizes(source, similarities, best, scan, request.sweep or (), save)


def _score_writer(path: str | None, similarities: Similarities) -> Callable[[], ScoreWriter] | None:
    """What opens the file that keeps the similarities."""
    if path is None:
        return None
    from moses_compat.measures.saved_similarities import ScoreWriter

    return lambda: ScoreWriter(path, similarities.signature)


def _prune(
    request: PruneRequest, similarities: Similarities, best: KeepBest, threshold: float, keep: str | None
) -> None:
    from moses_compat.jobs.prune import prune_table
    from phrasetool import __version__
    from phrasetool.pruning.semantic import BelowThreshold

    criterion = BelowThreshold(threshold)
    signature = f"{similarities.signature}|rule:t{threshold:g}+k{best.k}+{best.protect}|version:{__version__}"

    def prune(source: Input, writer: TableWriter, watched: TableScan, save: ScoreWriter | None) -> PruneStatistics:
        return prune_table(source, writer, similarities, criterion, best, watched, save)

    write_tables(
        request, prune, signature=signature, criteria=(SEMANTIC,), score_writer=_score_writer(keep, similarities)
    )
