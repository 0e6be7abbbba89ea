import click

from phrasetool_cli.command import SectionedCommand, give_title, sections
from phrasetool_cli.main import COMMANDS, cli

TEXT = """Usage: thing [OPTIONS] FILE

  Do it.

First:
  --a N
  --b TEXT  Second letter.

Second:
  --c TEXT

General:
  --d TEXT
  --help    Show this message and exit.
"""


def text_of(command):
    with click.Context(command, info_name="thing") as context:
        return command.get_help(context)


def test_options_are_listed_under_their_titles():
    some = sections("Lost", click.option("--c"))

    @click.command(cls=SectionedCommand)
    @click.argument("file")
    @sections(
        "First",
        click.option("--a", type=int),
        click.option("--b", help="Second letter."),
        "Second",
        some,
        None,
        click.option("--d"),
    )
    def command(file, a, b, c, d):
        """Do it."""

    assert text_of(command).rstrip() == TEXT.rstrip()


def test_none_keeps_the_title_and_titles_may_repeat():
    some = sections("Kept", click.option("--c"))

    @click.command(cls=SectionedCommand)
    @sections(None, some, click.option("--d"), "Kept", click.option("--e"))
    def command(c, d, e):
        """Do it."""

    with click.Context(command) as context:
        result = {title: [name.split()[0] for name, _ in rows] for title, rows in command.sections(context).items()}
    assert result == {"Kept": ["--c", "--e"], "General": ["--d", "--help"]}


def test_without_titles_there_is_one_section():
    @click.command(cls=SectionedCommand)
    @click.option("--a")
    def command(a):
        """Do it."""

    assert "\nOptions:\n  --a TEXT\n" in text_of(command)
    give_title(command.params[0], "Letters")
    assert "\nLetters:\n  --a TEXT\n" in text_of(command)


def test_no_option_is_declared_twice():
    for name in COMMANDS:
        with cli.make_context("phrasetool", [], resilient_parsing=True) as overview:
            command = cli.get_command(overview, name)
            parameters = command.get_params(click.Context(command, parent=overview))
        spellings = [spelling for parameter in parameters for spelling in parameter.opts]
        assert len(spellings) == len(set(spellings)), name
