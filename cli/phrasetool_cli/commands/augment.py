"""`phrasetool augment`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from phrasetool.augment.evidence import EVIDENCE
from phrasetool_cli.checks import check_outputs
from phrasetool_cli.command import SectionedCommand, sections, together
from phrasetool_cli.options import (
    ini_edit,
    json_document,
    json_option,
    relative_option,
    sort_option,
    standard_output,
    table_options,
    weight_option,
)
from phrasetool_cli.parameter_types import names_of
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.augment import AugmentReport, AugmentRequest

_EXAMPLE = """\b
Example:
  phrasetool augment phrase-table.gz --text dev.de --text test.de --moses-ini moses.ini --moses-ini-out augmented.ini
  phrasetool augment phrase-table.gz --text test.de --reference test.en -o augmented.gz --list new.tsv
  phrasetool augment phrase-table.gz --text test.de --reordering-table reordering.gz --reordering-out more.gz
  phrasetool augment demo-output/engine/phrase-table.gz --text demo-output/engine/test.zh -o - | head -3
"""


_DEPENDENT = (*together("ini", "ini_output"), *together("reordering_table", "reordering_out"))


@click.command(cls=SectionedCommand, dependent=_DEPENDENT, epilog=_EXAMPLE)
@click.argument("table")
@sections(
    "Input",
    click.option("--text", "texts", multiple=True, required=True, metavar="FILE",
                 help="Tokenised text whose words get entries; repeatable."),
    click.option("--evidence", type=names_of(EVIDENCE), default=",".join(EVIDENCE), metavar="NAME,...",
                 help="Sources of translations."),
    click.option("--rare", type=click.IntRange(0), default=0, metavar="N",
                 help="Also add entries for words seen at most N times."),
    click.option("--monolingual", multiple=True, metavar="FILE",
                 help="Source text, to find words with similar use; repeatable."),
    click.option("--seed", type=click.IntRange(0), default=1, metavar="N",
                 help="Random seed of the known words to learn from."),
    "Output",
    click.option("-o", "--output", metavar="FILE", callback=standard_output,
                 help="Output file; `-` is standard output.  [default: TABLE.augmented.gz]"),
    click.option("--reordering-table", metavar="FILE", help="Add the same entries to this reordering table."),
    click.option("--reordering-out", metavar="FILE", help="Write the new reordering table here."),
    click.option("--list", "entries_out", metavar="FILE",
                 help="List the new entries: word, translation, probability, evidence, origin."),
    click.option("--reference", "references", multiple=True, metavar="FILE",
                 help="Translation of each --text, to report how many entries are correct."),
    "moses.ini",
    click.option("--moses-ini", "ini", metavar="INI", help="moses.ini of TABLE."),
    click.option("--moses-ini-out", "ini_output", metavar="FILE",
                 help="Write INI here with the new tables in place of the old ones."),
    weight_option,
    relative_option,
    "Reading",
    sort_option,
    None,
    json_option,
    table_options,
)  # fmt: skip
def command(
    table: str, texts: tuple[str, ...], evidence: tuple[str, ...], rare: int, monolingual: tuple[str, ...], seed: int,
    output: str | None, reordering_table: str | None, reordering_out: str | None, entries_out: str | None,
    references: tuple[str, ...], ini: str | None, ini_output: str | None, weight: float, relative: bool, sort: bool,
    threads: int, block_bytes: int, max_line: int, on_error: str, allow_empty: bool, force: bool, quiet: bool,
    json_file: str | None,
) -> None:  # fmt: skip
    """Add entries for out-of-vocabulary words.

    Words of the texts that TABLE lacks get entries that are derived from its other entries: from the parts of a
    compound, from words with the same beginning (inflection), from words with similar spelling or use (meaning), or
    copies.  The probabilities depend on the accuracy of each source of evidence, measured on known words.  An indicator
    column for each source is appended to the scores, for tuning.  TABLE must be sorted (LC_ALL=C), and is read twice.

    """
    from moses_compat.files.packing import without_ending
    from moses_compat.files.paths import is_stream
    from moses_compat.jobs.augment import AugmentRequest, augment
    from moses_compat.tables.blocks import TableScan

    output = output or without_ending(table) + ".augmented.gz"
    if is_stream(table) or (reordering_table and is_stream(reordering_table)):
        raise click.UsageError("tables are read twice, so they cannot come from standard input or a pipe")
    if (references or monolingual) and any(map(is_stream, texts)):
        raise click.UsageError("with --reference or --monolingual, texts are read twice; they must be files")
    if references and len(references) != len(texts):
        raise click.UsageError(f"{len(texts)} --text, but {len(references)} --reference; give one for each, or none")
    if (reordering_table is None) != (reordering_out is None):
        raise click.UsageError("give both --reordering-table and --reordering-out, or neither")
    inputs = [table, reordering_table, *texts, *references, *monolingual, ini]
    outputs = [output, reordering_out, entries_out, ini_output]
    check_outputs(inputs, outputs)
    document = json_document(json_file, inputs, outputs)
    edit = ini_edit(table, output, ini, ini_output, weight, "exp", relative, reordering_out)
    watch = TerminalWatch(quiet)
    scan = TableScan(on_error, threads, block_bytes, allow_empty=allow_empty, force=force, max_line=max_line)
    request = AugmentRequest(
        table, output, texts, references, evidence, reordering_table, reordering_out, monolingual, edit, entries_out,
        scan, sort, seed, rare,
    )  # fmt: skip
    report = augment(request, watch)
    document(report.as_dict())
    for line in augment_summary(report, request):
        watch.say(line)


def augment_summary(report: AugmentReport, request: AugmentRequest) -> Iterator[str]:
    """Yield the lines of the summary.

    Args:
        report: result of `augment`.
        request: the table, texts and options.
    """
    if not report.words:
        yield "all words of the text have entries; none was added"
    else:
        yield (
            f"{report.words:,} words ({report.tokens:,} in the text) had no entry; {report.translated:,} have "
            f"{report.entries:,} now"
        )
        for name, source in report.sources.items():
            right = f"; {_share(source.right, source.tokens)} of these have one that is in the reference"
            yield (
                f"  {name}: {source.words:,} words ({source.tokens:,} in the text)"
                f"{right if source.right is not None else ''}; its best is right for {100 * source.trust:.0f}% of rare "
                "known words"
            )
        if report.right is not None:
            yield (
                f"in the reference: some translation of {_share(report.right[0], report.tokens)} of the unknown words, "
                f"the best one of {_share(report.right[1], report.tokens)}"
            )
    if rare := report.rare:
        right = f"; some new one of {_share(rare.right, rare.tokens)} of these is in the reference"
        yield (
            f"{rare.words:,} words ({rare.tokens:,} in the text) were rare; {rare.translated:,} have {rare.entries:,} "
            f"more entries now{right if rare.right is not None else ''}"
        )
    if edit := request.edit:
        yield (
            f"{edit.output} names {edit.table} as {edit.feature.name}, with {edit.scores + report.columns} scores "
            f"instead of {edit.scores}; the new weights are {edit.weight:g}: tune them"
        )
    elif report.columns:
        yield (
            f"entries have {report.columns} more scores: set num-features in moses.ini, and give the weight line "
            f"{report.columns} more numbers"
        )


def _share(part: int | None, whole: int) -> str:
    return f"{100 * (part or 0) / max(1, whole):.0f}%"
