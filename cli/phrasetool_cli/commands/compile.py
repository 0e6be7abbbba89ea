"""`phrasetool compile`."""

from __future__ import annotations

import click

from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import available_processors, json_document, json_option, quiet_option
from phrasetool_cli.progress import TerminalWatch

_EXAMPLE = """\b
Example:
  phrasetool compile
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@sections(
    None,
    click.option("--demo", is_flag=True, help="Only kernels that `phrasetool demo` calls, in half the time."),
    json_option,
    quiet_option,
)
def command(demo: bool, json_file: str | None, quiet: bool) -> None:
    """Precompile numba kernels.

    Needed once after an installation from source.  Wheels for Linux on x86-64 bring their kernels compiled.  With a C
    compiler a library is made that every command loads in milliseconds, next to the installed package or, where that
    cannot be written, in the user's cache folder.  Without one numba keeps what it compiles.
    A library that is current is left alone.
    """
    from phrasetool.kernels.building import build_all, count_kernels

    document, watch = json_document(json_file), TerminalWatch(quiet)
    packages = ["phrasetool", "moses_compat"]
    with watch.items("compile", count_kernels(packages, demo), "kernel") as tick:
        built = build_all(packages, lambda: tick(1), demo, available_processors())
    for package, made in built.items():
        watch.say(f"{made.kernels} kernels of {package}: {made.place}")
    document({"packages": {package: vars(made) for package, made in built.items()}})
