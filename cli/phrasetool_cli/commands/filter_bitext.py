"""`phrasetool filter-bitext`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_inputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.options import allow_empty_option, engine_options, force_option
from phrasetool_cli.progress import TerminalWatch, say
from phrasetool_cli.shared.output_checks import check_outputs
from phrasetool_cli.shared.similarity.filter_judges import chosen_judge, judge_options
from phrasetool_cli.summaries import say_kept

if TYPE_CHECKING:
    from moses_compat.jobs.bitexts.filter_bitext import FilterReport, FilterRequest

_EXAMPLE = """\b
Example:
  phrasetool filter-bitext crawled.de crawled.en -m parallel -o kept.de kept.en
  phrasetool filter-bitext crawled.de crawled.en -m parallel -o kept.de.gz kept.en.gz --scores scores.tsv
  awk -F'\\t' '$1 >= 0.9 {print $4 > "sure.de"; print $5 > "sure.en"}' scores.tsv
  phrasetool filter-bitext crawled.de crawled.en --cross-train --keep 60% -o kept.de kept.en
  phrasetool filter-bitext crawled.de crawled.en --encoder LaBSE --threshold 0.7 -o kept.de kept.en
  phrasetool train --model parallel demo-output/corpus.zh demo-output/corpus.en -o demo-output/parallel
  phrasetool filter-bitext demo-output/corpus.zh demo-output/corpus.en -m demo-output/parallel  -o zh en
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@sections(
    judge_options,
    "What stays",
    click.option("--drop-copies", is_flag=True, help="Leave out pairs of two equal sentences."),
    "What is written",
    click.option("-o", "--output", "kept", nargs=2, required=True, metavar="SOURCE TARGET",
                 help="Where the pairs that stay are written, byte for byte as they were; `-` is standard output."),
    click.option("--scores", metavar="FILE",
                 help="Every pair, a line each: probability, kept or rejected, notes, source and target, with tabs "
                      "between."),
    click.option("--rejected", metavar="FILE",
                 help="The pairs that go: notes, probability, number of the line, source and target."),
    click.option("--explain", is_flag=True,
                 help="In --scores one more column: the probability without length, the mean over the lengths of other "
                      "pairs."),
    json_option,
    None,
    allow_empty_option,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    source: str, target: str, drop_copies: bool, kept: tuple[str, str],
    scores: str | None, rejected: str | None, explain: bool, json_file: str | None, allow_empty: bool, force: bool,
    threads: int, quiet: bool, **given: Any,
) -> None:  # fmt: skip
    """Keep the sentence pairs that are translations.

    SOURCE and TARGET are the two sides of a bitext, a sentence a line.  A classifier of sentence pairs (`train --model
    parallel`) says of each pair how probable it is that it is parallel; pairs below the threshold go, and those with an
    empty side or one of which the model knows no word.  If no pair stays, nothing is written, unless --force is given.

    Notes say why: `empty`, `unknown`, `probability`; `copy` is a pair of two equal sentences, which goes with
    --drop-copies alone; `long` is one of which the model saw the beginning.  The bitext streams through.  Finished
    scores are kept beside the first output, so that the same command goes on after an interruption.
    """
    from moses_compat.jobs.bitexts.cross_training import forget_classifiers
    from moses_compat.jobs.bitexts.filter_bitext import FilterRequest, filter_bitext

    inputs, outputs = [source, target], [*kept, scores, rejected]
    if inputs.count("-") > 1:
        raise click.UsageError("only one side can be standard input")
    if explain and scores is None:
        raise click.UsageError("--explain adds a column to --scores; name a file for it")
    check_outputs(inputs, outputs)
    document = json_document(json_file, inputs, outputs)
    check_inputs(inputs)
    watch = TerminalWatch(quiet)
    judge = chosen_judge(given, explain)
    request = FilterRequest(
        source, target, kept, judge.threshold, given["share"], scores, rejected, drop_copies, allow_empty, force,
        threads, judge.holds_text,
    )  # fmt: skip
    report = filter_bitext(request, judge.maker(request, watch), watch)
    fit = {"model_fit": report.fit.as_dict()} if report.fit else {}
    if given["cross_train"]:
        forget_classifiers(kept[0])
    facts = {"threshold": report.threshold, "signature": report.signature, "resumed": report.resumed}
    document({**report.counts.as_dict(), **facts, **fit})
    if not quiet:
        _tell(report, request, judge.probable)


def _tell(report: FilterReport, request: FilterRequest, probable: bool) -> None:
    counts = report.counts
    reasons = counts.reasons
    notes = [
        (reasons["probability"], f"score less than {report.threshold:g}"),
        (reasons["empty"], "have an empty side"),
        (reasons["unknown"], "have a side of which nothing is known"),
        (counts.copies, "are two equal sentences, " + ("and went" if request.drop_copies else "marked `copy`")),
        (counts.over_long, "are longer than the model reads; their ends were not seen"),
        (report.resumed, "were judged by an earlier run"),
    ]
    say_kept(counts.kept, counts.pairs, "pairs", notes)
    if probable and counts.kept:
        say(f"  expected precision {counts.certainty / counts.kept:.1%}, the mean probability of the pairs kept")
