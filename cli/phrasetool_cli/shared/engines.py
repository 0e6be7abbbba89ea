"""`--engine` of commands whose work a cluster can do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from phrasetool_cli.command import sections

if TYPE_CHECKING:
    from phrasetool.cluster.ray_runner import RayRunner

cluster_options = sections(
    click.option("--engine", type=click.Choice(["threads", "ray"]), default="threads",
                 help="Who works: threads of this process, or as many processes of a Ray cluster, which begins on this "
                      "machine if --address names none.  The output is the same."),
    click.option("--address", metavar="HOST:PORT", help="Of the Ray cluster; `auto` for one that runs here."),
)  # fmt: skip


def chosen_runner(engine: str, address: str | None, threads: int) -> RayRunner | None:
    """What has work done; None for threads.

    Args:
        engine, address: as given.
        threads: of this process, or processes of a cluster that begins here.

    Raises:
        click.UsageError: an address without a cluster.
        ModuleNotFoundError: Ray is not installed.
        PhraseToolError: there is no cluster at the address.
    """
    if engine == "threads":
        if address is not None:
            raise click.UsageError("--address is for --engine ray")
        return None
    # Ray counts who uses it, unless told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from phrasetool.cluster.ray_runner import RayRunner

    return RayRunner(address, threads)
