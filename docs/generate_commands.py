"""Write docs/commands.md, the help of every command as it is printed, and docs/options.md, a table of all options."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    "ems-prune": "guides/moses/ems.md", "annotate": "guides/annotate.md",
    "report": "guides/report.md", "inspect": "files.md", "convert": "files.md",
    "align": "guides/without-moses.md", "extract": "guides/without-moses.md", "lm": "guides/without-moses.md",
    "moses-ini": "guides/moses/index.md", "binarize": "guides/moses/binary.md", "tune": "guides/without-moses.md",
    "decode": "guides/without-moses.md", "force-decode": "guides/choosing-a-model.md",
    "evaluate": "guides/without-moses.md", "experiment": "guides/experiments.md",
    "neighbours": "guides/choosing-a-model.md", "reconstruct": "models/mean-max.md",
    "translate": "models/translator.md", "demo": "tutorial.md", "compile": "install.md",
}  # fmt: skip


# Options whose help differs between commands, and what they mean in all of them.
MEANINGS = {
    "--architecture": "Network architecture.", "--batch-size": "Examples per update.",
    "--bitext": "Bitext of the table: source and target.",
    "--dev": "Development set: source and target, or reference.",
    "--device": "Device: cpu, cuda or auto.", "--dimension": "Size of a phrase or target vector.",
    "--distortion-limit": "Maximum words of a jump; -1: any, up to 63.", "--dropout": "Share of components dropped.",
    "--encoder-store": "Folder of stored vectors.", "--epochs": "Passes over the training data.",
    "--explain": "Also write the parts of a score.", "--feed-forward": "Units of feed-forward layers.",
    "--forced-pairs": "Pairs from `force-decode --leave-one-out`.", "--format": "File format of the output.",
    "--heads": "Attention heads.", "--hidden": "Units of a hidden layer.",
    "--index": "Stored index.",
    "--hidden-words": "Share of words read by subword features only.",
    "--language": "Language of a text, as the tagger names it.",
    "--language-bitext": "Two languages, each with its side of a bitext.",
    "--languages": "Languages of both sides: SOURCE,TARGET.", "--layers": "Number of layers.",
    "--learning-rate": "Step size.", "--limit": "Maximum number of examples.", "--loss": "Training loss.",
    "--lm": "Language model, ARPA text or a binary file of kenlm.",
    "--margin": "Margin between the true partner and a negative one.", "--max-length": "Maximum words of a side.",
    "--memory": "Memory before temporary files are used.", "--min-count": "Rarer words are unknown.",
    "--min-pair-count": "Drop pairs with a smaller joint count.", "--min-probability": "Drop less probable entries.",
    "--model": "Model folder.", "--monolingual": "Text of one language, without translations.",
    "--moses-ini": "moses.ini of the table, or of the decoder.",
    "--moses-ini-out": "Write the ini here with the new table in place of the old one.",
    "--n-best-list": "Write an n-best list in Moses' format: file and size.", "--name": "Feature name in the ini.",
    "--negatives": "Negative examples of each pair.", "--output": "Output file or folder.",
    "--patience": "Stop after N passes without an improvement.", "--precision": "float32 or bfloat16.",
    "--preset": "Named set of sizes and settings.", "--reference": "Reference translation; repeatable.",
    "--reasons": "Parquet file with a row for each rejected entry.",
    "--rejected": "Write what is removed here.", "--reordering-out": "Write the reordering table here.",
    "--reordering-table": "Reordering table that is read.", "--resume": "Continue an interrupted run.",
    "--scale": "Scale on which similarities are written.", "--schedule": "Schedule of the step size.",
    "--seed": "Random seed.", "--similarity-columns": "Score columns of the table with similarities.",
    "--smoothing": "Smoothing of phrase translation probabilities.",
    "--sort": "Sort tables first, as Moses does (LC_ALL=C).", "--stack": "Hypotheses per stack.",
    "--table": "Phrase table to use.", "--table-limit": "Entries per source phrase; 0: all.",
    "--tagger": "Folder of a part-of-speech tagger.", "--target-text": "Target text to train word vectors on.",
    "--target-vectors": "File of target word vectors.", "--threads": "Worker threads.",
    "--threshold": "Score below which entries or pairs are removed.", "--to": "Target format.",
    "--units": "Size of a hidden state.", "--vocabulary-size": "Maximum size of the vocabulary.",
    "--word-units": "Size of a word vector.",
}  # fmt: skip


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """All commands, and the kinds of those that are groups: name, command and context."""
    # A command keeps the names of its help option from the first context that asks for it.
    with cli.make_context("phrasetool", [], resilient_parsing=True) as overview:
        for name in cli.list_commands(overview):
            command = cli.get_command(overview, name)
            assert command is not None
            with click.Context(command, overview, info_name=name, **command.context_settings) as context:
                if not isinstance(command, click.Group):
                    yield name, command, context
                    continue
                for kind in command.list_commands(context):
                    inner = command.get_command(context, kind)
                    assert inner is not None
                    with click.Context(inner, context, info_name=kind, **inner.context_settings) as nested:
                        yield f"{name} {kind}", inner, nested


def options() -> dict[str, list[tuple[str, click.Option]]]:
    """Longest name of an option -> commands that have it, with the option."""
    found: dict[str, list[tuple[str, click.Option]]] = {}
    for name, command, context in commands():
        for parameter in command.get_params(context):
            if isinstance(parameter, click.Option) and not parameter.hidden and parameter.name != "help":
                found.setdefault(max(parameter.opts, key=len), []).append((name, parameter))
    return dict(sorted(found.items()))


def help_texts(uses: list[tuple[str, click.Option]]) -> set[str]:
    """The help of an option in its commands, without defaults."""
    return {re.sub(r"  \[default: .*", "", option.help or "", flags=re.DOTALL) for _, option in uses}


def options_page() -> str:
    """The table of all options."""
    every = len(list(commands()))
    rows = []
    for name, uses in options().items():
        meaning = MEANINGS.get(name) or help_texts(uses).pop()
        where = "all" if len(uses) > every - 3 else ", ".join(f"`{command}`" for command, _ in uses)
        rows.append(f"| `{name}` | {meaning.replace('|', '&#124;')} | {where} |")
    parts = [
        "# Options",
        "<!-- Written by `make documents`. -->",
        "All options and the commands that have them. An option has the same meaning in all commands;\n"
        "[Commands](commands.md) has the defaults and details. The one-letter options of `filter-pt` are\n"
        "those of Moses' program.",
        "\n".join(["| option | meaning | commands |", "|---|---|---|", *rows]),
    ]
    return "\n\n".join(parts) + "\n"


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
    (PAGE.parent / "options.md").write_text(options_page(), "utf-8")
