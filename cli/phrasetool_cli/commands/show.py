"""`phrasetool show`."""

from __future__ import annotations

import click

from moses_compat.files.paths import STANDARD
from phrasetool.errors import PhraseToolError
from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import engine_options, json_document, json_option
from phrasetool_cli.progress import TerminalWatch, say

_EXAMPLE = """\b
Example:
  phrasetool show phrase-table.gz "nicht einverstanden"
  phrasetool show phrase-table.gz agree --target -m phrasetool-model --limit 5
  phrasetool show demo-output/engine/phrase-table.gz 经济 --contains -m demo-output/model
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@click.argument("phrase", nargs=-1, required=True)
@sections(
    "Search",
    click.option("--target", is_flag=True, help="PHRASE is a target phrase."),
    click.option("--contains", is_flag=True, help="Search phrases that contain PHRASE, which may be a part of a word."),
    click.option("--limit", type=click.IntRange(0), default=20, metavar="N", help="Show the best N entries; 0: all."),
    "Columns",
    click.option("-m", "--model", "model_folder", metavar="FOLDER", help="Show the similarities of this model."),
    click.option("--reasons", metavar="FILE", help="Show what `prune --reasons` recorded in FILE."),
    "Index",
    click.option("--index", metavar="FILE", help="File of the index.  [default: TABLE.index]"),
    None,
    json_option,
    engine_options,
)  # fmt: skip
def command(
    table: str, phrase: tuple[str, ...], target: bool, contains: bool, limit: int, model_folder: str | None,
    reasons: str | None, index: str | None, json_file: str | None, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Show the entries of a phrase.

    TABLE is a phrase table in text form, gzip or not; PHRASE is a source phrase as in TABLE (with Moses' escapes such
    as `&apos;`).  Entries are sorted by p(e|f), the third of Moses' scores, or by the last score of a table with fewer
    than four.

    The first call writes an index next to TABLE, about twice the size of the compressed table; later calls read only
    the index.  If the table changes, the index is built again.
    """
    from moses_compat.jobs.show import entries_of, shown_lines, with_decisions, with_similarities
    from moses_compat.tables.blocks import TableScan
    from moses_compat.tables.phrase_index import ENDING, SOURCE, TARGET, phrase_index

    if table == STANDARD:
        raise click.UsageError("TABLE cannot be standard input: its index is kept for later calls")
    text = " ".join(phrase).encode("utf-8", "surrogateescape")
    if not text.strip(b" \t") or b"|||" in text or b"\n" in text:
        raise click.UsageError("PHRASE must have a word, and neither ||| nor a line feed")
    check_inputs([table, *([reasons] if reasons else [])])
    # Only the name: an index that exists is read, and nothing is written.
    check_outputs([table, reasons], [index or table + ENDING], folders=True)
    document = json_document(json_file, [table, reasons])
    watch = TerminalWatch(quiet)
    model = None
    if model_folder is not None:
        from phrasetool.phrase_encoder.model import BilingualModel

        model = BilingualModel.load(model_folder)
    # Only the index is written, so an implausible table is shown with a warning.
    scan = TableScan(threads=threads, allow_empty=True, force=True, warn=watch.warn)
    opened = phrase_index(table, index, scan, watch)
    side = TARGET if target else SOURCE
    entries = entries_of(opened, text, side, contains, threads)
    if not entries:
        verb = "contains" if contains else "is"
        hint = "" if contains else "; --contains also finds longer phrases"
        raise PhraseToolError(f"{table}: no {side} phrase {verb} {text.decode('utf-8', 'replace')!r}{hint}")
    shown = entries[: limit or None]
    if model is not None:
        shown = with_similarities(shown, model)
    if reasons is not None:
        shown = with_decisions(shown, entries, reasons)
    document({"table": table, "entries": len(entries), "shown": [entry.as_dict() for entry in shown]})
    if json_file != STANDARD:
        for line in shown_lines(shown, side, contains):
            click.echo(line)
        if len(shown) < len(entries) and not quiet:
            say(f"the best {len(shown):,} of {len(entries):,} entries; --limit 0 shows all")
