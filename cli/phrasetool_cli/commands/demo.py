"""`phrasetool demo`."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import click

from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.json_output import STANDARD, json_document, json_option
from phrasetool_cli.options import quiet_option

_EXAMPLE = """\b
Example:
  phrasetool demo demo-output
  phrasetool demo --files try && phrasetool annotate try/engine/phrase-table.gz -m try/model -o - | head -3
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("folder", default="demo-output", type=click.Path(path_type=Path))
@sections(
    None,
    click.option("--files", is_flag=True, help="Only write a table, an engine and a model (seconds)."),
    json_option,
    quiet_option,
)
def command(folder: Path, files: bool, json_file: str | None, quiet: bool) -> None:
    """Run the whole workflow on a small corpus.

    Runs some twenty commands and says what each of them shows.  Everything they make goes to FOLDER, demo-output if
    none is named: one that is new or empty, or that the demo made before.  It takes a minute or two.
    """
    from phrasetool_cli.demo.steps import Demo

    document = json_document(json_file)
    # The document takes the place of all text there.
    silent = quiet or json_file == STANDARD
    demo = Demo(folder, silent)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere if silent else sys.stdout):
        demo.files() if files else demo.whole()
    made = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    document({"folder": str(folder), "files": made, "commands": demo.commands})
