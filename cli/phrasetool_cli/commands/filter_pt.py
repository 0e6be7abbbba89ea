"""`phrasetool filter-pt`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.shared.click_options import check_outputs, table_options

if TYPE_CHECKING:
    from moses_compat.jobs.filter_pt import FilterCounts, Significance

_EXAMPLE = """\b
Example:
  phrasetool filter-pt -f train.de -e train.en -l a+e -n 30 < phrase-table > small
  gzip -dc phrase-table.gz | phrasetool filter-pt -n 100 | gzip > small.gz
  phrasetool filter-pt -f train.de -e train.en -l a-e -c -p phrase-table.gz -o counted.gz
  phrasetool filter-pt -n 5 demo-output/engine/phrase-table.gz | head -3
"""


def _check_threshold(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    from phrasetool.pruning.significance import Insignificant
    from phrasetool.pruning.thresholds import Threshold

    try:
        if value is not None:
            Insignificant(Threshold(value).value(1.0))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a+e, a-e or a number of 0 or more") from error
    return value


@dataclass(frozen=True)
class FilterRequest:
    """What the user asked of the test."""

    source: str
    target: str
    threshold: str
    index: str | None
    hierarchical: bool
    counts: bool
    values: bool
    force: bool


@click.command(
    epilog=_EXAMPLE,
    context_settings={"help_option_names": ["--help"]},
)
@click.argument("table", default="-")
@click.option("-o", "--output", default="-", metavar="FILE",
              help="Where to write the table; `-` is standard output.  [default: -]")  # fmt: skip
@click.option("-f", "source", metavar="FILE", help="The source side of the training corpus, a sentence a line.")
@click.option("-e", "target", metavar="FILE", help="The target side.")
@click.option("-l", "threshold", metavar="a+e|a-e|N", callback=_check_threshold,
              help="Keep entries whose -ln p is N or more; a is that of a pair seen once, together: ln(sentences).  "
                   "a+e removes all such pairs, a-e keeps them.")  # fmt: skip
@click.option("-n", "top", type=click.IntRange(0), default=0, metavar="N",
              help="Keep the best N entries of each source, before -l; 0 keeps all.  [default: 0]")  # fmt: skip
@click.option("-i", "column", type=click.IntRange(0), default=2, show_default=True, metavar="COLUMN",
              help="The score that -n goes by, from 0; 2 is p(e|f).")  # fmt: skip
@click.option("-c", "counts", is_flag=True, help="Append a field: sentences with both sides, the source, the target.")
@click.option("-p", "values", is_flag=True, help="Append a field: -ln p.")
@click.option("-h", "hierarchical", is_flag=True,
              help="The table has rules: look up the words between labels such as [X].")  # fmt: skip
@click.option("-t", "moses_threads", type=click.IntRange(1), metavar="N", help="The same as --threads.")
@click.option("-m", "cache", type=int, metavar="N", help="Accepted, without effect: the cache needs no size.")
@click.option("--index", metavar="FOLDER",
              help="Keep the index of the corpora here, and use it if they have not changed since.")  # fmt: skip
@click.option("--force", is_flag=True, help="Go on though most phrases do not occur in the corpora.")
@table_options
def command(
    table: str,
    output: str,
    source: str | None,
    target: str | None,
    threshold: str | None,
    top: int,
    column: int,
    counts: bool,
    values: bool,
    hierarchical: bool,
    moses_threads: int | None,
    cache: int | None,
    index: str | None,
    force: bool,
    threads: int,
    block_bytes: int,
    on_error: str,
    quiet: bool,
) -> None:
    """Filter TABLE by Fisher's exact test and by rank, with the flags of Moses' filter-pt.

    The test asks whether the two sides of an entry occur in the same sentence pairs more often than chance would have
    it (Johnson et al. 2007).  The corpora are plain text, gzip or not, as the table was extracted from (same tokens,
    same escapes).  Lines stay in their order; no line is lost.
    """
    from moses_compat.files.streams import Input, Output
    from moses_compat.jobs.filter_pt import CorpusMismatchError, filter_table
    from phrasetool.errors import PhraseToolError
    from phrasetool_cli.shared.progress import TableProgress, say

    del cache
    threads = moses_threads or threads
    tests = threshold is not None or counts or values
    if tests and not (source and target):
        raise click.UsageError("-l, -c and -p need both sides of the corpus, -f FILE and -e FILE")
    if not tests and not top:
        raise click.UsageError("nothing to do; give -l, -n, -c or -p")
    corpora = [path for path in (source, target) if path] if tests else []
    if [table, *corpora].count("-") > 1:
        raise click.UsageError("only one of the table and the corpora can be standard input")
    check_outputs([table, *corpora], [output])
    significance = None
    if source and target and tests:
        request = FilterRequest(source, target, threshold or "0", index, hierarchical, counts, values, force)
        significance = _prepare(request, threads, quiet)
    try:
        with (
            Input(table) as text,
            Output(output) as destination,
            TableProgress("filter", text.size(), quiet) as progress,
        ):
            done = filter_table(
                text, destination, top=top, column=column, significance=significance, on_error=on_error,
                threads=threads, block_bytes=block_bytes, progress=progress,
            )  # fmt: skip
    except CorpusMismatchError as error:
        raise PhraseToolError(f"{error}  (--force filters all the same)") from error
    if not quiet:
        _summarise(done, say)
    _warn(done, significance, say)


def _prepare(request: FilterRequest, threads: int, quiet: bool) -> Significance:
    """Index the corpora, or load their index."""
    from moses_compat.corpora.bitext import check_line_counts
    from moses_compat.corpora.phrase_index import CorpusIndex, kept_index, read_index
    from moses_compat.jobs.filter_pt import Significance
    from phrasetool.pipeline import run
    from phrasetool.pruning.significance import alpha_of
    from phrasetool.pruning.thresholds import Threshold
    from phrasetool_cli.shared.progress import say

    def load(side: tuple[str, str]) -> CorpusIndex:
        name, path = side
        share = max(threads // 2, 1)
        return kept_index(path, request.index, name, share) if request.index else read_index(path, share)

    sides = (("source", request.source), ("target", request.target))
    source, target = run(sides, load, min(threads, 2))
    check_line_counts(source.name, source.sentences.sentences, target.name, target.sentences.sentences)
    sentences = source.sentences.sentences
    alpha = alpha_of(sentences)
    threshold = Threshold(request.threshold).value(alpha)
    if not quiet:
        for corpus in (source, target):
            if corpus.note:
                say(corpus.note)
        say(f"{sentences:,} sentence pairs: a = {alpha:.6f}; entries with -ln p of {threshold:.6f} or more are kept")
    return Significance(source, target, threshold, request.hierarchical, request.counts, request.values, request.force)


def _summarise(done: FilterCounts, say: Any) -> None:
    share = done.kept / done.entries if done.entries else 1.0
    say(f"kept {done.kept:,} of {done.entries:,} entries ({share:.1%})")
    notes = [
        (done.not_best, "removed because others of their source are better (-n)"),
        (done.insignificant, "removed because they are not significant (-l)"),
        (done.wordless, "stayed without a test because a side has no word"),
        (done.faulty_kept, "faulty lines were passed through"),
        (done.faulty_skipped, "faulty lines were left out"),
    ]
    for count, meaning in notes:
        if count:
            say(f"  {count:,} {meaning}")


def _warn(done: FilterCounts, significance: Significance | None, say: Any) -> None:
    """What the user should know even if no summary is wanted."""
    from moses_compat.jobs.filter_pt import MOSES_FIELDS

    if significance is None:
        return
    if done.absent_sources or done.absent_targets:
        say(
            f"warning: of {done.tested:,} entries, {done.absent_sources:,} have a source and {done.absent_targets:,} "
            "a target that does not occur in the corpus; their -ln p is 0"
        )
    if significance.appends and 0 < done.fields < MOSES_FIELDS:
        say(
            f"warning: entries had {done.fields} fields, and Moses reads the first {MOSES_FIELDS}: it will take the "
            "appended ones for alignments, counts, sparse scores or properties"
        )
