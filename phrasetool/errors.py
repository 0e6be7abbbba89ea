"""The errors a user can cause.  Everything else is a bug and keeps its traceback."""

import errno
import re
from typing import Any

_CUT_SHORT = re.compile(r"^\d+ requested and \d+ written")


class PhraseToolError(Exception):
    """Base of all errors with a message meant for users; the command line prints it as one line, exit code 1.

    Args:
        message: what is wrong.
        remedy: the name of a way out, for the command line to put in terms of its options; none if the message says it.
    """

    def __init__(self, message: str = "", *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses make their message of other arguments.
        return _restored, (type(self), self.args, self.__dict__)


class DataError(PhraseToolError):
    """A file holds something it should not.

    Args:
        path: the file, as the user named it.
        message: what was found and what was expected.
        line: 1-based line number, if the fault has one.
        remedy: see `PhraseToolError`.
    """

    def __init__(self, path: object, message: str, line: int | None = None, *, remedy: str | None = None) -> None:
        self.path = str(path)
        self.line = line
        where = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{where}: {message}", remedy=remedy)


class ModelError(PhraseToolError):
    """A model directory is missing, damaged, of another format version, or does not fit the request."""


class DeviceError(PhraseToolError):
    """A device was asked for that this machine does not have."""


class LengthError(PhraseToolError, ValueError):
    """A phrase is longer than an encoder can encode."""


def _restored(kind: type[PhraseToolError], args: tuple[Any, ...], state: dict[str, Any]) -> PhraseToolError:
    """An error that was pickled."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def reason(error: OSError) -> str:
    """Why the system refused something, in a few words."""
    # On a full disk numpy reports the number of items to write, and the number written.
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or _CUT_SHORT.search(str(error)):
        return "the disk is full"
    return error.strerror or first_line(error)


def first_line(error: Exception) -> str:
    """Return the first line of a library's error message; the name of the error if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
