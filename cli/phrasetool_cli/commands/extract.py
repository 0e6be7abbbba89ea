"""`phrasetool extract`."""

from __future__ import annotations

import time

import click

from phrasetool_cli.checks import check_inputs, check_outputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    json_document,
    json_option,
    output_option,
    quiet_option,
    temporary_option,
    threads_option,
)
from phrasetool_cli.parameter_types import FiniteRange, size_in_bytes
from phrasetool_cli.progress import ItemProgress, TerminalWatch

_RENAMED = {"--reordering-table": "--reordering-out"}
_EXAMPLE = """\b
Example:
  phrasetool extract train.de train.en aligned.gz -o phrase-table.gz --reordering-out reordering-table.gz
  phrasetool align demo-output/corpus.zh demo-output/corpus.en -o aligned.gz && \\
  phrasetool extract demo-output/corpus.zh demo-output/corpus.en aligned.gz -o phrase-table.gz
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@click.argument("alignment")
@sections(
    "Output",
    output_option("Output phrase table."),
    click.option("--reordering-out", "reordering_table", metavar="FILE",
                 help="Also write a reordering table (wbe-msd-bidirectional-fe)."),
    click.option("--lexical", metavar="PREFIX", help="Also write lexical tables, PREFIX.f2e and PREFIX.e2f."),
    "Phrases and scores",
    click.option("--max-length", type=click.IntRange(1, 50), default=7, metavar="N",
                 help="Maximum words of a phrase."),
    click.option("--smoothing", type=click.Choice(["none", "good-turing", "kneser-ney"]), default="none",
                 help="Smoothing of the phrase translation probabilities."),
    click.option("--reordering-smoothing", type=FiniteRange(0, 1e6, min_open=True), default=0.5, metavar="X",
                 help="Value added to each orientation count."),
    "Performance",
    click.option("--memory", type=size_in_bytes, default="2G", metavar="BYTES",
                 help="Memory for phrase pairs before temporary files are used."),
    temporary_option,
    threads_option("Threads for scoring and compression."),
    None,
    json_option,
    quiet_option,
)  # fmt: skip
def command(
    source: str, target: str, alignment: str, output: str, reordering_table: str | None, lexical: str | None,
    max_length: int, smoothing: str, reordering_smoothing: float, memory: int, temporary: str | None, threads: int,
    quiet: bool, json_file: str | None,
) -> None:  # fmt: skip
    """Extract a phrase table from an aligned bitext.

    Counts and scores the phrase pairs of SOURCE and TARGET that are consistent with ALIGNMENT.  SOURCE and TARGET have
    one tokenised sentence per line, ALIGNMENT has lines like `0-0 1-2`.  The tables are those that Moses' training
    writes, sorted (LC_ALL=C): four scores phi(s|t) lex(s|t) phi(t|s) lex(t|s), the alignment, and the counts c(t) c(s)
    c(s,t).
    """
    from moses_compat.corpora.bitexts import read_bitext, warn_of_copies, warn_of_labels
    from moses_compat.engine.extracted import write_extraction
    from phrasetool.smt.extraction.phrase_table import PhraseTable

    lexical_files = (f"{lexical}.f2e", f"{lexical}.e2f") if lexical else None
    written = [output, reordering_table, *(lexical_files or ())]
    check_outputs([source, target, alignment], written)
    check_inputs([source, target, alignment])
    if reordering_table is None:
        refuse_unused({"reordering_smoothing": "a reordering table; give --reordering-out"})
    document = json_document(json_file, [source, target, alignment], written)
    watch = TerminalWatch(quiet)
    tell = watch.say
    began = time.monotonic()
    bitext = read_bitext(source, target, alignment)
    sides = bitext.sources, bitext.targets, bitext.source_symbols, bitext.target_symbols
    warn_of_copies((source, target), sides, watch)
    warn_of_labels((source, target), sides, watch)
    tell(f"{len(bitext):,} sentence pairs, {len(bitext.alignments.source):,} alignment points")
    with ItemProgress("extract", len(bitext), "sentence pair", quiet) as progress:
        extracted = PhraseTable(bitext, max_length, smoothing, memory, temporary, progress.reach)
    with extracted as table:
        notes = ", sorted with temporary files" if table.spilled else ""
        tell(f"{len(table):,} phrase pairs after {time.monotonic() - began:.0f} s{notes}")
        with ItemProgress("write", len(table), "phrase pair", quiet) as progress:
            write_extraction(
                table, bitext.source_symbols, bitext.target_symbols, output, reordering_table, lexical_files,
                reordering_smoothing, threads, progress.reach,
            )  # fmt: skip
        document(
            {
                "sentence_pairs": len(bitext),
                "alignment_points": len(bitext.alignments.source),
                "phrase_pairs": len(table),
                "files": [path for path in written if path],
            }
        )
    tell(f"written after {time.monotonic() - began:.0f} s")
