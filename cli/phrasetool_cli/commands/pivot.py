"""`phrasetool pivot`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_outputs, is_given, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections, together
from phrasetool_cli.options import json_document, json_option, output_option, table_options, temporary_option
from phrasetool_cli.parameter_types import Share, column_pair, names_of, size_in_bytes
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.pivot import PivotReport, PivotRequest, Similarities

_COLUMNS = ("paths", "agreement")
_RENAMED = {
    "--columns": "--extra-columns",
    "--similarities": "--similarity-columns",
    "--least-probability": "--min-probability",
}
_EXAMPLE = """\b
Example:
  phrasetool pivot de-en.gz en-cs.gz -o de-cs.gz
  phrasetool pivot de-en.gz en-cs.gz de-fr.gz fr-cs.gz --extra-columns paths,agreement -o de-cs.gz
  phrasetool pivot de-en.annotated.gz en-cs.annotated.gz --similarity-columns 5,6 -o de-cs.gz
  phrasetool pivot de-en.gz en-cs.gz --reordering-tables de-en.r.gz en-cs.r.gz --reordering-out de-cs.r.gz -o de-cs.gz
  phrasetool align demo-output/corpus.en demo-output/corpus.zh -o en-zh.aligned.gz && \\
  phrasetool extract demo-output/corpus.en demo-output/corpus.zh en-zh.aligned.gz -o en-zh.gz && \\
  phrasetool pivot demo-output/engine/phrase-table.gz en-zh.gz -o - | head -3
"""


@click.command(
    cls=SectionedCommand, renamed=_RENAMED, dependent=together("reordering_tables", "reordering_out"), epilog=_EXAMPLE
)
@click.argument("tables", nargs=-1, required=True, metavar="A-B B-C [A-B2 B2-C]...")
@sections(
    "Output",
    output_option("Output phrase table."),
    click.option("--extra-columns", "columns", type=names_of(_COLUMNS), default=None, metavar="NAME,...",
                 help="Append paths (best path, number of paths) or agreement (pivot languages)."),
    click.option("--similarity-columns", "similarities", type=column_pair, multiple=True, metavar="A,B",
                 help="Combine two similarity columns of the tables; once, or for each table."),
    click.option("--scale", type=click.Choice(["exp", "probability", "raw"]), default="exp",
                 help="Scale of the similarity columns (see annotate)."),
    click.option("--reordering-tables", nargs=2, multiple=True, metavar="A-B B-C",
                 help="Reordering tables of two tables; once for each pivot language."),
    click.option("--reordering-out", metavar="FILE", help="Write the reordering table here."),
    "Entries",
    click.option("--keep-best", type=click.IntRange(0), default=100, metavar="N",
                 help="Keep the N entries of a source with the highest p(c|a); 0: all."),
    click.option("--min-probability", "least_probability", type=Share(), default=0.0, metavar="P",
                 help="Drop entries with a lower p(target|source)."),
    click.option("--counts", type=click.Choice(["expected", "min"]), default="expected",
                 help="Estimate joint counts as expected, or as the minimum on each path."),
    "Performance",
    click.option("--memory", type=size_in_bytes, default="2G", metavar="BYTES",
                 help="Memory for entries before temporary files are used."),
    temporary_option,
    "Reading",
    click.option("--sort", is_flag=True, help="Sort the tables first, as Moses does (LC_ALL=C sort)."),
    None,
    json_option,
    table_options,
)  # fmt: skip
def command(
    tables: tuple[str, ...], output: str, columns: tuple[str, ...] | None, similarities: tuple[tuple[int, int], ...],
    scale: str, reordering_tables: tuple[tuple[str, str], ...], reordering_out: str | None, keep_best: int,
    least_probability: float, counts: str, memory: int, temporary: str | None, sort: bool, threads: int,
    block_bytes: int, max_line: int, on_error: str, allow_empty: bool, force: bool, quiet: bool, json_file: str | None,
) -> None:  # fmt: skip
    """Build a phrase table through a pivot language.

    A-B translates to the pivot language, B-C from it; the output A-C combines all paths through phrases of B.  Its four
    scores are sums over these paths, p(c|a) = sum of p(b|a) p(c|b), and so on; with several pivot languages, two tables
    each, they are means of these sums.  Alignment points are those of the best path, and counts are expected counts of
    source, target and pair.  Tables must be sorted (LC_ALL=C), as Moses writes them; the output is sorted, too.
    `--on-error keep` is refused, because no line of the tables is written.
    """
    from moses_compat.jobs.pivot import PivotRequest, pivot
    from moses_compat.lines.counts import CountUse
    from moses_compat.tables.blocks import TableScan

    if len(tables) % 2:
        many = "1 table" if len(tables) == 1 else f"{len(tables)} tables"
        raise click.UsageError(f"{many}; expected two for each pivot language, to it and from it")
    pairs = list(zip(tables[::2], tables[1::2], strict=True))
    orderings = [path for pair in reordering_tables for path in pair]
    if bool(reordering_tables) != bool(reordering_out):
        raise click.UsageError("give both --reordering-tables and --reordering-out, or neither")
    if reordering_tables and len(reordering_tables) != len(pairs):
        message = f"{len(pairs)} pivot languages, but {len(reordering_tables)} --reordering-tables"
        raise click.UsageError(f"{message}; give one for each, or none")
    if similarities and len(similarities) not in (1, len(tables)):
        message = f"{len(tables)} tables, but {len(similarities)} --similarity-columns"
        raise click.UsageError(f"{message}; give one for all, or one for each")
    if on_error == "keep":
        raise click.UsageError("--on-error keep is not for lines of two tables; skip leaves them out")
    check_outputs([*tables, *orderings], [output, reordering_out])
    if not similarities:
        refuse_unused({"scale": "similarities; name their columns with --similarity-columns"})
    document = json_document(json_file, [*tables, *orderings], [output, reordering_out])
    scan = TableScan(on_error, threads, block_bytes, allow_empty=allow_empty, force=force, max_line=max_line)
    count_use = CountUse("--counts") if is_given("counts") else None
    request = PivotRequest(
        pairs, output, reordering_tables, reordering_out, _similarities(similarities, len(pairs), scale), columns or (),
        keep_best, least_probability, counts == "min", count_use, scan, sort, memory, temporary,
    )  # fmt: skip
    watch = TerminalWatch(quiet)
    report = pivot(request, watch)
    document(report.as_dict())
    for line in pivot_summary(report, request):
        watch.say(line)


def _similarities(columns: tuple[tuple[int, int], ...], pivots: int, scale: str) -> list[Similarities]:
    """Return the similarity columns of the two tables of each pivot language."""
    from moses_compat.measures.similarities import ColumnSimilarities

    each = [ColumnSimilarities(*pair, scale) for pair in columns]
    each = each * (2 * pivots) if len(each) == 1 else each
    return list(zip(each[::2], each[1::2], strict=True))


def pivot_summary(report: PivotReport, request: PivotRequest) -> Iterator[str]:
    """Yield the lines of the summary.

    Args:
        report: result of `pivot`.
        request: the tables and options.
    """
    from moses_compat.jobs.pivot import describe_overlap

    for (first, second), coverage in zip(request.tables, report.coverages, strict=True):
        yield f"{first}: {describe_overlap(coverage, second)}"
    yield (
        f"{report.entries:,} entries of {report.sources:,} sources, {report.paths / max(1, report.entries):.1f} paths "
        "to each on average"
    )
    if report.without_alignment:
        yield f"{report.without_alignment:,} entries have no alignment point, because their best path has none"
    if report.columns:
        yield (
            f"scores 5 to {4 + len(report.columns)}: {'; '.join(report.columns)}.  `phrasetool moses-ini` counts them; "
            "tune their weights"
        )
