"""`phrasetool prune`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_outputs, is_given, refuse_two_standard_inputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections, together
from phrasetool_cli.options import (
    checked_resume,
    chosen_encoder,
    chosen_runner,
    cluster_options,
    default_model,
    encoder_options,
    json_option,
    output_option,
    refuse_open_folder,
    resume_option,
    scoring_device_option,
    search_options,
    sort_option,
    table_options,
    translator_score_option,
)
from phrasetool_cli.parameter_types import (
    FiniteRange,
    Share,
    column_pair,
    frequency_limit,
    score_threshold,
    threshold_sweep,
)
from phrasetool_cli.summaries import (
    sweep_document,
    tell_occurrences,
    tell_parts,
    tell_pruned,
    tell_sweep,
    warn_of_frequent,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from moses_compat.jobs.prune_request import PruneRequest
    from phrasetool.pipeline import Runner
    from phrasetool.pruning.protection import KeepBest
    from phrasetool_cli.progress import TerminalWatch


def _complete_criteria(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last of several criteria joined by +."""
    from click.shell_completion import CompletionItem

    from phrasetool.pruning.methods import NAMES

    before, plus, begun = incomplete.rpartition("+")
    return [CompletionItem(before + plus + name) for name in NAMES if name.startswith(begun)]


_SEARCH = ("algorithm", "stack_size", "pop_limit", "beam_threshold", "distortion_limit", "table_limit")
_SIZES = ("threshold", "target_size", "max_bleu_loss", "sweep")
_EXCLUSIVE = (_SIZES, ("scores", "columns"), ("encoder", "columns"), ("encoder", "model_folders"))
_DEPENDENT = together("reordering_table", "reordering_out")
_SCAN = ("on_error", "threads", "block_bytes", "allow_empty", "force", "max_line")


def _request_of(values: dict[str, Any], runner: Callable[[int], Runner | None]) -> PruneRequest:
    """Return the checked request for the values of all options.

    Args:
        values: value of each parameter.
        runner: returns the runner of the work on blocks for a number of threads.

    Raises:
        click.UsageError: options contradict each other, or one that the method needs is missing.
    """
    from moses_compat.jobs.prune_request import PruneRequest, UnusableRequest
    from moses_compat.tables.blocks import TableScan

    _unset_configured(values)
    search = {name: value for name in _SEARCH if (value := values.pop(name)) is not None}
    if values["sweep"] is None:
        values["resume"] = checked_resume(values["resume"], values["table"], values["output"])
    else:
        refuse_unused({"resume": "an output, next to which finished work is kept; --sweep writes no table"})
        values["resume"] = False
    quiet, folders = values.pop("quiet"), values.pop("model_folders")
    json_file = values.pop("json_file")
    kept = any(values["columns"] or ()) or (values["scores"] is not None and os.path.exists(values["scores"]))
    if values["encoder"] and folders:
        raise click.UsageError("--encoder and --model are two sources of similarities; give one")
    values["encoder"] = chosen_encoder(values, values["table"], inputs=not kept)
    named_folders = folders or (default_model(),)
    scan = TableScan(**{name: values.pop(name) for name in _SCAN})
    dry_run = values.pop("dry_run")
    try:
        request = PruneRequest(
            **values, scan=replace(scan, runner=runner(scan.threads)), model_folder=named_folders[0],
            more_models=tuple(named_folders[1:]), search=search, by_criterion=json_file is not None or not quiet,
            ask_all=json_file is not None,
        )  # fmt: skip
    except UnusableRequest as error:
        raise click.UsageError(error.worded(_flags())) from error
    if request.columns and folders and _needs_one_source(request):
        request = _with_one_source(request)
    _refuse_unused_criterion_options(request)
    _check_files(request)
    return request.dry() if dry_run else request


def _unset_configured(values: dict[str, Any]) -> None:
    """Unset configured options that are excluded by typed ones, or that have no effect without others."""

    def unset(*names: str, value: Any = None) -> None:
        values.update({name: value for name in names if not is_given(name)})

    # A size replaces criteria with their own thresholds, and the reverse.
    if ":" in (values["method"] or ""):
        if is_given("method"):
            unset(*_SIZES)
        elif any(map(is_given, _SIZES)):
            unset("method")
    if values["max_bleu_loss"] is None:
        unset("dev", *_SEARCH)
        unset("non_inferior", value=False)
    if is_given("sweep"):
        unset("rejected", "reasons", "stats", "reordering_table", "reordering_out")
        unset("output", value="-")
    if (is_given("model_folders") or is_given("encoder")) and values["scores"] and os.path.exists(values["scores"]):
        unset("scores")


def _needs_one_source(request: PruneRequest) -> bool:
    """Whether the method uses columns or models: with both, `semantic` reads columns, another criterion its model."""
    names = request.parsed_method.names
    return "semantic" not in names or not {"parallel", "syntax"} & set(names)


def _with_one_source(request: PruneRequest) -> PruneRequest:
    """Return a request without the configured one of two sources of similarities, the columns and the model.

    Raises:
        click.UsageError: both are typed, or both are configured.
    """
    if is_given("columns") == is_given("model_folders"):
        raise click.UsageError("-m and --similarity-columns are two sources of similarities; give one")
    # The model of a request with columns is not used.
    return request if is_given("columns") else replace(request, columns=None)


def _flags() -> dict[str, str]:
    """Return field of the request -> option on the command line."""
    parameters = click.get_current_context().command.params
    flags = {parameter.name: max(parameter.opts, key=len) for parameter in parameters if parameter.name}
    return flags | {"model_folder": "-m"}


prune_options = sections(
    "Pruning criteria",
    click.option("-t", "--threshold", type=score_threshold, metavar="S",
                 help="Prune entries with similarities below S."),
    click.option("--target-size", type=Share(min_open=True), metavar="SHARE",
                 help="Keep at most this share, as in 0.3 or 30%."),
    click.option("--max-bleu-loss", type=FiniteRange(0), metavar="POINTS",
                 help="Keep the fewest entries that lose at most this BLEU on --dev."),
    click.option("--non-inferior", is_flag=True, help="Require that the 95 % interval excludes a larger loss."),
    click.option("--sweep", type=threshold_sweep, metavar="FIRST:LAST:STEP",
                 help="Only print the table size at these thresholds."),
    click.option("--method", shell_complete=_complete_criteria, metavar="NAMES",
                 help="Criteria joined by +: semantic, parallel, syntax, significance, composition, usage, "
                      "probability, count, top, random; NAME*2, NAME:S.  [default: semantic; with --moses-ini, "
                      "composition+semantic; with --forced-pairs, +usage]"),
    click.option("--combine", type=click.Choice(["product", "rank", "intersection", "union"]),
                 help="Combine criteria.  [default: the first]"),
    click.option("--seed", type=click.IntRange(0), default=1,
                 help="Random seed of the method `random`."),
    click.option("--keep-top", type=click.IntRange(0), metavar="K",
                 help="Keep the K best of a source.  [default: up to 10]"),
    click.option("--protect", type=click.Choice(["all", "words", "none"]),
                 help="Sources whose K best are kept.  [default: all; with a size, words]"),
    click.option("--protect-frequent", type=frequency_limit, metavar="COUNT",
                 help="Keep mutual translations seen more often.  [default: 100 with --threshold, else none]"),
    "Scores of entries",
    click.option("-m", "--model", "model_folders", multiple=True, metavar="FOLDER",
                 help="Model folder; repeatable.  [default: ./phrasetool-model]"),
    translator_score_option,
    scoring_device_option,
    click.option("--similarities", "scores", metavar="FILE",
                 help="Parquet of similarities to read, or to write."),
    click.option("--similarity-columns", "columns", type=column_pair, metavar="A,B",
                 help="Similarities in two score columns."),
    click.option("--scale", type=click.Choice(["exp", "probability", "raw"]), default="exp",
                 help="Scale of the columns (see annotate)."),
    click.option("--moses-ini", "ini", metavar="INI",
                 help="Model of TABLE (composition, top, BLEU)."),
    click.option("--bitext", "corpora", nargs=2, metavar="SOURCE TARGET",
                 help="Bitext of TABLE (significance)."),
    click.option("--forced-pairs", metavar="PAIRS",
                 help="Output of `force-decode --leave-one-out`."),
    None,
    encoder_options,
    "Output",
    output_option(),
    click.option("--reordering-table", metavar="FILE",
                 help="Prune this reordering table, too."),
    click.option("--reordering-out", metavar="FILE", help="Write the pruned reordering table here."),
    click.option("--rejected", metavar="FILE", help="Write the pruned lines here."),
    click.option("--reasons", metavar="FILE",
                 help="Write a Parquet row for each rejected entry."),
    click.option("--stats", metavar="FILE",
                 help="Write counts, BLEU steps and signature as JSON."),
    json_option,
    resume_option,
    cluster_options,
    click.option("--temporary", "work", type=click.Path(exists=True, file_okay=False), metavar="FOLDER",
                 help="Folder of temporary files."),
    click.option("--dry-run", is_flag=True,
                 help="Only report what would be removed."),
    "BLEU budget",
    click.option("--dev", nargs=2, metavar="SOURCE REFERENCE",
                 help="Development set, tokenised."),
    search_options,
    "Reading",
    sort_option,
    None,
    table_options,
)  # fmt: skip


def _refuse_unused_criterion_options(request: PruneRequest) -> None:
    """Refuse typed options of criteria that are not in the method."""
    from moses_compat.jobs.prune_request import worded

    unused = {name: worded(use, _flags()) for name, use in request.without_effect().items()}
    if "model_folder" in unused:
        unused["model_folders"] = unused.pop("model_folder")
    refuse_unused(unused)


def _check_files(request: PruneRequest) -> None:
    """Refuse an output that is an input, or another output.

    Raises:
        PhraseToolError: an output is an input or another output, or cannot be written.
    """
    # Checked before the ini is read, which may be standard input itself.
    refuse_two_standard_inputs([request.table, request.ini, request.reordering_table, request.forced_pairs])
    inputs, outputs = request.checked_files()
    check_outputs(inputs, outputs, folders=os.path.isdir(request.table))


# If at least this share of a table is kept, similarity alone does as well as any other criterion.
_SMALL = 0.2

_RENAMED = {
    "--scores": "--similarities",
    "--columns": "--similarity-columns",
    "--corpus": "--bitext",
    "--work": "--temporary",
    "--reading": "--translator-score",
}
_EXAMPLE = """\b
Example:
  phrasetool prune --threshold 0.7 < phrase-table > small
  phrasetool prune table.gz --moses-ini moses.ini --target-size 0.1 -o small.gz
  phrasetool prune table.gz --moses-ini moses.ini --max-bleu-loss 0.3 --non-inferior --dev dev.de dev.en -o small.gz
  phrasetool prune table.gz --method semantic:0.7+significance:a+e --bitext train.de train.en -o small.gz
  phrasetool prune demo-output/engine/phrase-table.gz -m demo-output/model --sweep 0.0:0.8:0.2
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, exclusive=_EXCLUSIVE, dependent=_DEPENDENT, epilog=_EXAMPLE)
@click.argument("table", default="-")
@prune_options
def command(**values: Any) -> None:
    """Remove bad or redundant phrase-table entries.

    With --threshold, an entry of TABLE is removed if its similarities are below S in BOTH directions, unless it is
    among the K best entries of its source.  With --moses-ini and a size, entries are removed that the decoder can
    compose from shorter ones, or whose sides are not translations of each other; counts and, with --forced-pairs,
    usage in forced decoding protect entries.  With --max-bleu-loss, BLEU on --dev is measured for tables of many sizes.

    Remaining lines are byte-identical and in order.  TABLE is a Moses phrase table in text form, by default standard
    input; or, with --threshold, a folder of part files (`convert --part-entries`); FILE is then a folder, too.

    """
    from moses_compat.jobs.prune import TableTooSmallError, prune, sweep
    from phrasetool.errors import PhraseToolError
    from phrasetool_cli.options import json_document
    from phrasetool_cli.progress import TerminalWatch

    quiet, json_file, dry_run = values["quiet"], values["json_file"], values["dry_run"]
    engine, address = values.pop("engine"), values.pop("address")
    request = _request_of(values, lambda threads: chosen_runner(engine, address, threads))
    parts = os.path.isdir(request.table)
    if parts:
        from moses_compat.jobs.table_parts import part_names

        # Options are refused for part files only if there are any.
        part_names(request.table)
        if dry_run or request.sweep is not None:
            raise click.UsageError(f"part files take no {'--dry-run' if dry_run else '--sweep'}")
        refuse_open_folder(request.output)
    watch = TerminalWatch(quiet)
    if request.streams:
        _warn_of_meaning_alone(request, watch)
    writes = request.sweep is None and not dry_run
    files = [request.output, *request.outputs] if writes else []
    document = json_document(json_file, [request.table], files)
    if request.sweep is not None:
        rows = sweep(request, watch)
        document(sweep_document(rows))
        tell_sweep(rows, request.best, table=json_file != "-", summary=not quiet)
        return
    if parts:
        document(manifest := _pruned_parts(request, watch))
        _tell_pruned_parts(manifest, request, watch)
        return
    try:
        result = prune(request, watch)
    except TableTooSmallError as error:
        raise PhraseToolError(f"{error}; {_advice(error.best)}") from error
    document(result.as_dict())
    warn_of_frequent(result.statistics.occurrences, watch)
    if not quiet:
        tell_pruned(result)
        if dry_run:
            watch.say("dry run: nothing was written")


def _pruned_parts(request: PruneRequest, watch: TerminalWatch) -> dict[str, Any]:
    """Prune a folder of part files."""
    from moses_compat.jobs.table_parts import prune_parts

    try:
        return prune_parts(request, watch)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _tell_pruned_parts(manifest: dict[str, Any], request: PruneRequest, watch: TerminalWatch) -> None:
    """Print the summary of a folder of part files, and warn of frequent entries that were removed."""
    from phrasetool.pruning.statistics import OccurrenceCounts

    occurrences = OccurrenceCounts.merged(part["occurrences"] for part in manifest["parts"])
    warn_of_frequent(occurrences, watch)
    if not watch.quiet:
        tell_parts(manifest, request.output)
        tell_occurrences(occurrences, manifest["read"], request.frequent)


def _warn_of_meaning_alone(request: PruneRequest, watch: TerminalWatch) -> None:
    """Recommend better methods for a small table if none was named; see the figure in the README."""
    if request.target_size is not None and request.target_size < _SMALL and request.method is None:
        watch.say(
            "note: similarity alone loses more than other methods in a table this small; with --moses-ini INI the "
            "weights of the model decide, too, and without an ini --method count+semantic does well"
        )


def _advice(best: KeepBest) -> str:
    """Return advice on options if more entries are protected than may be kept."""
    frequent = "" if best.frequent is None else ", or protect fewer frequent entries with a larger --protect-frequent"
    if best.protect == "all":
        return f"try --protect words or a smaller --keep-top{frequent}"
    return f"try a smaller --keep-top{frequent}" if best.k > 1 else f"--keep-top 0 lets words become unknown{frequent}"
