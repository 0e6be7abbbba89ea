"""From the options of `phrasetool export` to what is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.shared.exporting.export_summary import candidate_summary, dictionary_summary, lexicon_summary

if TYPE_CHECKING:
    from moses_compat.measures.similarities import SimilaritySource
    from moses_compat.tables.blocks import TableScan
    from phrasetool.watch import Watch


def export(
    kind: str, table: str, output: str, given: dict[str, Any], scan: TableScan, watch: Watch
) -> tuple[dict[str, Any], Iterator[str]]:
    """Write what is wanted.

    Args:
        kind: what it is.
        table, output: files.
        given: the other options that were checked for it.
        scan: how the table is read.
        watch: follows the work.

    Returns:
        The report, and what is said of it.

    Raises:
        click.UsageError: options do not go together.
        PhraseToolError: a file is damaged, or cannot be written.
    """
    if "scale" in given:
        named = given.pop("model_folder", None), given.pop("columns", None), given.pop("scale")
        given["similarities"] = _similarities(*named, scan, watch)
    if kind == "bicleaner":
        from moses_compat.jobs.bicleaner_dictionaries import DictionaryRequest, export_dictionaries

        made = export_dictionaries(DictionaryRequest(table, output, scan=scan, **given), watch)
        return made.as_dict(), dictionary_summary(made)
    if kind == "lexicon":
        from moses_compat.jobs.term_lexicon import LexiconRequest, export_lexicon
        from moses_compat.lines.counts import CountUse

        by_count = given.pop("by_count", "")
        given["count_use"] = CountUse(by_count) if by_count else None
        lexicon = export_lexicon(LexiconRequest(table, output, scan=scan, **given), watch)
        return lexicon.as_dict(), lexicon_summary(lexicon)
    from moses_compat.jobs.candidate_lists import CandidateRequest, MapWriter, export_candidates
    from moses_compat.jobs.marian_shortlist import ShortlistWriter

    shortlist, binary = kind == "shortlist", given.pop("form", None) == "binary"
    longest = {"longest": 1} if shortlist else {}
    try:
        request = CandidateRequest(table, output, shortlist, binary, scan=scan, **{**given, **longest})
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    report = export_candidates(request, ShortlistWriter() if shortlist else MapWriter(), watch)
    return report.as_dict(), candidate_summary(report)


def _similarities(
    folder: str | None, columns: tuple[int, int] | None, scale: str, scan: TableScan, watch: Watch
) -> SimilaritySource | None:
    if columns:
        from moses_compat.measures.similarities import ColumnSimilarities

        return ColumnSimilarities(*columns, scale)
    if folder is None:
        return None
    from moses_compat.measures.model_fit import FitCheck
    from moses_compat.measures.model_sources import model_source

    return model_source(FitCheck(folder, watch, scan.force), threads=scan.threads)
