"""`phrasetool filter-pt`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.messages import write
from phrasetool_cli.options import json_document, json_option, output_option, sort_option, table_options
from phrasetool_cli.parameter_types import significance_threshold
from phrasetool_cli.progress import TerminalWatch
from phrasetool_cli.summaries import say_kept

if TYPE_CHECKING:
    from moses_compat.jobs.moses_filters import FilterCounts, Significance
    from moses_compat.measures.pair_test import CorpusIndex

_EXAMPLE = """\b
Example:
  phrasetool filter-pt -f train.de -e train.en -l a+e -n 30 < phrase-table > small
  gzip -dc phrase-table.gz | phrasetool filter-pt -n 100 | gzip > small.gz
  phrasetool filter-pt -f train.de -e train.en -l a-e -c -p phrase-table.gz -o counted.gz
  phrasetool filter-pt -n 5 demo-output/engine/phrase-table.gz | head -3
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE, context_settings={"help_option_names": ["--help"]})
@click.argument("table", default="-")
@sections(
    "Pruning criteria",
    click.option("-f", "source", metavar="FILE", help="Source side of the training corpus."),
    click.option("-e", "target", metavar="FILE", help="Target side of the training corpus."),
    click.option("-l", "threshold", metavar="a+e|a-e|N", callback=significance_threshold,
                 help="Keep entries with -ln p >= N; a = ln(sentences)."),
    click.option("-n", "top", type=click.IntRange(0), default=0, metavar="N",
                 help="Keep the N best entries of each source before -l; 0: all."),
    click.option("-i", "column", type=click.IntRange(0), default=2, metavar="N", help="Score column of -n, from "
                                                                                      "0."),
    click.option("-h", "hierarchical", is_flag=True, help="TABLE has hierarchical rules."),
    "Output",
    output_option(),
    click.option("-c", "counts", is_flag=True, help="Append counts of sentences with both sides, source, target."),
    click.option("-p", "values", is_flag=True, help="Append -ln p."),
    click.option("--index", metavar="FOLDER",
                 help="Folder of the index of the corpora, kept between runs."),
    "Reading",
    sort_option,
    None,
    json_option,
    table_options,
    "Reading",
    click.option("-t", "moses_threads", type=click.IntRange(1), metavar="N", help="Same as --threads."),
    click.option("-m", type=int, metavar="N", expose_value=False, help="No effect (size of Moses' cache)."),
)  # fmt: skip
def command(
    table: str, output: str, source: str | None, target: str | None, threshold: str | None, top: int, column: int,
    counts: bool, values: bool, hierarchical: bool, moses_threads: int | None, index: str | None,
    sort: bool, allow_empty: bool, force: bool, threads: int, block_bytes: int, on_error: str, quiet: bool,
    max_line: int,
    json_file: str | None,
) -> None:  # fmt: skip
    """Filter a phrase table by significance and rank.

    Accepts the flags of Moses' filter-pt.  Fisher's exact test shows whether the two sides of an entry of TABLE occur
    in the same sentence pairs more often than by chance (Johnson et al. 2007).  The corpora are the texts, gzip or not,
    that the table was extracted from (same tokens, same escapes).  In contrast to Moses' program, lines keep their
    order, and none is lost.
    """
    from moses_compat.files.streams import Output
    from moses_compat.jobs.moses_filters import Significance, filter_table
    from moses_compat.measures.pair_test import CorpusMismatchError, PairTest, read_indexes
    from moses_compat.tables.blocks import TableScan
    from moses_compat.tables.opening import open_table
    from phrasetool.errors import PhraseToolError

    tests = threshold is not None or counts or values
    if tests and not (source and target):
        raise click.UsageError("-l, -c and -p need both sides of the corpus, -f FILE and -e FILE")
    if not tests and not top:
        raise click.UsageError("nothing to do; give -l, -n, -c or -p")
    corpora = [path for path in (source, target) if path] if tests else []
    check_outputs([table, *corpora], [output])
    document = json_document(json_file, [table, *corpora], [output])
    significance, watch = None, TerminalWatch(quiet)
    scan = TableScan(
        on_error, moses_threads or threads, block_bytes, allow_empty=allow_empty, force=force, warn=watch.warn,
        max_line=max_line,
    )  # fmt: skip
    if source and target and tests:
        indexes = read_indexes(source, target, scan.threads, index)
        least = _threshold(indexes, threshold or "0", watch.say)
        significance = Significance(PairTest(*indexes, hierarchical), least, counts, values, force)
    try:
        with open_table(table, output, scan, watch, "filter", sort=sort) as (text, scan), Output(output) as out:
            filtered = filter_table(text, out, scan, top=top, column=column, significance=significance)
    except CorpusMismatchError as error:
        raise PhraseToolError(f"{error}  (--force filters anyway)") from error
    document(vars(filtered))
    _report(filtered, significance, quiet)


def _threshold(indexes: tuple[CorpusIndex, CorpusIndex], threshold: str, tell: Callable[[str], None]) -> float:
    """Return the minimum -ln p of kept entries, and report it."""
    from phrasetool.pruning.significance import alpha_of
    from phrasetool.pruning.thresholds import Threshold

    sentences = indexes[0].sentences.sentences
    alpha = alpha_of(sentences)
    least = Threshold(threshold).value(alpha)
    for corpus in indexes:
        if corpus.note:
            tell(corpus.note)
    tell(f"{sentences:,} sentence pairs: a = {alpha:.6f}; entries with -ln p of {least:.6f} or more are kept")
    return least


def _report(done: FilterCounts, significance: Significance | None, quiet: bool) -> None:
    """Print the summary, and warnings even with --quiet."""
    from moses_compat.jobs.moses_filters import MOSES_FIELDS

    notes = [
        (done.not_best, "removed because others of their source are better (-n)"),
        (done.insignificant, "removed because they are not significant (-l)"),
        (done.wordless, "kept without a test because a side has no word"),
        (done.malformed_kept, "malformed lines were passed through"),
        (done.malformed_skipped, "malformed lines were left out"),
    ]
    if not quiet:
        say_kept(done.kept, done.entries, "entries", notes)
    if significance and (done.absent_sources or done.absent_targets):
        write(
            f"of {done.tested:,} entries, {done.absent_sources:,} have a source and {done.absent_targets:,} a target "
            "that does not occur in the corpus; their -ln p is 0",
            "warning",
        )
    if significance and significance.appends and 0 < done.fields < MOSES_FIELDS:
        write(
            f"entries had {done.fields} fields, and Moses reads the first {MOSES_FIELDS}: it will take the appended "
            "ones for alignments, counts, sparse scores or properties",
            "warning",
        )
