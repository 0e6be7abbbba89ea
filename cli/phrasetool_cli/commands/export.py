"""`phrasetool export`."""

from __future__ import annotations

import click

from phrasetool_cli.shared.columns.export_summary import candidate_summary
from phrasetool_cli.shared.flags import output_option, sort_option, table_options
from phrasetool_cli.shared.json_output import json_document, json_option
from phrasetool_cli.shared.output_checks import check_outputs
from phrasetool_cli.shared.parameter_types import Share
from phrasetool_cli.shared.progress import TerminalWatch
from phrasetool_cli.shared.sections import SectionedCommand, sections

_EXAMPLE = """\b
Example:
  phrasetool export phrase-table.gz --to vmap -o vmap.txt
  phrasetool export phrase-table.gz --to vmap -o vmap.txt --evaluate dev.de dev.en
  phrasetool export demo-output/engine/phrase-table.gz --to vmap -o - | head -3
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@sections(
    "What is written",
    click.option("--to", "kind", type=click.Choice(["vmap"]), required=True, help="What for."),
    output_option(),
    "Candidates",
    click.option("--targets", "most", type=click.IntRange(1), default=100, metavar="N",
                 help="Candidates of a source phrase, besides those of its words."),
    click.option("--longest", type=click.IntRange(1), default=3, metavar="N", help="Words of a source phrase."),
    click.option("--always", type=click.IntRange(0), default=100, metavar="N",
                 help="The most frequent target words, which are always candidates."),
    click.option("--min-prob", "least", type=Share(), default=0.01, metavar="P",
                 help="Leave out candidates of a phrase that are less probable."),
    click.option("--source-vocab", "source_vocabulary", metavar="FILE",
                 help="What the system splits source words into."),
    click.option("--target-vocab", "target_vocabulary", metavar="FILE", help="The same for target words."),
    click.option("--evaluate", nargs=2, metavar="SRC REF",
                 help="Say how many words of the translation REF are candidates of the sentences SRC."),
    "How the table is read",
    sort_option,
    None,
    json_option,
    table_options,
)  # fmt: skip
def command(
    table: str, kind: str, output: str, most: int, longest: int, always: int, least: float,
    source_vocabulary: str | None, target_vocabulary: str | None, evaluate: tuple[str, str] | None, sort: bool,
    threads: int, block_bytes: int, max_line: int, on_error: str, allow_empty: bool, force: bool, quiet: bool,
    json_file: str | None,
) -> None:  # fmt: skip
    """Write what other systems can use of a phrase table."""
    from moses_compat.jobs.exporting.candidates import MapWriter, export_candidates
    from moses_compat.jobs.exporting.request import CandidateRequest
    from moses_compat.tables.blocks import TableScan

    inputs = [table, source_vocabulary, target_vocabulary, *(evaluate or ())]
    check_outputs(inputs, [output])
    document = json_document(json_file, inputs, [output])
    watch = TerminalWatch(quiet)
    scan = TableScan(on_error, threads, block_bytes, allow_empty=allow_empty, force=force, max_line=max_line,
                     warn=watch.warn)  # fmt: skip
    request = CandidateRequest(
        table, output, False, False, most, longest, always, least, source_vocabulary, target_vocabulary, evaluate,
        None, scan, sort,
    )  # fmt: skip
    report = export_candidates(request, MapWriter(), watch)
    document(report.as_dict())
    for line in candidate_summary(report):
        watch.say(line)
