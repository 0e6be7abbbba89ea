"""Errors that a user can cause; all other exceptions are bugs and keep their traceback."""

import errno
import re
from typing import Any

_CUT_SHORT = re.compile(r"^\d+ requested and \d+ written")


class PhraseToolError(Exception):
    """Base class of errors with a message for users; the command line prints it as one line and exits with status 1.

    Args:
        message: description of the problem.
        remedy: name of a solution that the command line explains in terms of its options; None if the message has it.
    """

    def __init__(self, message: str = "", *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        # Constructors of subclasses take other arguments than the message.
        return _restored, (type(self), self.args, self.__dict__)


class DataError(PhraseToolError):
    """A file has invalid content.

    Args:
        path: path of the file, as given by the user.
        message: what was found and what was expected.
        line: 1-based line number, if known.
        remedy: see `PhraseToolError`.
    """

    def __init__(self, path: object, message: str, line: int | None = None, *, remedy: str | None = None) -> None:
        self.path = str(path)
        self.line = line
        where = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{where}: {message}", remedy=remedy)


class ModelError(PhraseToolError):
    """A model directory is missing, damaged, of a different format version, or unsuitable for the request."""


class DeviceError(PhraseToolError):
    """This machine does not have the requested device."""


class LengthError(PhraseToolError, ValueError):
    """A phrase is longer than an encoder can encode."""


def _restored(kind: type[PhraseToolError], args: tuple[Any, ...], state: dict[str, Any]) -> PhraseToolError:
    """Return an error from its pickled state."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def reason(error: OSError) -> str:
    """Return the reason of an operating system error, in a few words."""
    # If the disk is full, numpy only reports the number of items to write and the number written.
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or _CUT_SHORT.search(str(error)):
        return "the disk is full"
    return error.strerror or first_line(error)


def first_line(error: Exception) -> str:
    """Return the first line of a library's error message; the class name if there is no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
