"""`phrasetool export`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_outputs, is_given
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import json_document, json_option, output_option, sort_option, table_options
from phrasetool_cli.parameter_types import Share, column_pair
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.candidate_lists import CandidateReport
    from moses_compat.jobs.dictionaries import DictionaryReport, LexiconReport
    from moses_compat.measures.similarities import SimilaritySource
    from moses_compat.tables.blocks import TableScan
    from phrasetool.watch import Watch

# Kind of output -> its formats, the first by default, and the options that apply to it.
_KINDS = {
    "vmap": ((), {"most", "longest", "always", "least", "source_vocabulary", "target_vocabulary", "evaluate", "sort",
                  "model_folder", "columns", "scale"}),
    "shortlist": (("text", "binary"), {"form", "most", "always", "least", "source_vocabulary", "target_vocabulary",
                                       "evaluate", "sort", "model_folder", "columns", "scale"}),
    "lexicon": (("tsv", "csv", "tbx"), {"form", "languages", "most", "longest", "least", "count", "stop_words",
                                        "sample", "evaluate", "model_folder", "columns", "scale"}),
    "bicleaner": ((), {"reverse", "least"}),
}  # fmt: skip
_FLAGS = {
    "form": "--format", "languages": "--languages", "most": "--targets", "longest": "--longest", "always": "--always",
    "least": "--min-probability", "count": "--min-pair-count", "stop_words": "--stop-words", "sample": "--sample",
    "source_vocabulary": "--source-vocab", "target_vocabulary": "--target-vocab", "evaluate": "--evaluate",
    "reverse": "--reverse-out", "model_folder": "--model", "columns": "--similarity-columns",
    "scale": "--scale", "sort": "--sort",
}  # fmt: skip


def _two_languages(value: str) -> tuple[str, str]:
    """Parse SOURCE,TARGET, as in de,en or zh-Hans,en."""
    if not re.fullmatch(r"[A-Za-z]{2,8}(-\w{1,8})*,[A-Za-z]{2,8}(-\w{1,8})*", value):
        raise click.BadParameter(f"{value!r} is not two codes of languages, as in de,en")
    source, _, target = value.partition(",")
    return source, target


export_options = sections(
    "Output",
    click.option("--to", "kind", type=click.Choice(list(_KINDS)), required=True, help="Target format."),
    output_option(),
    click.option("--format", "form", type=click.Choice(["text", "binary", "tsv", "csv", "tbx"]),
                 help="File format.  [default: the first]"),
    click.option("--languages", type=_two_languages, metavar="SOURCE,TARGET", help="Language codes for tbx."),
    click.option("--reverse-out", "reverse", metavar="FILE",
                 help="Dictionary of the other direction."),
    click.option("--sample", type=click.IntRange(1), metavar="N",
                 help="Write only N pairs of a lexicon."),
    "Entries",
    click.option("--targets", "most", type=click.IntRange(1), metavar="N",
                 help="Targets of a source.  [default: 100; lexicon 3]"),
    click.option("--longest", type=click.IntRange(1), metavar="N",
                 help="Maximum words of a source.  [default: 3; lexicon 4]"),
    click.option("--always", type=click.IntRange(0), default=100, metavar="N",
                 help="Frequent words that are always candidates."),
    click.option("--min-probability", "least", type=Share(), metavar="P",
                 help="Drop less probable.  [default: 0.01; lexicon 0.1]"),
    click.option("--min-pair-count", "count", type=click.IntRange(1), default=2, metavar="N",
                 help="Drop rarer term pairs (joint count)."),
    click.option("--stop-words", type=click.IntRange(0), default=50, metavar="N",
                 help="The N most frequent words start or end no term."),
    "Vocabulary of the target system",
    click.option("--source-vocab", "source_vocabulary", metavar="FILE",
                 help="Source subword model or word list."),
    click.option("--target-vocab", "target_vocabulary", metavar="FILE",
                 help="Target subword model or word list."),
    "Scores of entries",
    click.option("-m", "--model", "model_folder", metavar="FOLDER",
                 help="Weight entries by this model's similarity."),
    click.option("--similarity-columns", "columns", type=column_pair, metavar="A,B",
                 help="Weight entries by similarity columns."),
    click.option("--scale", type=click.Choice(["exp", "probability", "raw"]), default="exp",
                 help="Scale of the columns (see annotate)."),
    "Evaluation",
    click.option("--evaluate", nargs=2, metavar="SRC REF",
                 help="Text and reference, to report coverage."),
)  # fmt: skip


def checked(kind: str, values: dict[str, Any], named: set[str]) -> dict[str, Any]:
    """Return the options that apply to a target format, with its defaults.

    Args:
        kind: the target format.
        values: values of all options by name.
        named: names of the options that were given.

    Raises:
        click.UsageError: an option does not apply to the format, or options contradict each other.
    """
    forms, applicable = _KINDS[kind]
    # Configured options for other formats have no effect.
    if values["form"] not in forms and "form" not in named:
        values["form"] = None
    if values["form"] != "tbx" and "languages" not in named:
        values["languages"] = None
    for name in _FLAGS:
        if name in named and name not in applicable:
            raise click.UsageError(f"{_FLAGS[name]} cannot be used with --to {kind}")
    if values["form"] and values["form"] not in forms:
        raise click.UsageError(f"--to {kind} has the formats {', '.join(forms)}, not {values['form']}")
    if values["model_folder"] and values["columns"]:
        raise click.UsageError("-m and --similarity-columns are two sources of similarities; give one")
    if "scale" in named and not values["columns"]:
        raise click.UsageError("--scale is for --similarity-columns")
    options = {name: value for name, value in values.items() if name in applicable}
    if forms:
        options["form"] = values["form"] or forms[0]
    if (options.get("form") == "tbx") != bool(values["languages"]):
        raise click.UsageError("--format tbx and --languages must be given together")
    if kind == "lexicon":
        by_count = [_FLAGS[name] for name in ("count", "stop_words") if name in named and values[name]]
        options["by_count"] = " or ".join(by_count)
    if kind == "bicleaner":
        for path in (values["output"], values["reverse"]):
            if path and path != "-" and not path.endswith(".gz"):
                raise click.UsageError(f"bicleaner reads gzipped dictionaries; expected a name with .gz, not {path}")
    return {name: value for name, value in options.items() if value is not None}


_RENAMED = {"--min-prob": "--min-probability", "--min-count": "--min-pair-count", "--columns": "--similarity-columns"}
_EXAMPLE = """\b
Example:
  phrasetool export table.gz --to vmap -o vmap.txt --evaluate dev.de dev.en
  phrasetool export table.gz --to shortlist -o lex.s2t.gz --source-vocab v.spm --target-vocab v.spm
  phrasetool export table.gz --to lexicon --format tbx --languages de,en -o terms.tbx
  phrasetool export demo-output/engine/phrase-table.gz --to vmap -o - | head -3
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, exclusive=(("model_folder", "columns"),), epilog=_EXAMPLE)
@click.argument("table")
@sections(export_options, "Reading", sort_option, None, json_option, table_options)
def command(
    table: str, kind: str, output: str, threads: int, block_bytes: int, max_line: int, on_error: str,
    allow_empty: bool, force: bool, quiet: bool, json_file: str | None, **values: Any,
) -> None:  # fmt: skip
    """Write a phrase table for other systems.

    \b
    vmap       vocabulary map of CTranslate2
    shortlist  lexical shortlist of Marian and Firefox
    lexicon    term pairs, the best first
    bicleaner  probabilistic dictionaries of Bicleaner

    Candidates of a source phrase in a vmap or shortlist are the words of its translations, ranked by the sum of their
    probabilities.  Pairs of a lexicon are ranked by the probabilities of both directions and by length.  Words are
    written without Moses' escapes, or as subword units.

    TABLE must have the scores of Moses' training; for a vmap or shortlist, it must be sorted (LC_ALL=C).
    `--on-error keep` is refused, because no line of TABLE is written.

    """
    from moses_compat.tables.blocks import TableScan

    options = checked(kind, {**values, "output": output}, set(filter(is_given, values)))
    if on_error == "keep":
        raise click.UsageError("--on-error keep is not for lists, which hold no lines of TABLE; skip leaves them out")
    evaluate = options.get("evaluate", ())
    inputs = [table, options.get("source_vocabulary"), options.get("target_vocabulary"), *evaluate]
    outputs = [output, options.get("reverse")]
    check_outputs(inputs, outputs)
    document = json_document(json_file, inputs, outputs)
    watch = TerminalWatch(quiet)
    scan = TableScan(on_error, threads, block_bytes, allow_empty=allow_empty, force=force, max_line=max_line,
                     warn=watch.warn)  # fmt: skip
    report, summary = _export(kind, table, output, options, scan, watch)
    document(report)
    for line in summary:
        watch.say(line)


def _export(
    kind: str, table: str, output: str, options: dict[str, Any], scan: TableScan, watch: Watch
) -> tuple[dict[str, Any], Iterator[str]]:
    """Write the requested output.

    Args:
        kind: the target format.
        table, output: files.
        options: other options, from `checked`.
        scan: how the table is read.
        watch: progress listener.

    Returns:
        The report for `--json`, and the lines of the summary.

    Raises:
        click.UsageError: options contradict each other.
        PhraseToolError: a file is damaged, or cannot be written.
    """
    if "scale" in options:
        named = options.pop("model_folder", None), options.pop("columns", None), options.pop("scale")
        options["similarities"] = _similarities(*named, scan, watch)
    if kind == "bicleaner":
        from moses_compat.jobs.dictionaries import DictionaryRequest, export_dictionaries

        dictionaries = export_dictionaries(DictionaryRequest(table, output, scan=scan, **options), watch)
        return dictionaries.as_dict(), dictionary_summary(dictionaries)
    if kind == "lexicon":
        from moses_compat.jobs.dictionaries import LexiconRequest, export_lexicon
        from moses_compat.lines.counts import CountUse

        by_count = options.pop("by_count", "")
        options["count_use"] = CountUse(by_count) if by_count else None
        lexicon = export_lexicon(LexiconRequest(table, output, scan=scan, **options), watch)
        return lexicon.as_dict(), lexicon_summary(lexicon)
    from moses_compat.jobs.candidate_lists import CandidateRequest, MapWriter, ShortlistWriter, export_candidates

    shortlist, binary = kind == "shortlist", options.pop("form", None) == "binary"
    longest = {"longest": 1} if shortlist else {}
    try:
        request = CandidateRequest(table, output, shortlist, binary, scan=scan, **{**options, **longest})
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


def candidate_summary(report: CandidateReport) -> Iterator[str]:
    """Yield the summary of a list of candidates."""
    mean = report.candidates / max(1, report.phrases)
    yield (
        f"{report.phrases:,} phrases with {report.candidates:,} candidates ({mean:.1f} of a phrase), "
        f"{report.always:,} units are always candidates"
    )
    if report.unreadable:
        yield f"{report.unreadable:,} words were left out: they hold a character at which readers of the list split"
    yield from report.counts.sentences("their probabilities are used unchanged, in place of frequencies")
    if coverage := report.coverage:
        yield (
            f"{_percent(coverage.covered, coverage.tokens)} of the {coverage.tokens:,} reference tokens are candidates "
            f"of their sentence, {_percent(coverage.reachable, coverage.tokens)} of any; in "
            f"{_percent(coverage.whole, coverage.sentences)} of the {coverage.sentences:,} sentences all are"
        )
        yield (
            f"candidates of a sentence: mean {coverage.mean:.1f}, median {coverage.median:.0f}, 95th percentile "
            f"{coverage.percentile_95:.0f}"
        )


def lexicon_summary(report: LexiconReport) -> Iterator[str]:
    """Yield the summary of a lexicon."""
    yield (
        f"{report.pairs:,} term pairs, of {report.considered:,} entries that are frequent and probable enough; "
        f"{report.written:,} written"
    )
    if report.unreadable:
        yield f"{report.unreadable:,} pairs were left out: a side holds a tab or a character that ends lines"
    yield from report.counts.sentences("the minimum count and stop words do not apply to them, and no count is written")
    if quality := report.rightness:
        yield (
            f"{quality.pairs:,} of them have their source in the text; of {_percent(quality.right, quality.pairs)} the "
            f"target is in a translation, in {_percent(quality.right_places, quality.places)} of the "
            f"{quality.places:,} sentences"
        )


def dictionary_summary(report: DictionaryReport) -> Iterator[str]:
    """Yield the summary of dictionaries."""
    reverse = f"; {report.reverse_pairs:,} in the other direction" if report.reverse_pairs else ""
    yield f"{report.pairs:,} pairs of words{reverse}"
    if report.unreadable:
        yield f"{report.unreadable:,} pairs were left out: a word holds white space, at which Bicleaner splits lines"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.1f}%"
