"""`phrasetool demo`."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import click

from phrasetool_cli.shared.flags import quiet_option
from phrasetool_cli.shared.sections import SectionedCommand, sections

_EXAMPLE = """\b
Example:
  phrasetool demo demo-output
  phrasetool demo --files try && phrasetool annotate try/engine/phrase-table.gz -m try/model -o - | head -3
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("folder", default="demo-output", type=click.Path(path_type=Path))
@sections(
    None,
    click.option("--files", is_flag=True, help="Only make a table, an engine and a model to try commands on: seconds."),
    quiet_option,
)
def command(folder: Path, files: bool, quiet: bool) -> None:
    """Show the whole way on a small corpus, from text to BLEU.

    Runs some twenty commands and says what each of them shows.  Everything they make goes to FOLDER, demo-output if
    none is named: one that is new or empty, or that the demo made before.  It takes a minute or two.
    """
    from phrasetool_cli.demo.steps import Demo

    demo = Demo(folder, quiet)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere if quiet else sys.stdout):
        demo.files() if files else demo.whole()
