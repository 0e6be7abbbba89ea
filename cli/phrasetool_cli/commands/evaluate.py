"""`phrasetool evaluate`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from phrasetool.smt.evaluation.metrics import MetricReport

_METRICS = ("bleu", "chrf", "ter")
_SIGNIFICANT = 0.05


class Metrics(click.ParamType[Any]):
    """Names with commas between."""

    name = "a,b"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> tuple[str, ...]:
        """Return the names, each once."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(part.strip().lower() for part in value.split(",")))
        for name in names:
            if name not in _METRICS:
                self.fail(f"{name!r} is not one of {', '.join(_METRICS)}", param, context)
        return names


_EXAMPLE = """\b
Example:
  phrasetool evaluate full.en pruned.en --reference test.en
  phrasetool evaluate full.en pruned.en --reference test.en --metrics bleu --paired approximate-randomization --json
  phrasetool evaluate demo-output/full.en demo-output/pruned.en --reference demo-output/engine/test.en
"""


@click.command(epilog=_EXAMPLE)
@click.argument("hypotheses", nargs=-1, required=True, metavar="HYPOTHESIS...")
@click.option("-r", "--reference", "references", multiple=True, required=True, metavar="FILE",
              help="The right translation, a line for a line; again for another one.")  # fmt: skip
@click.option("--metrics", type=Metrics(), default=",".join(_METRICS), show_default=True, metavar="NAMES",
              help="With commas between.")  # fmt: skip
@click.option("--tokenize", type=click.Choice(["none", "13a", "intl", "char", "zh"]), default="none", show_default=True,
              help="sacrebleu's tokenizer for BLEU; none: words are what spaces separate.")  # fmt: skip
@click.option("--paired", type=click.Choice(["bootstrap", "approximate-randomization"]), default="bootstrap",
              show_default=True, help="Test of each system against the first.")  # fmt: skip
@click.option("--samples", type=click.IntRange(1), metavar="N",
              help="Of the test.  [default: 1000 (bootstrap), 10000 (approximate-randomization)]")  # fmt: skip
@click.option("--seed", type=click.IntRange(1), default=12345, show_default=True, help="Of the samples.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    hypotheses: tuple[str, ...], references: tuple[str, ...], metrics: tuple[str, ...], tokenize: str, paired: str,
    samples: int | None, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Score the translations in one or more files; the first is the baseline that the others are compared with.

    sacrebleu does the scoring and the tests.  Files are plain or gzip, - is standard input.  The ± is half the width of
    the 95 % interval over bootstrap samples; p is the chance of a difference as large between systems equally good.
    """
    from phrasetool.smt.evaluation.metrics import evaluate

    if (*hypotheses, *references).count("-") > 1:
        raise click.UsageError("only one file can be standard input")
    texts = {path: _read_lines(path) for path in (*hypotheses, *references)}
    for path in hypotheses:
        for other in references:
            _check_lengths(path, len(texts[path]), other, len(texts[other]))
    reports = evaluate(
        [texts[path] for path in hypotheses], [texts[path] for path in references],
        metrics=metrics, tokenize=tokenize, test=paired, samples=samples, seed=seed,
    )  # fmt: skip
    notes = _notes(texts, references[0], tokenize)
    lines = len(texts[hypotheses[0]])
    if as_json:
        click.echo(json.dumps(_as_dict(hypotheses, references, lines, notes, reports), indent=2, ensure_ascii=False))
        return
    several = "s" * (len(references) > 1)
    click.echo(f"{lines:,} lines, {len(references)} reference{several} ({', '.join(references)})")
    for note in notes:
        click.echo(note)
    for report in reports:
        click.echo()
        for row in _table(report, hypotheses):
            click.echo(row.rstrip())
    if any((system.p_value or 1) < _SIGNIFICANT for report in reports for system in report.systems):
        click.echo(f"\n* p < {_SIGNIFICANT}")


def _read_lines(path: str) -> list[str]:
    """The lines of a file; bytes that are not UTF-8 stay distinct characters."""
    from moses_compat.files.streams import Input
    from phrasetool.errors import DataError

    with Input(path) as source:
        data = source.read_all()
        if not data:
            raise DataError(source.name, "the file has no lines")
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _check_lengths(path: str, lines: int, reference: str, expected: int) -> None:
    from moses_compat.files.streams import display_name
    from phrasetool.errors import DataError

    if lines != expected:
        raise DataError(
            display_name(path), f"has {lines:,} lines, but the reference {display_name(reference)} has {expected:,}"
        )


def _notes(texts: dict[str, list[str]], reference: str, tokenize: str) -> list[str]:
    """What a reader must know to compare the figures with others."""
    from phrasetool.smt.evaluation.metrics import text_form

    notes = []
    form = text_form(texts[reference])
    names = {"tokenised": "tokenised", "lower_cased": "lower-cased", "escaped": "escaped for Moses (&apos;)"}
    looks = [name for key, name in names.items() if getattr(form, key)]
    if tokenize == "none":
        notes.append("Text was scored as it is (--tokenize none): words are what spaces separate, case counts in BLEU.")
    else:
        notes.append(f"BLEU is of text that sacrebleu tokenised (--tokenize {tokenize}).")
    if looks:
        *first, last = looks
        what = f"{', '.join(first)} and {last}" if first else last
        notes.append(f"The reference looks {what}: do not compare with figures of text that is not.")
        if form.tokenised and tokenize != "none":
            notes.append("It is tokenised twice now; --tokenize none takes it as it is.")
    for path, lines in texts.items():
        other = text_form(lines)
        for key, name in names.items():
            if getattr(other, key) != getattr(form, key):
                yes, no = (path, reference) if getattr(other, key) else (reference, path)
                notes.append(f"Warning: {yes} looks {name}, {no} does not.")
        if any(not line.isascii() and _has_surrogates(line) for line in lines):
            notes.append(f"Warning: {path} is not UTF-8; its other bytes count as characters.")
    return notes


def _has_surrogates(line: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in line)


def _table(report: MetricReport, hypotheses: tuple[str, ...]) -> list[str]:
    names = [os.path.basename(path) for path in hypotheses]
    if len(set(names)) < len(names):
        names = list(hypotheses)
    if len(names) > 1:
        names[0] += " (baseline)"
    title = f"{report.name}, {'more' if report.higher_is_better else 'less'} is better"
    width = max(len(title), *(len(name) + 2 for name in names))
    compared = f"  {'difference':>10}  {'p':>7}" if len(hypotheses) > 1 else ""
    rows = [f"{title:<{width}}  {'score':>6}  {'95 %':>6}{compared}"]
    for name, system in zip(names, report.systems, strict=True):
        row = f"  {name:<{width - 2}}  {system.score:6.2f}  {'±' + format(system.interval, '.2f'):>6}"
        if system.p_value is not None:
            star = " *" if system.p_value < _SIGNIFICANT else ""
            row += f"  {system.difference:>+10.2f}  {system.p_value:7.4f}{star}"
        rows.append(row)
    return [*rows, f"  {report.signature}"]


def _as_dict(
    hypotheses: tuple[str, ...], references: tuple[str, ...], lines: int, notes: list[str], reports: list[MetricReport]
) -> dict[str, Any]:
    metrics = [
        {
            "name": report.name,
            "higher_is_better": report.higher_is_better,
            "signature": report.signature,
            "systems": [
                {"file": path, **asdict(system)} for path, system in zip(hypotheses, report.systems, strict=True)
            ],
        }
        for report in reports
    ]
    return {"schema_version": 1, "lines": lines, "references": list(references), "notes": notes, "metrics": metrics}
