"""`phrasetool prune --method`: criteria that look at all entries of a table together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.shared.prune_options import PruneRequest
from phrasetool_cli.shared.prune_outputs import write_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from moses_compat.files.streams import Input
    from moses_compat.jobs.prune import Similarities
    from moses_compat.jobs.sinks import TableWriter
    from moses_compat.measures.model_weights import TableWeights
    from moses_compat.measures.saved_similarities import ScoreWriter
    from moses_compat.tables.blocks import TableScan
    from phrasetool.phrases import FloatArray
    from phrasetool.pruning.measures import Measures
    from phrasetool.pruning.methods import Method
    from phrasetool.pruning.selection import KeepBest, Selection
    from phrasetool.pruning.statistics import PruneStatistics

# What is best by measurement, where the weights of a model are given; see the README.
_BEST = "composition+semantic"
_BEST_WITH_USES = "composition+semantic+usage"
SEMANTIC = "semantic"


def default_method(request: PruneRequest) -> str:
    """The method of who names none: the best that what was given allows; the paper's without a model's weights."""
    if request.ini is None:
        return SEMANTIC
    return _BEST_WITH_USES if request.forced_pairs else _BEST


def chosen_method(request: PruneRequest, names: str) -> Method:
    """The method of these names, if all that it needs was given.

    Raises:
        click.UsageError: it is none, or lacks something.
    """
    from phrasetool.pruning.methods import parse_method

    try:
        method = parse_method(names, request.combine, request.seed)
    except ValueError as error:
        raise click.UsageError(f"--method: {error}") from error
    if method.needs & {"model_scores", "composition"} and request.ini is None:
        raise click.UsageError(f"--method {method.name} needs the weights of a model: give --moses-ini")
    if "significance" in method.needs and request.corpora is None:
        raise click.UsageError(
            f"--method {method.name} needs the bitext that the table was made from: give --corpus SOURCE TARGET"
        )
    if "uses" in method.needs and request.forced_pairs is None:
        raise click.UsageError(
            f"--method {method.name} needs the pairs that forced decoding of the bitext used: give --forced-pairs PAIRS"
        )
    if request.threshold is not None and request.threshold.named and method.names != ("significance",):
        raise click.UsageError(f"--threshold {request.threshold.text} goes with --method significance alone")
    return method


@dataclass(frozen=True)
class Decision:
    """What was decided about a table.

    Attributes:
        selection: of its entries.
        best: the rule that protected some.
        rule: for the signature line.
        figures: for the statistics.
    """

    selection: Selection
    best: KeepBest
    rule: str
    figures: Mapping[str, Any]


def run_method(request: PruneRequest, method: Method, similarities: Callable[[], Similarities]) -> None:
    """Measure the table, decide, and prune; or print sizes."""
    import numpy as np

    from moses_compat.jobs.prune_selected import prune_selected
    from moses_compat.jobs.sinks import Verdict
    from phrasetool import __version__
    from phrasetool.pruning.reasons import explain

    if request.max_bleu_loss is not None:
        # What cannot be read is found out before the long work.
        from phrasetool_cli.shared.prune_budget import DevelopmentSet, search_budget

        development = DevelopmentSet.read(request)
    source_of_similarities = similarities() if "similarities" in method.needs else None
    measures = _measure(request, method, source_of_similarities)
    worth = method.worth(measures)
    if request.sweep is not None:
        _sweep(request, measures, worth)
        return
    if request.max_bleu_loss is not None:
        decision = search_budget(request, development, measures, worth)
    else:
        decision = _decide(request, method, measures, worth)
    selection = decision.selection
    nobody = np.zeros(len(measures), np.bool_)
    # Each criterion sorts the entries for that.
    told = request.stats or request.reasons or (len(method.parts) > 1 and not request.quiet)
    reasons = explain(method, measures, selection) if told else None
    verdict = Verdict(selection.keep, selection.fails, selection.protected, nobody, reasons)
    signature = "|".join(
        [
            *([source_of_similarities.signature] if source_of_similarities else []),
            f"method:{method.name}",
            *([f"seed:{request.seed}"] if "random" in method.name else []),
            f"rule:{decision.rule}k{decision.best.k}+{decision.best.protect}",
            f"version:{__version__}",
        ]
    )

    def prune(source: Input, writer: TableWriter, watched: TableScan, save: ScoreWriter | None) -> PruneStatistics:
        return prune_selected(source, writer, verdict, watched)

    write_tables(request, prune, signature=signature, criteria=method.names, figures=decision.figures)


def _sweep(request: PruneRequest, measures: Measures, worth: FloatArray) -> None:
    from phrasetool.pruning.selection import select_entries

    best = _best(request)
    click.echo("threshold\tentries\tshare")
    for threshold in request.sweep or ():
        kept = int(select_entries(measures, worth, best, threshold=threshold).keep.sum())
        click.echo(f"{threshold:g}\t{kept}\t{kept / max(len(measures), 1):.4f}")


def _best(request: PruneRequest) -> KeepBest:
    """The paper's rule, but for what was asked for."""
    from phrasetool.pruning.selection import KeepBest

    return KeepBest(10 if request.keep_top is None else request.keep_top, request.protect or "all")


def rule_for_size(request: PruneRequest, measures: Measures, worth: FloatArray) -> Callable[[int], KeepBest]:
    """What is protected where so many entries stay: as asked for, or what there is room for."""
    from phrasetool.pruning.selection import AffordableBest, KeepBest

    protect = request.protect or "words"
    if request.keep_top is not None:
        wanted = KeepBest(request.keep_top, protect)
        return lambda entries: wanted
    return AffordableBest(measures, worth, protect).best


def _decide(request: PruneRequest, method: Method, measures: Measures, worth: FloatArray) -> Decision:
    """By a threshold, thresholds or a size."""
    from phrasetool.pruning.selection import select_entries
    from phrasetool.pruning.sizes import TooSmallError, allowed_entries
    from phrasetool_cli.shared.progress import say

    if method.thresholds:
        best = _best(request)
        fails = method.fails(method.below(method.worths(measures), measures.alpha))
        return Decision(select_entries(measures, worth, best, fails=fails), best, "", {})
    if request.threshold is not None:
        best = _best(request)
        threshold = request.threshold.value(measures.alpha)
        selection = select_entries(measures, worth, best, threshold=threshold)
        return Decision(selection, best, f"t{request.threshold.text}+", {})
    size = request.target_size
    assert size is not None
    best = rule_for_size(request, measures, worth)(allowed_entries(size, len(measures)))
    try:
        selection = select_entries(measures, worth, best, size=size)
    except TooSmallError as error:
        raise PhraseToolError(f"{request.table}: {error}; {_advice(best)}") from error
    if not request.quiet and request.keep_top is None and best.protect != "none":
        say(f"always kept: {protection(best)}")
    return Decision(selection, best, f"size{size:g}+", {})


def protection(best: KeepBest) -> str:
    """In words."""
    best_of = "the best" if best.k == 1 else f"the {best.k} best"
    return f"{best_of} of every {'source' if best.protect == 'all' else 'one-word source'}"


def _advice(best: KeepBest) -> str:
    if best.protect == "all":
        return "try --protect words or a smaller --keep-top"
    return "try a smaller --keep-top" if best.k > 1 else "--keep-top 0 lets words become unknown"


def _measure(request: PruneRequest, method: Method, similarities: Similarities | None) -> Measures:
    from moses_compat.files.streams import Input
    from moses_compat.measures.measure import MeasureRequest, measure_table
    from phrasetool_cli.shared.progress import TableProgress

    with Input(request.table) as source, TableProgress("measure", source.size(), request.quiet) as progress:
        wanted = MeasureRequest.of(
            method.needs,
            replace(request.scan(), progress=progress),
            weights=lambda: _weights(request),
            similarities=similarities,
            corpora=request.corpora,
            forced_pairs=request.forced_pairs,
        )
        return measure_table(source, wanted)


def _weights(request: PruneRequest) -> TableWeights:
    from moses_compat.ini.reading import read_moses_ini
    from moses_compat.ini.tables import choose_table
    from moses_compat.measures.model_weights import weights_of

    assert request.ini is not None
    there = read_moses_ini(request.ini)
    return weights_of(there, choose_table(there, request.table))
