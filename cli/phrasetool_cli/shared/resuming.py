"""`--resume` of commands whose work takes long."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from moses_compat.files.finished_work import FinishedWork
    from phrasetool.watch import Watch

resume_option = click.option(
    "--resume", is_flag=True,
    help="Keep what is finished beside the output, in OUTPUT.unfinished, until all is done; and go on from what an "
         "interrupted run with --resume left there.",
)  # fmt: skip


def check_resumable(resume: bool, source: str, output: str) -> None:
    """Refuse to keep what is finished where there is no place for it, or where the input cannot be read again.

    Raises:
        click.UsageError: there is none, or it cannot.
    """
    from moses_compat.files.names import is_stream

    if resume and ("-" in (source, output) or is_stream(source) or is_stream(output)):
        raise click.UsageError("--resume keeps what is finished beside the output; expected files to read, and -o FILE")


def finished_work(
    resume: bool, output: str, source: str, files: Iterable[str], settings: Mapping[str, object], watch: Watch
) -> contextlib.AbstractContextManager[FinishedWork | None]:
    """What an interrupted run left, and what this one will keep; without `--resume` nothing, and it is forgotten.

    Args:
        resume: whether it was given.
        output: what is made.
        source: what it is made from.
        files: others that it depends on.
        settings: options that it depends on.
        watch: is told that work goes on.

    Raises:
        PhraseToolError: there is no place for it, see `check_resumable`; what is there is of another run; or a file
            cannot be read.
    """
    if not resume:
        return _forgetting(output)
    from moses_compat.files.finished_work import FinishedWork, described

    told = {os.path.abspath(file): described(file) for file in files}
    told |= {name.replace("_", " "): str(value) for name, value in settings.items()}
    return FinishedWork(output, source, told, watch.say)


@contextlib.contextmanager
def _forgetting(output: str) -> Iterator[None]:
    """Remove what an interrupted run kept of an output, once that is made anew."""
    from moses_compat.files.finished_work import forget_finished
    from moses_compat.files.names import is_stream

    yield
    if not is_stream(output):
        forget_finished(output)
