"""`phrasetool export`."""

from __future__ import annotations

from typing import Any

import click

from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.options import sort_option, table_options
from phrasetool_cli.progress import TerminalWatch
from phrasetool_cli.shared.exporting.export_options import checked, export_options
from phrasetool_cli.shared.given_options import is_given
from phrasetool_cli.shared.output_checks import check_outputs

_EXAMPLE = """\b
Example:
  phrasetool export phrase-table.gz --to vmap -o vmap.txt --evaluate dev.de dev.en
  phrasetool export phrase-table.gz --to shortlist -o lex.s2t.gz --source-vocab vocab.spm --target-vocab vocab.spm
  phrasetool export phrase-table.gz --to lexicon --format tbx --languages de,en -o terms.tbx
  phrasetool export phrase-table.gz --to bicleaner -o dict-de-en.gz --reverse-out dict-en-de.gz
  phrasetool export demo-output/engine/phrase-table.gz --to vmap -o - | head -3
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@sections(export_options, "How the table is read", sort_option, None, json_option, table_options)
def command(
    table: str, kind: str, output: str, threads: int, block_bytes: int, max_line: int, on_error: str,
    allow_empty: bool, force: bool, quiet: bool, json_file: str | None, **given: Any,
) -> None:  # fmt: skip
    """Write a phrase table for other systems.

    \b
    vmap       the vocabulary map with which CTranslate2 restricts the words that a model may put out
    shortlist  the lexical shortlist of Marian, and of the translator in Firefox
    lexicon    term pairs, the surest first
    bicleaner  the probabilistic dictionaries of Bicleaner, of single words

    For a vmap and a shortlist, a source phrase has as candidates the words of its translations, each with the sum of
    the probabilities of all translations that it is in; half a count is taken off each entry.  What the words of a
    phrase bring already is left out of the phrase's own candidates.  Words are written as they read, without Moses'
    escapes, or in pieces.  A pair of a lexicon is worth the more the more probable it is in both directions, and the
    less its sides differ in length; a pair that only adds words to a better one, or lacks some, is left out.

    TABLE has the scores of Moses' training, and counts if they are to count.  `-` is standard input.  For a vmap and a
    shortlist it is sorted (LC_ALL=C), as Moses writes it.
    """
    from moses_compat.tables.blocks import TableScan
    from phrasetool_cli.shared.exporting.export_jobs import export

    options = checked(kind, {**given, "output": output}, set(filter(is_given, given)))
    evaluate = options.get("evaluate", ())
    inputs = [table, options.get("source_vocabulary"), options.get("target_vocabulary"), *evaluate]
    if inputs.count("-") > 1:
        raise click.UsageError("only one input can be standard input")
    outputs = [output, options.get("reverse")]
    check_outputs(inputs, outputs)
    document = json_document(json_file, inputs, outputs)
    watch = TerminalWatch(quiet)
    scan = TableScan(on_error, threads, block_bytes, allow_empty=allow_empty, force=force, max_line=max_line,
                     warn=watch.warn)  # fmt: skip
    report, said = export(kind, table, output, options, scan, watch)
    document(report)
    for line in said:
        watch.say(line)
