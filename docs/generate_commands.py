"""Write docs/commands.md: the help of every command, as it is printed."""

from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from phrasetool_cli.main import cli

PAGE = Path(__file__).parent / "commands.md"
WIDTH = 80
# Where a command is explained at length.
GUIDES = {
    "train": "guides/choosing-a-model.md", "evaluate-model": "guides/choosing-a-model.md", "prune": "guides/prune.md",
    "remove-orphans": "guides/prune.md", "filter-pt": "guides/prune.md", "threshold-filter": "guides/prune.md",
    "ems-prune": "guides/moses/ems.md", "annotate": "guides/annotate.md", "inspect": "files.md", "convert": "files.md",
    "align": "guides/without-moses.md", "extract": "guides/without-moses.md", "lm": "guides/without-moses.md",
    "moses-ini": "guides/moses/index.md", "binarize": "guides/moses/binary.md", "tune": "guides/without-moses.md",
    "decode": "guides/without-moses.md", "force-decode": "guides/choosing-a-model.md",
    "evaluate": "guides/without-moses.md", "experiment": "guides/experiments.md",
    "neighbours": "guides/choosing-a-model.md", "reconstruct": "models/mean-max.md",
    "translate": "models/translator.md", "demo": "tutorial.md", "compile": "install.md",
}  # fmt: skip


def help_of(*words: str) -> str:
    """What `phrasetool WORDS --help` prints."""
    done = CliRunner().invoke(cli, [*words, "--help"], prog_name="phrasetool", terminal_width=WIDTH)
    if done.exit_code:
        raise SystemExit(f"phrasetool {' '.join(words)} --help failed: {done.output}")
    return click.unstyle(done.output).rstrip()


def page() -> str:
    """The whole page."""
    context = click.Context(cli, info_name="phrasetool")
    parts = [
        "# Commands",
        "<!-- Written by `make documents`. -->",
        "What `--help` prints. Options may stand anywhere behind the command's name.",
        f"```text\n{help_of()}\n```",
    ]
    for name in cli.list_commands(context):
        parts.append(f"## {name}")
        if name in GUIDES:
            title = (PAGE.parent / GUIDES[name]).read_text("utf-8").partition("\n")[0].removeprefix("# ")
            parts.append(f"More in [{title}]({GUIDES[name]}).")
        parts.append(f"```text\n{help_of(name)}\n```")
        command = cli.get_command(context, name)
        for kind in command.list_commands(context) if isinstance(command, click.Group) else ():
            parts.append(f"### {name} {kind}")
            parts.append(f"```text\n{help_of(name, kind)}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
