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
    click.option("--demo", is_flag=True, help="Compile only the kernels of `phrasetool demo`, in half the time."),
    json_option,
    quiet_option,
)
def command(demo: bool, json_file: str | None, quiet: bool) -> None:
    """Precompile numba kernels.

    Run this once after an installation from source.  Wheels for Linux on x86-64 contain compiled kernels.  With a C
    compiler, builds a library that every command loads in milliseconds, next to the installed package or, if that is
    not writable, in the user's cache folder.  Without a C compiler, numba caches what it compiles.
    A library that is up to date is not built again.
    """
    from phrasetool.kernels.building import build_all, count_kernels

    document, watch = json_document(json_file), TerminalWatch(quiet)
    packages = ["phrasetool", "moses_compat"]
    with watch.items("compile", count_kernels(packages, demo), "kernel") as tick:
        built = build_all(packages, lambda: tick(1), demo, available_processors())
    for package, result in built.items():
        watch.say(f"{result.kernels} kernels of {package}: {result.place}")
    document({"packages": {package: vars(result) for package, result in built.items()}})
