"""`phrasetool report`."""

from __future__ import annotations

import click

from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import dev_option, engine_options, json_document, json_option, output_option, seed_option
from phrasetool_cli.progress import TerminalWatch, say

_EXAMPLE = """\b
Example:
  phrasetool report phrase-table.gz -m phrasetool-model -o table.html
  phrasetool report phrase-table.gz --moses-ini moses.ini --dev dev.de dev.en --compare small.gz -o table.html
  phrasetool report demo-output/engine/phrase-table.gz -m demo-output/model -o table.html
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@sections(
    "Inputs of modules",
    click.option("-m", "--model", "model_folder", metavar="FOLDER", help="Measure similarities with this model."),
    click.option("--moses-ini", "ini", metavar="FILE", help="Check whether TABLE fits this moses.ini."),
    click.option("--bitext", nargs=2, metavar="SOURCE TARGET", help="Check whether TABLE was made from this bitext."),
    dev_option("Measure the coverage of a development set."),
    click.option("--compare", "small", metavar="SMALL", help="Show what the pruned table SMALL lacks."),
    "Output",
    output_option("Write the page here."),
    seed_option,
    None,
    json_option,
    engine_options,
)  # fmt: skip
def command(
    table: str, model_folder: str | None, ini: str | None, bitext: tuple[str, str] | None,
    development: tuple[str, str] | None, small: str | None, output: str, seed: int, json_file: str | None, threads: int,
    quiet: bool,
) -> None:  # fmt: skip
    """Write a report about a phrase table as one HTML page.

    TABLE is a phrase table in text form, gzip or not.  The page has a module for each aspect, with a verdict (good,
    check or problem) and a sentence of advice: size, malformed lines, entries per source, counts, phrase lengths,
    memory, and a sample of entries that can be searched and sorted.  More options add more modules; a module whose
    input is missing names the option it needs.

    Verdicts do not affect the exit code; scripts can read them from --json.
    """
    from moses_compat.files.paths import STANDARD
    from moses_compat.files.streams import Output

    inputs = [table, ini, small, *(bitext or ()), *(development or ())]
    if STANDARD in inputs:
        raise click.UsageError("inputs must be files, which are read more than once, not standard input")
    check_inputs(inputs)
    check_outputs(inputs, [output])
    document = json_document(json_file, inputs, [output])

    from moses_compat.table_report.measuring import ReportRequest
    from moses_compat.table_report.page import report_table

    request = ReportRequest(table, model_folder, ini, bitext, development, small, seed, threads)
    with Output(output) as out:
        report = report_table(request, TerminalWatch(quiet))
        out.write_text(report.html.encode("utf-8"))
    document({"table": table, **report.as_dict()})
    if not quiet:
        say(f"{'' if output == STANDARD else f'{output}: '}{report.summary}")
