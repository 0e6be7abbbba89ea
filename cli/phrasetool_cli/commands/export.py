"""`phrasetool export`."""

from __future__ import annotations

from typing import Any

import click

from phrasetool_cli.shared.columns.export_options import checked_form, export_options, similarities_of
from phrasetool_cli.shared.columns.export_summary import candidate_summary
from phrasetool_cli.shared.flags import sort_option, table_options
from phrasetool_cli.shared.json_output import json_document, json_option
from phrasetool_cli.shared.output_checks import check_outputs
from phrasetool_cli.shared.progress import TerminalWatch
from phrasetool_cli.shared.sections import SectionedCommand, sections

_EXAMPLE = """\b
Example:
  phrasetool export phrase-table.gz --to vmap -o vmap.txt --evaluate dev.de dev.en
  phrasetool export phrase-table.gz --to shortlist -o lex.s2t.gz --source-vocab vocab.spm --target-vocab vocab.spm
  phrasetool export demo-output/engine/phrase-table.gz --to vmap -o - | head -3
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@sections(
    export_options,
    "How the table is read",
    sort_option,
    None,
    json_option,
    table_options,
)  # fmt: skip
def command(
    table: str, kind: str, output: str, form: str | None, most: int, longest: int, always: int, least: float,
    source_vocabulary: str | None, target_vocabulary: str | None, evaluate: tuple[str, str] | None,
    model_folder: str | None, columns: tuple[int, int] | None, scale: str, sort: bool, threads: int, block_bytes: int,
    max_line: int, on_error: str, allow_empty: bool, force: bool, quiet: bool, json_file: str | None,
) -> None:  # fmt: skip
    """Write what other systems can use of a phrase table.

    \b
    vmap       the vocabulary map with which CTranslate2 restricts the words that a neural model may put out
    shortlist  the lexical shortlist of Marian and of the translator in Firefox

    A source phrase has as candidates the words of its translations in TABLE, by the sum of the probabilities of all
    translations that they are in.  What the words of a phrase bring already is left out of its own candidates.  Words
    are written as they read, without Moses' escapes; with --source-vocab and --target-vocab, in the pieces of a
    SentencePiece model, of a tokenizer.json, or of subword-nmt's merges, or those that are in a list alone.  TABLE has
    the scores and counts of Moses' training, and is sorted (LC_ALL=C); `-` is standard input.
    """
    from moses_compat.jobs.exporting.candidate_lists import MapWriter, export_candidates
    from moses_compat.jobs.exporting.marian_shortlist import ShortlistWriter
    from moses_compat.jobs.exporting.request import CandidateRequest
    from moses_compat.tables.blocks import TableScan

    inputs = [table, source_vocabulary, target_vocabulary, *(evaluate or ())]
    if inputs.count("-") > 1:
        raise click.UsageError("only one input can be standard input")
    form = checked_form(kind, form)
    check_outputs(inputs, [output])
    document = json_document(json_file, inputs, [output])
    watch = TerminalWatch(quiet)
    scan = TableScan(on_error, threads, block_bytes, allow_empty=allow_empty, force=force, max_line=max_line,
                     warn=watch.warn)  # fmt: skip
    similarities: Any = similarities_of(model_folder, columns, scale, scan, watch)
    try:
        request = CandidateRequest(
            table, output, kind == "shortlist", form == "binary", most, longest if kind == "vmap" else 1, always,
            least, source_vocabulary, target_vocabulary, evaluate, similarities, scan, sort,
        )  # fmt: skip
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    report = export_candidates(request, MapWriter() if kind == "vmap" else ShortlistWriter(), watch)
    document(report.as_dict())
    for line in candidate_summary(report):
        watch.say(line)
