"""Write docs/commands/, a page per command made from its help, and docs/options.md, a list of all options."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from phrasetool.text_splitting import split_words
from phrasetool_cli.command import SectionedCommand, fitted_examples
from phrasetool_cli.main import cli

FOLDER = Path(__file__).parent / "commands"
_NOTE = "<!-- Written by `make documents`. -->"
WIDTH = 80
# Command -> the guide that explains it.
GUIDES = {
    "prune": "guides/prune.md", "annotate": "guides/annotate.md", "augment": "guides/augment.md",
    "pivot": "guides/pivot.md", "export": "guides/export.md", "show": "guides/prune.md", "report": "guides/report.md",
    "inspect": "files.md", "convert": "files.md", "remove-orphans": "guides/prune.md",
    "train phrases": "guides/choosing-a-model.md", "train translator": "models/translator.md",
    "train classifier": "models/parallel.md", "train tagger": "guides/tag.md", "train syntax": "models/syntax.md",
    "train autoencoder": "models/mean-max.md", "train bert": "models/masked-lm.md",
    "evaluate-model": "guides/choosing-a-model.md", "neighbours": "guides/choosing-a-model.md",
    "reconstruct": "models/mean-max.md", "translate": "models/translator.md", "tag": "guides/tag.md",
    "align": "guides/without-moses.md", "extract": "guides/without-moses.md", "lm": "guides/without-moses.md",
    "moses-ini": "guides/moses/index.md", "binarize": "guides/moses/binary.md", "tune": "guides/without-moses.md",
    "decode": "guides/without-moses.md", "force-decode": "guides/choosing-a-model.md",
    "evaluate": "guides/without-moses.md", "rescore": "guides/rerank.md", "rerank": "guides/rerank.md",
    "filter-bitext": "guides/filter-bitext.md", "mine": "guides/mining.md", "evaluate-mining": "guides/mining.md",
    "improve": "guides/improve.md", "experiment": "guides/experiments.md", "demo": "tutorial.md",
    "compile": "install.md", "filter-pt": "guides/prune.md", "threshold-filter": "guides/prune.md",
    "ems-prune": "guides/moses/ems.md",
}  # fmt: skip


# Options whose help differs between commands -> a description that is correct for all of them.
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
    """Yield name, command and context of all commands; for a command group, those of its subcommands."""
    # A command caches the names of its help option from the first context that requests them.
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
    """Return a mapping from the longest name of each option to the commands that have it, with the option."""
    uses: dict[str, list[tuple[str, click.Option]]] = {}
    for name, command, context in commands():
        for parameter in command.get_params(context):
            if isinstance(parameter, click.Option) and not parameter.hidden and parameter.name != "help":
                uses.setdefault(max(parameter.opts, key=len), []).append((name, parameter))
    return dict(sorted(uses.items()))


def help_texts(uses: list[tuple[str, click.Option]]) -> set[str]:
    """Return the distinct help texts of an option in its commands, without defaults."""
    return {re.sub(r"  \[default: .*", "", option.help or "", flags=re.DOTALL) for _, option in uses}


def options_page() -> str:
    """Return the page with all options; a list, because it is more readable on a phone than a table."""
    count = len(list(commands()))
    rows = []
    for name, uses in options().items():
        meaning = MEANINGS.get(name) or help_texts(uses).pop()
        links = (
            "all"
            if len(uses) > count - 3
            else ", ".join(f"[`{command}`](commands/{file_of(command)}#{name})" for command, _ in uses)
        )
        rows.append(f"* `{name}`: {_prose(meaning)}<br>{links}")
    parts = [
        "# Options",
        "<!-- Written by `make documents`. -->",
        "All options and the commands that have them. An option has the same meaning in all commands;\n"
        "[Commands](commands/index.md) has the defaults and details. The one-letter options of `filter-pt` are\n"
        "those of Moses' program.",
        "\n".join(rows),
    ]
    return "\n\n".join(parts) + "\n"


def help_of(*words: str) -> str:
    """Return the output of `phrasetool WORDS --help`."""
    result = CliRunner().invoke(cli, [*words, "--help"], prog_name="phrasetool", terminal_width=WIDTH)
    if result.exit_code:
        raise SystemExit(f"phrasetool {' '.join(words)} --help failed: {result.output}")
    return click.unstyle(result.output).rstrip()


def _prose(text: str) -> str:
    """Return a help text as Markdown: characters that Markdown would interpret are escaped, except in code."""
    parts = re.split(r"(`[^`]*`)", " ".join(split_words(text.replace("\n", " "))))
    # Python-Markdown does not support a backslash escape of <.
    return "".join(
        part if number % 2 else re.sub(r"([*|$\\])", r"\\\1", part).replace("<", "&lt;")
        for number, part in enumerate(parts)
    )


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text as Markdown; paragraphs marked for click as preformatted become code."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b\n"):
            yield f"```text\n{textwrap.dedent(paragraph.removeprefix(chr(8) + chr(10)))}\n```"
        else:
            yield _prose(paragraph)


def _epilog(text: str) -> Iterator[str]:
    """Yield the titled blocks at the end of a help text as Markdown sections; those with examples are shell code."""
    for block in inspect.cleandoc(text).split("\b\n")[1:]:
        heading, _, indented = block.partition(":\n")
        lines = textwrap.dedent(indented).strip("\n").split("\n")
        code = [fitted_examples(line, WIDTH) for line in lines] if heading == "Example" else lines
        kind = "sh" if heading == "Example" else "text"
        yield "\n".join([f"## {heading}", "", f"```{kind}", *code, "```"])


def _anchor(names: str) -> str:
    """Return the anchor of an option: its longest name."""
    return max(re.findall(r"(?:^|, )(--?\w[\w-]*)", names.partition(" / ")[0]), key=len)


def _option(names: str, text: str) -> str:
    return f'* <a id="{_anchor(names)}"></a>`{names}`: {_prose(text)}'


def file_of(name: str) -> str:
    """Return the file of a command's page."""
    return f"{name.replace(' ', '-')}.md"


def command_page(name: str, command: click.Command, context: click.Context) -> str:
    """Return the page of a command: usage, description, an anchor per option, and examples."""
    usage = click.unstyle(command.get_usage(context))
    parts = [f"# {name}", _NOTE]
    guide = GUIDES[name]
    title = (FOLDER.parent / guide).read_text("utf-8").partition("\n")[0].removeprefix("# ")
    parts.append(f"Guide: [{title}](../{guide}).")
    parts += [f"```text\n{usage}\n```", *_paragraphs(command.help or "")]
    if isinstance(command, SectionedCommand):
        rows = command.sections(context)
    else:
        parameters = (parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option))
        records = (option.get_help_record(context) for option in parameters)
        rows = {"Options": [record for record in records if record is not None]}
    named = {_anchor(names) for records in rows.values() for names, _ in records}
    rest = [
        record
        for option in command.get_params(context)
        if isinstance(option, click.Option) and max(option.opts, key=len) not in named
        if (record := click.Option.get_help_record(option, context)) is not None
    ]
    if rest:
        rows["Options of other losses and architectures"] = rest
    for title, options_of_section in rows.items():
        parts.append(f"## {title}")
        parts.append("\n".join(_option(*row) for row in options_of_section))
    parts += _epilog(command.epilog or "")
    return "\n\n".join(parts) + "\n"


def overview_page() -> str:
    """Return the page that lists the commands in the groups of the help."""
    parts = [
        "# Commands", _NOTE,
        "Each page has what `phrasetool COMMAND --help` prints, with a link to each option. Options may stand anywhere "
        "behind the command's name. [Options](../options.md) lists all options with their commands; [The command\n"
        "line](../command-line.md) describes what all commands have in common.",
    ]  # fmt: skip
    kinds: dict[str, list[str]] = {}
    for name, command, _ in commands():
        group, _, kind = name.partition(" ")
        if kind:
            summary = _prose(command.get_short_help_str(WIDTH))
            kinds.setdefault(group, []).append(f"    * [`{name}`]({file_of(name)}): {summary}")
    for title, summaries in cli.titled.items():
        parts.append(f"## {title}")
        rows = []
        for name, summary in summaries.items():
            rows.append(f"* `{name}`: {summary}" if name in kinds else f"* [`{name}`]({file_of(name)}): {summary}")
            rows += kinds.get(name, [])
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Return all pages of the folder by their file names."""
    return {"index.md": overview_page()} | {
        file_of(name): command_page(name, command, context) for name, command, context in commands()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    texts = pages()
    for stale in {path.name for path in FOLDER.iterdir()} - set(texts):
        (FOLDER / stale).unlink()
    for file, content in texts.items():
        (FOLDER / file).write_text(content, "utf-8")
    (FOLDER.parent / "options.md").write_text(options_page(), "utf-8")
