"""`phrasetool prune`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.shared.engines import chosen_runner
from phrasetool_cli.shared.pruning.prune_options import check_request, chosen_method, prune_options, request_of
from phrasetool_cli.shared.pruning.prune_summary import (
    sweep_document,
    tell_occurrences,
    tell_pruned,
    tell_sweep,
    warn_of_frequent,
)
from phrasetool_cli.summaries import tell_parts

if TYPE_CHECKING:
    from moses_compat.jobs.prune_request import PruneRequest
    from phrasetool.pruning.protection import KeepBest
    from phrasetool_cli.progress import TerminalWatch

# From this share of a table on, similarity alone does as well as any other criterion.
_SMALL = 0.2

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


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table", default="-")
@prune_options
def command(**given: Any) -> None:
    """Remove bad or redundant phrase-table entries.

    An entry of TABLE goes when its similarity is below the threshold in BOTH directions, unless it is among the best K
    of its source.  With --moses-ini, it goes when shorter entries make it up at little loss, or when its sides do not
    mean the same; the more often it was seen (and, with --forced-pairs, used by forced decoding), the more speaks for
    it.  --method chooses another criterion; it reads TABLE twice, with files for what it measures (see --work).  Lines
    that stay are byte-identical and in their order.  TABLE is a Moses phrase table in text form, gzip or not; standard
    input by default.  With a threshold of similarity it may be a folder of part files, as `convert --part-entries`
    writes them; FILE is a folder then, too.

    With --max-bleu-loss, the size is searched for: tables of many sizes translate the development set, none of them
    written; first each half as large as the one before, then those about the answer.  BLEU does not rise evenly with
    the size, so the answer must hold both by itself and by the rising curve through all sizes tried.  Each step is
    reported with the 95 % interval of its difference to the full table (paired bootstrap).  A development set that has
    nothing to do with TABLE is refused, see `phrasetool tune`.
    """
    from moses_compat.jobs.prune_tables import TableTooSmallError, prune
    from moses_compat.jobs.sweep import sweep
    from phrasetool.errors import PhraseToolError
    from phrasetool_cli.json_output import json_document
    from phrasetool_cli.progress import TerminalWatch

    quiet, json_file, dry_run = given["quiet"], given["json_file"], given["dry_run"]
    engine, address = given.pop("engine"), given.pop("address")
    request = request_of(given)
    method = chosen_method(request)
    check_request(request, bool(method.thresholds))
    if dry_run:
        request = request.dry()
    streams, watch = request.streams(method), TerminalWatch(quiet)
    ask_all = json_file is not None
    request = replace(request, runner=chosen_runner(engine, address, request.threads), ask_all=ask_all)
    if streams:
        _warn_of_meaning_alone(request, watch)
    elif request.table == "-":
        raise click.UsageError(f"--method {method.name} reads the table twice, so it cannot come from standard input")
    elif request.scores and not os.path.exists(request.scores):
        message = f"{request.scores}: no such file; --method {method.name} uses similarities that are there"
        raise click.UsageError(message)
    writes = request.sweep is None and not dry_run
    files = [request.output, *request.outputs] if writes else []
    document = json_document(json_file, [request.table], files)
    if request.sweep is not None:
        rows = sweep(request, watch)
        document(sweep_document(rows))
        tell_sweep(rows, request.best, table=json_file != "-", summary=not quiet)
        return
    if os.path.isdir(request.table):
        if request.output == "-":
            raise click.UsageError("expected a folder to write part files to, with -o")
        document(manifest := _pruned_parts(request, watch))
        _tell_pruned_parts(manifest, request, watch)
        return
    try:
        result = prune(request, watch)
    except TableTooSmallError as error:
        raise PhraseToolError(f"{error}; {_advice(error.best, streams)}") from error
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
    from phrasetool.pruning.occurrence_counts import OccurrenceCounts

    occurrences = OccurrenceCounts.merged(part["occurrences"] for part in manifest["parts"])
    warn_of_frequent(occurrences, watch)
    if not watch.quiet:
        tell_parts(manifest, request.output)
        tell_occurrences(occurrences, manifest["read"], request.frequent)


def _warn_of_meaning_alone(request: PruneRequest, watch: TerminalWatch) -> None:
    """Recommend better methods for a small table where none was named; see the README's figure."""
    if request.target_size is not None and request.target_size < _SMALL and request.method is None:
        watch.say(
            "note: similarity alone loses more than other methods in a table this small; with --moses-ini INI the "
            "weights of the model decide, too, and without an ini --method count+semantic does well"
        )


def _advice(best: KeepBest, streams: bool) -> str:
    """What to do where more is protected than may stay."""
    frequent = "" if best.frequent is None else ", or protect fewer frequent entries with a larger --protect-frequent"
    if streams or best.protect == "all":
        return f"try --protect words or a smaller --keep-top{frequent}"
    return f"try a smaller --keep-top{frequent}" if best.k > 1 else f"--keep-top 0 lets words become unknown{frequent}"
