"""`phrasetool extract`."""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.shared.click_options import check_outputs, quiet_option, threads_option

if TYPE_CHECKING:
    from phrasetool.smt.corpus.bitext import Bitext
    from phrasetool.smt.extraction.phrase_table import PhraseTable


_INTERVAL = 30.0


class Size(click.ParamType[Any]):
    """A number of bytes: 500M, 2G."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        """Return bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,15})([KMGT]?)B?", value.upper())
        if not match:
            self.fail(f"{value!r} is not a number of bytes, as in 500M or 2G", param, context)
        return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


class _Ticker:
    """Says now and then how far a long piece of work is.

    Args:
        label: what is being done.
        size: how much there is.
        quiet: say nothing.
    """

    def __init__(self, label: str, size: int, quiet: bool) -> None:
        self._label = label
        self._size = size
        self._quiet = quiet
        self._last = time.monotonic()

    def __call__(self, done: int) -> None:
        """So much is done."""
        from phrasetool_cli.shared.progress import say

        now = time.monotonic()
        if not self._quiet and now - self._last >= _INTERVAL:
            self._last = now
            say(f"{self._label}: {done:,} of {self._size:,} ({done / self._size:.0%})")


_EXAMPLE = """\b
Example:
  phrasetool extract train.de train.en aligned.gz -o phrase-table.gz --reordering-table reordering-table.gz
  phrasetool align examples/demo/corpus.zh examples/demo/corpus.en -o aligned.gz && \\
  phrasetool extract examples/demo/corpus.zh examples/demo/corpus.en aligned.gz -o phrase-table.gz
"""


@click.command(epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@click.argument("alignment")
@click.option("-o", "--output", default="-", metavar="FILE",
              help="Where the phrase table goes.  [default: standard output]")  # fmt: skip
@click.option("--reordering-table", metavar="FILE",
              help="Also write a lexicalised reordering table, wbe-msd-bidirectional-fe.")  # fmt: skip
@click.option("--lexical", metavar="PREFIX", help="Also write the lexical tables, PREFIX.f2e and PREFIX.e2f.")
@click.option("--max-length", type=click.IntRange(1, 50), default=7, show_default=True, metavar="N",
              help="Words a phrase may have at most.")  # fmt: skip
@click.option("--smoothing", type=click.Choice(["none", "good-turing", "kneser-ney"]), default="none",
              show_default=True, help="Discounting of the phrase translation probabilities.")  # fmt: skip
@click.option("--reordering-smoothing", type=click.FloatRange(0, min_open=True), default=0.5, show_default=True,
              metavar="X", help="What is added to each count of an orientation.")  # fmt: skip
@click.option("--memory", type=Size(), default="2G", show_default=True,
              help="For phrase pairs; more of them go to temporary files.  Never changes the output.")  # fmt: skip
@click.option("--temporary", metavar="FOLDER", help="Where temporary files go.  [default: $TMPDIR]")
@threads_option("Threads that score and compress.")
@quiet_option
def command(
    source: str,
    target: str,
    alignment: str,
    output: str,
    reordering_table: str | None,
    lexical: str | None,
    max_length: int,
    smoothing: str,
    reordering_smoothing: float,
    memory: int,
    temporary: str | None,
    threads: int,
    quiet: bool,
) -> None:
    """Extract the phrase pairs of SOURCE and TARGET that agree with ALIGNMENT, count and score them.

    SOURCE and TARGET have one tokenised sentence a line, ALIGNMENT lines like `0-0 1-2`.  The tables are those that
    Moses' training writes, sorted under LC_ALL=C: four scores phi(s|t) lex(s|t) phi(t|s) lex(t|s), the alignment, and
    the counts c(t) c(s) c(s,t).
    """
    import os

    from moses_compat.corpora.bitext import read_bitext
    from phrasetool.errors import PhraseToolError
    from phrasetool.smt.extraction.phrase_table import PhraseTable
    from phrasetool_cli.shared.progress import say

    lexical_files = [f"{lexical}.f2e", f"{lexical}.e2f"] if lexical else []
    check_outputs([source, target, alignment], [output, reordering_table, *lexical_files])
    if temporary and not os.path.isdir(temporary):
        raise PhraseToolError(f"{temporary}: there is no such folder for temporary files")
    began = time.monotonic()
    bitext = read_bitext(source, target, alignment)
    if not quiet:
        say(f"{len(bitext):,} sentence pairs, {len(bitext.alignments.source):,} alignment points")
    with PhraseTable(bitext, max_length, smoothing, memory, temporary, _Ticker("extract", len(bitext), quiet)) as table:
        if not quiet:
            notes = ", sorted with temporary files" if table.spilled else ""
            say(f"{len(table):,} phrase pairs after {time.monotonic() - began:.0f} s{notes}")
        tick = _Ticker("write", len(table), quiet)
        _write(table, bitext, output, reordering_table, lexical_files, reordering_smoothing, threads, tick)
    if not quiet:
        say(f"written after {time.monotonic() - began:.0f} s")


def _write(
    table: PhraseTable,
    bitext: Bitext,
    output: str,
    reordering_table: str | None,
    lexical_files: list[str],
    reordering_smoothing: float,
    threads: int,
    progress: _Ticker,
) -> None:
    from moses_compat.engine.extracted import format_lexical_tables, write_extracted_tables
    from moses_compat.files.streams import Output

    source, target = bitext.source_symbols, bitext.target_symbols
    with contextlib.ExitStack() as stack:
        # The last one opened is the first one renamed: the phrase table must be the last to appear.
        phrases = stack.enter_context(Output(output))
        reordering = stack.enter_context(Output(reordering_table)) if reordering_table else None
        if lexical_files:
            for path, text in zip(
                lexical_files, format_lexical_tables(table.lexical_table, source, target), strict=True
            ):
                stack.enter_context(Output(path)).write(text)
        write_extracted_tables(table, source, target, phrases, reordering, reordering_smoothing, threads, progress)
