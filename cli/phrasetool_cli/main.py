"""The `phrasetool` command: finds the subcommand; the only place where errors become exit codes."""

from __future__ import annotations

import gc
import io
import itertools
import os
import re
import select
import sys
from typing import Any, NoReturn

import click

from moses_compat.files import paths
from phrasetool import kernels
from phrasetool.errors import PhraseToolError, reason
from phrasetool_cli.command import LazyGroup
from phrasetool_cli.messages import missing_package, with_remedy, write
from phrasetool_cli.process import (
    ignore_signals,
    raise_if_one_arrived,
    reopen_standard_streams,
    resend_lost_signals,
    watch_signals,
)

# Title -> name -> summary, the first line of the help.  The module of a command is imported only to run it or to show
# its help, so that the overview and completion are instant.
GROUPS = {
    "Tables": {
        "prune": "Remove bad or redundant phrase-table entries.",
        "annotate": "Add score columns to a phrase table.",
        "augment": "Add entries for out-of-vocabulary words.",
        "pivot": "Build a phrase table through a pivot language.",
        "export": "Write a phrase table for other systems.",
        "show": "Show the entries of a phrase.",
        "report": "Write a report about a phrase table as one HTML page.",
        "inspect": "Show information about a table or model.",
        "convert": "Convert a table to Parquet, to text, or to part files.",
        "remove-orphans": "Remove reordering entries that a phrase table lacks.",
    },
    "Models": {
        "train": "Train a model on phrase pairs, bitexts, text or treebanks.",
        "evaluate-model": "Measure a model on held-out data.",
        "neighbours": "Show the nearest phrases or sentences.",
        "reconstruct": "Measure the reconstruction accuracy of an autoencoder.",
        "translate": "Translate text with a neural translator.",
        "tag": "Tag the words of a text with parts of speech.",
    },
    "Engine": {
        "align": "Align the words of a bitext.",
        "extract": "Extract a phrase table from an aligned bitext.",
        "lm": "Estimate a language model.",
        "moses-ini": "Write a moses.ini, or replace the tables of one.",
        "binarize": "Convert a table to a binary format with Moses' programs.",
        "decode": "Translate text with a phrase-based model.",
        "force-decode": "Find the phrase pairs that translate a bitext.",
        "tune": "Tune the weights of a model on a development set.",
        "evaluate": "Score translations (BLEU, chrF, TER) and test differences.",
    },
    "N-best lists": {
        "rescore": "Add model scores to an n-best list.",
        "rerank": "Rerank an n-best list with further models.",
    },
    "Bitexts": {
        "filter-bitext": "Keep the sentence pairs that are translations.",
        "mine": "Find sentence pairs that are translations in two texts.",
        "evaluate-mining": "Measure mined sentence pairs against a gold standard.",
    },
    "More": {
        "improve": "Make a Moses model better and smaller, in one command.",
        "experiment": "Compare pruning and annotation methods, with a report.",
        "demo": "Run the whole workflow on a small corpus.",
        "compile": "Precompile numba kernels.",
    },
    "Moses": {
        "filter-pt": "Filter a phrase table by significance and rank.",
        "threshold-filter": "Remove entries whose scores are too low.",
        "ems-prune": "Prune a table as called by Moses' EMS.",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}


class _PipeClosedError(Exception):
    """The reader of a pipe has closed it.  Click would turn the OSError into exit code 1."""


class _Overview(LazyGroup):
    """The group of all commands."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options of the group; `--help` and `--version` print their text here.

        Raises:
            _PipeClosedError: the reader of a pipe has closed it.
        """
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError as error:
            raise _PipeClosedError from error

    def invoke(self, context: click.Context) -> object:
        """Run a command.

        Raises:
            _PipeClosedError: the reader of a pipe has closed it.
        """
        try:
            return super().invoke(context)
        except BrokenPipeError as error:
            raise _PipeClosedError from error


def _show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from phrasetool_cli.command import version_signature

        click.echo(version_signature())
        context.exit()


# Contexts of commands take `show_default` from this one.
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True}


@click.group(cls=_Overview, package="phrasetool_cli.commands", titled=GROUPS, context_settings=_SETTINGS)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
              help="Show the versions of phrasetool, Python and packages.")  # fmt: skip
@click.option("--debug", is_flag=True, help="Show a traceback on errors.")
@click.option("--config", metavar="FILE", help="Read defaults of options from TOML.  [default: ./phrasetool.toml]")
@click.pass_context
def cli(context: click.Context, debug: bool, config: str | None) -> None:
    """Prune, annotate and decode with the phrase tables of Moses.

    \b
    Typical use with a Moses model (`phrasetool improve` runs all steps):
      phrasetool force-decode --moses-ini moses.ini train.de train.en \\
        --leave-one-out -o forced-pairs.gz
      phrasetool train forced-pairs.gz
      phrasetool annotate table.gz --forced-pairs forced-pairs.gz \\
        -o annotated.gz --moses-ini moses.ini --moses-ini-out annotated.ini
      phrasetool tune --moses-ini annotated.ini --dev dev.de dev.en -o tuned.ini
      phrasetool prune annotated.gz --moses-ini tuned.ini \\
        --forced-pairs forced-pairs.gz --target-size 10% -o small.gz

    `phrasetool COMMAND --help` lists the options of a command.  $PHRASETOOL_MODEL is the default
    of --model where a command needs a model.
    """
    from phrasetool_cli.config_file import find_config, read_config

    if (path := find_config(config)) is not None:
        from phrasetool_cli.command import CONFIGURATION

        context.meta[CONFIGURATION] = path
        context.default_map = read_config(path, COMMANDS, context)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0: success, or the reader of a pipe has closed it; 1: data or I/O error; 2: usage error; 130:
    interrupted; 143: terminated.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in itertools.takewhile(lambda argument: argument not in COMMANDS, arguments)
    if not {"-q", "--quiet", "compile"}.intersection(arguments) and "PHRASETOOL_KERNELS" not in os.environ:
        kernels.announcements.append(_announce_compilation)
    paths.listeners[:] = [_Warnings().say]
    paths.read_pipes_once()
    try:
        watch_signals()
        try:
            cli.main(arguments, prog_name="phrasetool", standalone_mode=False)
        finally:
            # Unless the command reports the interrupt itself.
            if not (isinstance(ended := sys.exception(), click.Abort) and str(ended)):
                raise_if_one_arrived()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        _exit(error.exit_code)
    except click.ClickException as error:
        _fail(error.format_message() + _where_help_is(error), error.exit_code, debug)
    except (click.Abort, KeyboardInterrupt) as error:
        _fail(str(error) or "interrupted", 130, debug, label="")
    except PhraseToolError as error:
        _fail(with_remedy(str(error), error.remedy), 1, debug)
    except ModuleNotFoundError as error:
        message = missing_package(error.name)
        if message is None:
            raise
        _fail(message, 1, debug)
    except ImportError as error:
        if not (library := _not_mapped(error)):
            raise
        _fail(f"no memory is left to load a package: {library}", 1, debug)
    except _PipeClosedError as error:
        _pipe_closed(error, debug)
    except SystemError as error:
        # Python may lose the MemoryError if memory runs out during an import.
        if not any(words in str(error) for words in ("without exception set", "without setting an exception")):
            raise
        _fail("no memory is left", 1, debug)
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        _fail("no thread can be started: memory (ulimit -v) or processes (ulimit -u) are limited", 1, debug)
    except (OSError, MemoryError) as error:
        _fail(_describe(error), 1, debug)
    _exit(0)


def _announce_compilation() -> None:
    write("compiling the kernels of this command, once on this machine (`phrasetool compile` does it for all)")


def run() -> None:
    """Run `main`, and exit without finalising the interpreter, which would take another 0.15 s.

    Every file is closed and every thread has ended by then.
    """
    reopen_standard_streams()
    resend_lost_signals()
    # Imports create many permanent objects, and searching them for cycles takes 2 % of the time of a short command.
    gc.set_threshold(50_000)
    try:
        main()
    except SystemExit as end:
        ignore_signals()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)


def _where_help_is(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see `{context.command_path} --help`)" if context else ""


def _not_mapped(error: BaseException | None) -> str:
    """Return the library that could not be mapped into memory; "" if the error has another cause."""
    while error is not None:
        message = str(error)
        if any(words in message for words in ("failed to map segment", "annot allocate memory")):
            return message.partition(":")[0]
        error = error.__cause__ or error.__context__
    return ""


def _describe(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"no memory is left: {error}" if str(error) else "no memory is left"
    if isinstance(error, OSError) and error.strerror:
        name = error.filename or ("standard output" if _output_is_broken() else "")
        return f"{name}: {reason(error)}" if name else error.strerror
    if library := _not_mapped(error):
        return f"no memory is left to load a package: {library}"
    return str(error) or type(error).__name__


def _output_is_broken() -> bool:
    """Whether standard output cannot be written.

    After a failed write, text longer than the buffer is not kept, so flushing again may succeed; but writing zero bytes
    fails, too, if nothing can be written.
    """
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"")
    except io.UnsupportedOperation:
        return False
    except OSError:
        return True
    return False


def _fail(message: str, code: int, debug: bool, label: str = "error") -> NoReturn:
    if debug:
        import traceback

        traceback.print_exc()
    write(_one_line(message), label)
    _exit(code)


def _one_line(message: str) -> str:
    """Return a message without line breaks and control characters; spaces, which a file name may have, are kept."""
    return re.sub(r" *[\0-\x1f\x7f-\x9f\u2028\u2029][\0- \x7f-\x9f\u2028\u2029]*", " ", message.strip("\r\n"))


def _exit(code: int) -> NoReturn:
    """Flush standard output, report an error if that fails, and exit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does.
        _abandon_output()
    except OSError as error:
        _abandon_output()
        if code == 0:
            write(f"standard output: {_describe(error)}", "error")
            code = 1
    sys.exit(code)


def _pipe_closed(error: _PipeClosedError, debug: bool) -> NoReturn:
    """Exit without an error if the reader of standard output has closed it, as `head` does, and no file is lost."""
    if not _reader_is_gone():
        _fail(_describe(error.__cause__ or error), 1, debug)
    _abandon_output()
    if paths.abandoned:
        lost = paths.abandoned[::-1]
        files = f"{', '.join(lost[:-1])} and {lost[-1]} were" if len(lost) > 1 else f"{lost[0]} was"
        _fail(f"standard output was closed by its reader, and {files} not written", 1, debug)
    sys.exit(0)


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe whose reader has closed it."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
    except (io.UnsupportedOperation, OSError):
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


class _Warnings:
    """Listener that prints each warning about files once: many files are read more than once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            write(message, "warning")


def _abandon_output() -> None:
    """Redirect standard output to the null device, so that the interpreter's last flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
