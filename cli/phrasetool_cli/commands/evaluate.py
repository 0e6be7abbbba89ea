"""`phrasetool evaluate`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import refuse_two_standard_inputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import json_document, json_option, quiet_option
from phrasetool_cli.parameter_types import FiniteRange, names_of

if TYPE_CHECKING:
    from phrasetool.smt.evaluation.metrics import MetricReport, SystemScore

_METRICS = ("bleu", "chrf", "ter")
# Maximum product of the words of a line and those of its reference: TER takes 18 bytes for each pair.
_MOST_EDIT_CELLS = 10**8


_EXAMPLE = """\b
Example:
  phrasetool evaluate full.en pruned.en --reference test.en --margin 0.3
  phrasetool evaluate full.en pruned.en --reference test.en --metrics bleu --paired approximate-randomization --json
  phrasetool evaluate a.1.en a.2.en a.3.en b.1.en b.2.en b.3.en --runs 3 --reference test.en
  phrasetool evaluate demo-output/full.en demo-output/pruned.en --reference demo-output/engine/test.en
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("hypotheses", nargs=-1, required=True, metavar="HYPOTHESIS...")
@sections(
    "Input",
    click.option("-r", "--reference", "references", multiple=True, required=True, metavar="FILE",
                 help="Reference translation; repeatable."),
    click.option("--metrics", type=names_of(_METRICS), default=",".join(_METRICS), metavar="NAMES",
                 help="Metrics, comma-separated."),
    click.option("--tokenize", type=click.Choice(["none", "13a", "intl", "char", "zh"]), default="none",
                 help="sacrebleu's tokenizer for BLEU; none: split at spaces."),
    click.option("--runs", type=click.IntRange(1), default=1, metavar="N",
                 help="Consecutive files of each system, one for each tuning run."),
    "Significance tests",
    click.option("--paired", type=click.Choice(["bootstrap", "approximate-randomization"]), default="bootstrap",
                 help="Paired test of each system against the first."),
    click.option("--samples", type=click.IntRange(2), metavar="N",
                 help="Samples of the test.  [default: 1000, or 10000 (approximate-randomization)]"),
    click.option("--margin", type=FiniteRange(0, min_open=True), metavar="POINTS",
                 help="Report non-inferiority: whether a loss of POINTS is excluded."),
    click.option("--seed", type=click.IntRange(1), default=12345, help="Random seed of the samples."),
    None,
    json_option,
    quiet_option,
)  # fmt: skip
def command(
    hypotheses: tuple[str, ...], references: tuple[str, ...], metrics: tuple[str, ...], tokenize: str, runs: int,
    paired: str, samples: int | None, margin: float | None, seed: int, json_file: str | None, quiet: bool,
) -> None:  # fmt: skip
    """Score translations (BLEU, chrF, TER) and test differences.

    The first of several files is the baseline that the others are compared with.  Scores and tests are computed with
    sacrebleu.  Files are plain or gzip, - is standard input.  The ± is half the width of the 95 % interval over
    bootstrap samples; p is the probability of a difference this large between equally good systems.  The p of the
    bootstrap is sacrebleu's, from absolute differences, and may be much smaller than the interval suggests; if the
    interval contains 0, no star is shown.

    Differences are those of unrounded scores.  Their intervals are percentiles, and need not be symmetric around them.

    With --margin, a system is non-inferior to the baseline in a metric if the 95 % interval of the difference excludes
    a loss of POINTS.  The margin is in points of each metric: choose it before the test, for the metric that decides.

    Tuning runs of one system with different random seeds give different scores.  With --runs 3, the first three files
    are the baseline after three tuning runs, the next three another system; runs of the same seed belong together.
    Scores are means, and s.d. is the standard deviation over the runs.  The interval of a difference is over sentences
    and runs, ± and p are over sentences only.
    """
    from moses_compat.corpora.texts import read_text_lines
    from moses_compat.files.paths import display_name
    from phrasetool.errors import DataError
    from phrasetool.smt.evaluation.metrics import (
        SIGNIFICANT,
        any_significant,
        equal_runs,
        evaluate,
        score_lines,
        score_notes,
        unlike_references,
    )
    from phrasetool.text_splitting import split_words

    refuse_two_standard_inputs([*hypotheses, *references])
    if len(set(hypotheses)) < len(hypotheses):
        raise click.UsageError("a file of hypotheses is named twice; expected a file for each system")
    if len(hypotheses) % runs:
        raise click.UsageError(f"--runs {runs}: {len(hypotheses)} files are not {runs} of each system")
    if len(hypotheses) == runs:
        another = "comparing systems; give the translations of another one"
        refuse_unused({"paired": another, "margin": another})
    document = json_document(json_file, [*hypotheses, *references])
    texts = {path: read_text_lines(path) for path in (*hypotheses, *references)}
    for path in hypotheses:
        for reference in references:
            _check_lengths(path, len(texts[path]), reference, len(texts[reference]))
    for path in references:
        if not any(map(split_words, texts[path])):
            raise DataError(display_name(path), "has no words; expected one translation per line")
    if "ter" in metrics:
        _refuse_long_lines(texts, hypotheses, references)
    reports = evaluate(
        [texts[path] for path in hypotheses], [texts[path] for path in references],
        metrics=metrics, tokenize=tokenize, test=paired, samples=samples, seed=seed, runs=runs,
    )  # fmt: skip
    notes = score_notes(texts, references, tokenize)
    translations = {path: texts[path] for path in hypotheses}
    notes += unlike_references(reports, translations, [texts[path] for path in references])
    notes += equal_runs(translations, runs)
    lines = len(texts[hypotheses[0]])
    document(_as_dict(hypotheses, references, runs, lines, notes, reports, margin))
    if json_file == "-":
        return
    several = "s" * (len(references) > 1)
    click.echo(f"{lines:,} lines, {len(references)} reference{several} ({', '.join(references)})")
    for note in notes:
        if not quiet or note.startswith("Warning: "):
            click.echo(note)
    for report in reports:
        click.echo()
        for row in score_lines(report, hypotheses[::runs], margin):
            click.echo(row)
    if any_significant(reports):
        click.echo(f"\n* p < {SIGNIFICANT}, and an interval without 0")


def _check_lengths(path: str, lines: int, reference: str, expected: int) -> None:
    from moses_compat.files.paths import display_name
    from phrasetool.errors import DataError

    if lines != expected:
        raise DataError(
            display_name(path), f"has {lines:,} lines, but the reference {display_name(reference)} has {expected:,}"
        )


def _refuse_long_lines(
    texts: Mapping[str, Sequence[str]], hypotheses: Sequence[str], references: Sequence[str]
) -> None:
    """Refuse lines whose table of edit distances in sacrebleu, a cell for each pair of words, is too large for memory.

    Raises:
        DataError: a line and its reference have too many words.
    """
    from moses_compat.files.paths import display_name
    from phrasetool.errors import DataError
    from phrasetool.text_splitting import split_words

    for path, reference_path in itertools.product(hypotheses, references):
        for number, (line, reference) in enumerate(zip(texts[path], texts[reference_path], strict=True), 1):
            # A word and the space after it have two characters or more.
            if (len(line) + 1) * (len(reference) + 1) <= 4 * _MOST_EDIT_CELLS:
                continue
            words, of_reference = len(split_words(line)), len(split_words(reference))
            if words * of_reference > _MOST_EDIT_CELLS:
                message = (
                    f"the line has {words:,} words and its reference {of_reference:,}, too many for TER; expected a "
                    "sentence per line; --metrics bleu,chrf leaves TER out"
                )
                raise DataError(display_name(path), message, number)


def _as_dict(
    hypotheses: tuple[str, ...], references: tuple[str, ...], runs: int, lines: int, notes: list[str],
    reports: list[MetricReport], margin: float | None,
) -> dict[str, Any]:  # fmt: skip
    def facts(first: int, report: MetricReport, system: SystemScore) -> dict[str, Any]:
        verdict = {}
        if margin is not None and system.difference is not None:
            verdict["non_inferior"] = report.is_non_inferior(system, margin)
        files = hypotheses[first : first + runs]
        return {"file": files[0], "files": files, **asdict(system), **verdict}

    metrics = [
        {
            "name": report.name,
            "higher_is_better": report.higher_is_better,
            "signature": report.signature,
            "systems": [facts(runs * i, report, system) for i, system in enumerate(report.systems)],
        }
        for report in reports
    ]
    scores = {"lines": lines, "references": list(references), "notes": notes, "metrics": metrics}
    return scores if margin is None else {**scores, "margin": margin}
