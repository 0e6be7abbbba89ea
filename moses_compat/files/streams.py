"""Bytes in and out: plain files, gzip, standard input and output.

Output goes to a temporary file beside its target and is renamed when complete, so a run that dies leaves the old
file or none.  Gzip is written as a sequence of members, compressed by whoever made the bytes (in parallel), without
timestamps; every gzip reader takes such files.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO

from isal import igzip, isal_zlib

from moses_compat.files import kinds as table_kind
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import ByteArray

STANDARD = "-"
# Texts that are taken in as a whole come in pieces of this many bytes.
LINES_AT_ONCE = 1 << 24
GZIP_MAGIC = b"\x1f\x8b"
# Level 1 of igzip: a third of the time of its level 2 for some 5 % more bytes.
_LEVEL = 1
_DAMAGED: tuple[type[Exception], ...] = (gzip.BadGzipFile, isal_zlib.error)  # type: ignore[assignment]


def display_name(path: str) -> str:
    """How a path is called in messages."""
    return "standard input" if path == STANDARD else path


def is_stream(path: str) -> bool:
    """Whether this can be read only once: standard input, or what is there and is neither a file nor a folder."""
    return path == STANDARD or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)))


def is_gzip_name(path: str) -> bool:
    """Whether what is written under this name is compressed."""
    return path.endswith(".gz")


def compress(data: bytes | ByteArray) -> bytes:
    """One gzip member with no name and no timestamp."""
    packed: bytes = isal_zlib.compress(data, level=_LEVEL, wbits=31)
    return packed


class _Headed(io.RawIOBase):
    """A stream of which the first bytes were read already (a pipe cannot be wound back)."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head or self._rest.read1(len(buffer))
        self._head = b""
        buffer[: len(data)] = data
        return len(data)


class Input:
    """A table or corpus opened for reading, decompressed if it is gzip (told by its content, not its name).

    Args:
        path: a file, or `-` for standard input.
        name: what messages call it, if not by its path.

    Attributes:
        name: what messages call it.
        gzip: whether its content is.

    Raises:
        DataError: the file cannot be opened, or is a 0-byte `.gz` (a placeholder, not an empty table).
    """

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path = path
        self.name = name or display_name(path)
        try:
            self._raw: Any = sys.stdin.buffer if path == STANDARD else open(path, "rb")  # noqa: SIM115
            head = self._raw.read(len(GZIP_MAGIC))
        except (IsADirectoryError, FileNotFoundError) as error:
            kind = table_kind.folder_kind(path) if os.path.isdir(path) else None
            remedy = kind.remedy if kind else None
            raise DataError(self.name, table_kind.why_not_a_file(path), remedy=remedy) from error
        except OSError as error:
            raise DataError(self.name, error.strerror or str(error)) from error
        if not head and is_gzip_name(path):
            self.close()
            raise DataError(self.name, table_kind.why_no_bytes(path))
        whole = io.BufferedReader(_Headed(head, self._raw), 1 << 17)
        self.gzip = head == GZIP_MAGIC
        self._stream: Any = igzip.GzipFile(fileobj=whole) if self.gzip else whole
        self._peeked = b""

    def peek(self, size: int) -> bytes:
        """The next bytes, up to `size`, which stay to be read.

        Raises:
            DataError: as `read`.
        """
        self._peeked = self.read(size)
        return self._peeked

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end.

        Raises:
            DataError: truncated or corrupt gzip, or a read error.
        """
        pieces = []
        if self._peeked:
            pieces.append(self._peeked[:size])
            self._peeked = self._peeked[size:]
            size -= len(pieces[0])
        try:
            while size > 0 and (piece := self._stream.read(size)):
                pieces.append(piece)
                size -= len(piece)
        except EOFError as error:
            raise DataError(self.name, "the gzip data end too early (truncated file?)") from error
        except _DAMAGED as error:
            raise DataError(self.name, f"the gzip data are damaged ({error})") from error
        except OSError as error:
            raise DataError(self.name, error.strerror or str(error)) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_all(self) -> bytes:
        """Read everything that is left."""
        return b"".join(iter(lambda: self.read(LINES_AT_ONCE), b""))

    def whole_lines(self) -> Iterator[bytes]:
        """What is left, in blocks of some `LINES_AT_ONCE` bytes that end at line ends, but for the last perhaps."""
        pending: list[bytes] = []
        while chunk := self.read(LINES_AT_ONCE):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield b"".join([*pending, chunk[:cut]])
                pending = []
            pending.append(chunk[cut:])
        if rest := b"".join(pending):
            yield rest

    def position(self) -> int:
        """Bytes of the file (compressed, if it is) consumed so far; 0 for a pipe."""
        try:
            return int(self._raw.tell())
        except OSError:
            return 0

    def size(self) -> int:
        """Bytes of the file; 0 for a pipe."""
        try:
            status = os.fstat(self._raw.fileno())
        except OSError:
            return 0
        return status.st_size if self.path != STANDARD else 0

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != STANDARD:
            self._raw.close()

    def __enter__(self) -> Input:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Output:
    """A file that appears under its name only when complete; or standard output.

    Use as a context manager: leaving it normally renames the temporary file, leaving it by an exception removes it.

    Raises:
        PhraseToolError: the folder cannot be written to, or (from `write` and on leaving) the disk is full.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.gzip = is_gzip_name(path)
        self._temporary: str | None = None
        self._bytes = 0
        if path == STANDARD:
            self._file: BinaryIO = sys.stdout.buffer
            return
        if os.path.isdir(path):
            raise PhraseToolError(f"{path}: is a folder, expected a file name")
        # Through a symbolic link, the file it points to is the one to replace.
        self._target = os.path.realpath(path)
        folder = os.path.dirname(self._target)
        try:
            # A device or a pipe cannot be renamed onto; it is written as it is.
            if os.path.exists(path) and not os.path.isfile(path):
                self._file = open(path, "wb")  # noqa: SIM115
                return
            handle, self._temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", suffix=".part", dir=folder)
            self._file = os.fdopen(handle, "wb")
        except OSError as error:
            raise PhraseToolError(f"{path}: cannot write: {error.strerror}") from error

    def write(self, data: bytes | ByteArray) -> None:
        """Write bytes that are already in the file's form (compressed, if its name ends in `.gz`)."""
        try:
            self._file.write(data)  # type: ignore[arg-type]
            self._bytes += len(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failure(error) from error

    def encode(self, text: bytes | ByteArray) -> bytes:
        """Text in the file's form, compressed if its name ends in `.gz`; may be called by several threads.

        Nothing stays nothing.
        """
        if not len(text):
            return b""
        return compress(text) if self.gzip else bytes(text)

    def write_text(self, text: bytes) -> None:
        """Write text, compressed first if the name ends in `.gz`."""
        self.write(self.encode(text))

    def flush(self) -> None:
        """Bring what was written to the disk, where there may be no room for it."""
        try:
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> PhraseToolError:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        return PhraseToolError(f"{self.path}: cannot write: {reason}; nothing was changed")

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path == STANDARD:
            if kind is None:
                self._file.flush()
            return
        try:
            if kind is None:
                if self.gzip and not self._bytes:
                    self.write(compress(b""))
                self._file.close()
                if self._temporary:
                    os.chmod(self._temporary, 0o666 & ~_umask())
                    os.replace(self._temporary, self._target)
                    self._temporary = None
        except OSError as error:
            raise self._failure(error) from error
        finally:
            with contextlib.suppress(OSError):
                self._file.close()
            if self._temporary:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def same_file(first: str, second: str) -> bool:
    """Whether two paths name one existing file."""
    if STANDARD in (first, second):
        return False
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)
