"""`phrasetool evaluate-mining`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import json_document, json_option, quiet_option

if TYPE_CHECKING:
    from phrasetool.bitext.mining_quality import MiningPoint, MiningQuality

_EXAMPLE = """\b
Example:
  phrasetool evaluate-mining mined.tsv gold.tsv
  phrasetool evaluate-mining mined.tsv gold.tsv --figure curve.svg --json figures.json
  paste demo-output/corpus.zh demo-output/corpus.en > demo-output/gold.tsv
  phrasetool evaluate-mining demo-output/mined.tsv demo-output/gold.tsv
"""
_FORMS = ("svg", "png", "pdf")


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("mined")
@click.argument("gold")
@sections(
    "Output",
    click.option("--figure", metavar="FILE",
                 help="Plot precision, recall and F1 by threshold (.svg, .png, .pdf)."),
    json_option,
    None,
    quiet_option,
)  # fmt: skip
def command(mined: str, gold: str, figure: str | None, json_file: str | None, quiet: bool) -> None:
    """Measure mined sentence pairs against a gold standard.

    MINED is the output of `phrasetool mine`: score, source and target, separated by tabs.  GOLD has all true pairs,
    source and target separated by a tab: sentences, or their names after `mine --ids`.

    Prints two rows of precision, recall and F1: of all pairs of MINED, and at the threshold with the best F1.
    Choose a threshold on other texts than those you report.  Accuracy@1 is the share of gold sources whose best target
    in MINED is correct; to measure it, mine with --retrieval forward and without a threshold.
    """
    from moses_compat.files.paths import display_name
    from moses_compat.files.streams import Output
    from moses_compat.jobs.mine import read_gold, read_mined
    from phrasetool.bitext.mining_quality import evaluate_mining
    from phrasetool_cli.progress import TerminalWatch

    form = (figure or ".svg").rpartition(".")[2].lower()
    if form not in _FORMS:
        raise click.UsageError(f"--figure {figure}: expected a name that ends with .svg, .png or .pdf")
    check_outputs([mined, gold], [figure])
    document = json_document(json_file, [mined, gold], [figure])
    pairs = read_mined(mined)
    if not len(pairs.scores):
        TerminalWatch(quiet).warn(f"{display_name(mined)} holds no pairs: nothing was mined")
    quality = evaluate_mining(pairs.scores, pairs.pairs, read_gold(gold))
    if figure is not None:
        from moses_compat.experiments.report.figures import mining_figure

        with Output(figure) as out:
            out.write(mining_figure(quality, form))
    document({"mined_file": mined, "gold_file": gold, **asdict(quality)})
    if json_file != "-" and not quiet:
        click.echo("\n".join(_rows(quality)))


def _rows(quality: MiningQuality) -> list[str]:
    rows = [
        f"{quality.mined:,} pairs mined, {quality.gold:,} right ones, accuracy@1 {quality.accuracy_at_1:.1%}",
        f"{'':14}  {'threshold':>10}  {'pairs':>9}  {'precision':>9}  {'recall':>7}  {'F1':>6}",
        _row("all pairs", quality.all),
    ]
    return rows + ([_row("best threshold", quality.best)] if quality.best else [])


def _row(name: str, point: MiningPoint) -> str:
    return (
        f"{name:14}  {point.threshold:10.4f}  {point.taken:9,}  {100 * point.precision:9.2f}  "
        f"{100 * point.recall:7.2f}  {100 * point.f1:6.2f}"
    )
