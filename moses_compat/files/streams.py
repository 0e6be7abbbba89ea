"""Reading and writing bytes: plain files, compressed ones (see `packing`), standard input and output.

Output is written to a temporary file next to its target and renamed when complete, so an interrupted run leaves the old
file or none.  Gzip is written as a sequence of members without timestamps, which callers compress in parallel; every
gzip reader accepts such files.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, BinaryIO, cast

from isal import igzip, isal_zlib

from moses_compat.files import kinds as table_kind
from moses_compat.files import packing, paths
from moses_compat.files.paths import STANDARD, display_name, is_pipe, is_stream
from phrasetool.disk.folders import scratch_file
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.phrases import ByteArray

# A file with a longer line is not text; without a limit, the line would be held in memory as a whole.
LONGEST_TEXT_LINE = 1 << 26


def limited_lines(name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a text, and check that no line is too long.

    Args:
        name: name of the text in messages.
        pieces: consecutive pieces, which may end anywhere within a line.

    Raises:
        DataError: a line that spans several pieces has more than `LONGEST_TEXT_LINE` bytes.
    """
    lines = line = 0
    for piece in pieces:
        feed = piece.rfind(b"\n")
        line = len(piece) - feed - 1 if feed >= 0 else line + len(piece)
        if line > LONGEST_TEXT_LINE:
            message = f"the line has more than {LONGEST_TEXT_LINE:,} bytes; expected text with one sentence per line"
            raise DataError(name, message, lines + piece.count(b"\n") + 1)
        lines += piece.count(b"\n")
        yield piece


# Texts that are read as a whole are read in pieces of this many bytes.
BYTES_PER_BLOCK = 1 << 24
_START_BYTES = 64  # The encoding is detected from this many bytes.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Short texts are compressed together when they reach this many bytes; gzip is written immediately.
_BYTES_PER_MEMBER = 1 << 20
_DAMAGED: tuple[type[Exception], ...] = (gzip.BadGzipFile, isal_zlib.error, packing.Damaged)  # type: ignore[assignment]


def compress(data: bytes | ByteArray) -> bytes:
    """Compress data to one gzip member without name and timestamp."""
    return packing.GZIP.compress(data)


class _Headed(io.RawIOBase):
    """A stream whose first bytes have already been read (a pipe cannot be rewound)."""

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
    """A table or corpus opened for reading, decompressed if it is compressed (by its content, not its name).

    A byte order mark at the start of the text is skipped with a notice (see `paths.notice`).

    Args:
        path: a file, or `-` for standard input.
        name: the name in messages, if not the path.

    Attributes:
        name: the name in messages.
        packing: its compression format; None if it is not compressed.

    Raises:
        DataError: the file cannot be opened, or has 0 bytes and the name of a compressed file (a placeholder, not an
            empty table).
        ModuleNotFoundError: the package for its compression format is not installed.
    """

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path = path
        self.name = name or display_name(path)
        try:
            self._refuse_second_reading()
            self._raw: Any = sys.stdin.buffer if path == STANDARD else open(path, "rb")  # noqa: SIM115
            head = self._raw.read(packing.HEAD_BYTES)
        except (IsADirectoryError, FileNotFoundError) as error:
            kind = table_kind.folder_kind(path) if os.path.isdir(path) else None
            remedy = kind.remedy if kind else None
            raise DataError(self.name, table_kind.why_not_a_file(path), remedy=remedy) from error
        except OSError as error:
            raise DataError(self.name, reason(error)) from error
        except ValueError as error:
            raise DataError(path.replace("\0", "\\0"), "invalid file name (it has a zero byte)") from error
        if not head and (expected := packing.packing_for(path)):
            self.close()
            raise DataError(self.name, table_kind.why_no_bytes(path, expected.name))
        whole: Any = io.BufferedReader(_Headed(head, self._raw), 1 << 17)
        self.packing = packing.packing_of(head, path)
        # Whether the text began with a byte order mark, known once its start was read.
        self.has_mark = False
        try:
            self._stream: Any = self._unpacked(whole)
        except ModuleNotFoundError:
            self.close()
            raise
        self._peeked = b""
        self._begun = False
        # Whether the text so far has a line feed, a carriage return within it, and a carriage return at its end.
        self._line_feed = self._inner_return = self._last_return = False

    def __getstate__(self) -> dict[str, Any]:
        # Other processes need only the name, for messages.
        return {"path": self.path, "name": self.name}

    def _refuse_second_reading(self) -> None:
        """Refuse a pipe that was read before; opening a pipe without a writer would block forever."""
        if paths.read_pipes is None or self.path == STANDARD or not is_pipe(self.path):
            return
        status = os.stat(self.path)
        pipe = (status.st_dev, status.st_ino)
        if pipe in paths.read_pipes:
            raise DataError(self.name, "is a pipe, was read already and has to be read again; expected a file")
        paths.read_pipes.add(pipe)

    def _unpacked(self, whole: Any) -> Any:
        if self.packing is packing.GZIP:
            return igzip.GzipFile(fileobj=whole)
        return packing.Unpacked(whole, self.packing) if self.packing else whole

    @property
    def gzip(self) -> bool:
        """Whether the file is compressed with gzip."""
        return self.packing is packing.GZIP

    def peek(self, size: int) -> bytes:
        """Return the next bytes, up to `size`, without consuming them.

        Raises:
            DataError: as `read`.
        """
        next_bytes = self.read(size)
        self._peeked = next_bytes + self._peeked
        return next_bytes

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end.

        Raises:
            DataError: truncated or damaged data, text that is UTF-16 or whose lines end at carriage returns alone, or a
                read error.
        """
        if not self._begun:
            self._begun = True
            self._peeked = self._without_mark(self._read(max(size, _START_BYTES)))
        pieces = []
        if self._peeked:
            pieces.append(self._peeked[:size])
            self._peeked = self._peeked[size:]
            size -= len(pieces[0])
        if size > 0:
            pieces.append(self._read(size))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read(self, size: int) -> bytes:
        pieces = []
        try:
            while size > 0 and (piece := self._stream.read(size)):
                pieces.append(piece)
                size -= len(piece)
        except packing.TrailingData as error:
            raise self._trailing_data(error.offset) from error
        except (EOFError, packing.Truncated) as error:
            self._refuse_trailing_data(error)
            raise self._fault("end too early (truncated file?)") from error
        except _DAMAGED as error:
            if isinstance(error, gzip.BadGzipFile):
                self._refuse_trailing_data(error)
            raise self._fault(f"are damaged ({error})") from error
        except OSError as error:
            raise DataError(self.name, reason(error)) from error
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not self._line_feed:
            self._refuse_carriage_returns(data, size > 0)
        return data

    def _refuse_carriage_returns(self, data: bytes, ended: bool) -> None:
        """Refuse a text whose lines end with carriage returns only; carriage returns within lines are allowed.

        Args:
            data: the next part of a text that has had no line feed so far.
            ended: whether the text ends with it.
        """
        self._line_feed = b"\n" in data
        self._inner_return |= (self._last_return and bool(data)) or b"\r" in data[:-1]
        self._last_return = data.endswith(b"\r") if data else self._last_return
        if ended and self._inner_return and not self._line_feed:
            message = "its lines end at carriage returns; expected line feeds (tr '\\r' '\\n' makes them)"
            raise DataError(self.name, message)

    def _fault(self, what: str) -> DataError:
        assert self.packing is not None
        return DataError(self.name, f"the {self.packing.name} data {what}")

    def _trailing_data(self, offset: int) -> DataError:
        return self._fault(f"end at byte {offset}, but other data follow; expected the end of the file")

    def _refuse_trailing_data(self, error: Exception) -> None:
        """Report other data after complete gzip members; the gzip reader does not give their position."""
        if self.gzip and self.path != STANDARD and (offset := packing.trailing_data_offset(self.path)) is not None:
            raise self._trailing_data(offset) from error

    def _without_mark(self, start: bytes) -> bytes:
        if start.startswith(_BYTE_ORDER_MARK):
            self.has_mark = True
            paths.notice(f"{self.name}: a byte order mark at its start was left out")
            return start[len(_BYTE_ORDER_MARK) :]
        if _is_utf_16(start):
            raise DataError(self.name, "is UTF-16 text; expected UTF-8 (iconv -f UTF-16 -t UTF-8 makes it)")
        return start

    def read_all(self) -> bytes:
        """Read the rest of the text; see `whole_lines`."""
        return b"".join(self._pieces(True))

    def _pieces(self, limited: bool) -> Iterator[bytes]:
        pieces = iter(lambda: self.read(BYTES_PER_BLOCK), b"")
        return limited_lines(self.name, pieces) if limited else pieces

    def whole_lines(self, limited: bool = True) -> Iterator[bytes]:
        """Yield the rest of the text in blocks of about `BYTES_PER_BLOCK` bytes; all but the last end at line ends.

        Raises:
            DataError: as `read`; and, if `limited`, as `limited_lines`.
        """
        pending: list[bytes] = []
        for chunk in self._pieces(limited):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield b"".join([*pending, chunk[:cut]])
                pending = []
            pending.append(chunk[cut:])
        if rest := b"".join(pending):
            yield rest

    def position(self) -> int:
        """Return the number of (compressed) bytes of the file read so far; 0 for a pipe."""
        try:
            return int(self._raw.tell())
        except OSError:
            return 0

    def size(self) -> int:
        """Return the size of the file in bytes; 0 for a pipe."""
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


def changes_as_start(text: bytes) -> bool:
    """Whether text, at the start of a file, would lose a byte order mark or be refused as UTF-16."""
    return text.startswith(_BYTE_ORDER_MARK) or _is_utf_16(text)


def _is_utf_16(text: bytes) -> bool:
    """Whether text begins as UTF-16: with its byte order mark, or with ASCII characters and a zero byte for each."""
    start = text[:_START_BYTES]
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    even, odd = start[::2], start[1::2]
    zeros = even.count(0), odd.count(0)
    return len(odd) >= 4 and min(zeros) == 0 and max(zeros) > 0.8 * len(odd)


class Output:
    """A file that appears under its name only when complete; or standard output.

    Use as a context manager: leaving it normally renames the temporary file, leaving it by an exception removes it.

    Attributes:
        packing: compression format by the ending of its name; None for plain files.

    Raises:
        PhraseToolError: the folder cannot be written to, or (from `write` and on leaving) the disk is full.
        ModuleNotFoundError: the package for this compression format is not installed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.packing = packing.packing_for(path)
        if self.packing:
            # Raise the error for a missing package now rather than after hours of work.
            self.packing.decompressor()
        self._temporary: str | None = None
        self._bytes = 0
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        if path == STANDARD:
            self._file: BinaryIO = sys.stdout.buffer
            return
        if os.path.isdir(path):
            raise PhraseToolError(f"{path}: is a folder, expected a file name")
        # Through a symbolic link, the file that it points to is replaced.
        self._target = os.path.realpath(path)
        folder = os.path.dirname(self._target)
        try:
            # Other programs may have written to an open descriptor, and may go on: its file is not replaced.
            if (descriptor := paths.descriptor_of(path)) is not None:
                self._file = os.fdopen(os.dup(descriptor), "wb")
                return
            # A device or a pipe cannot be replaced by renaming; it is written directly.
            if os.path.exists(path) and not os.path.isfile(path):
                self._file = open(path, "wb")  # noqa: SIM115
                return
            # A name that is too long is refused here.
            with contextlib.suppress(FileNotFoundError):
                os.lstat(self._target)
            handle, self._temporary = scratch_file(folder, f".{os.path.basename(path)}.", ".part")
            self._file = os.fdopen(handle, "wb")
        except OSError as error:
            raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error
        except ValueError as error:
            shown = path.replace("\0", "\\0")
            raise PhraseToolError(f"{shown}: invalid file name (it has a zero byte)") from error

    def __getstate__(self) -> dict[str, Any]:
        # Other processes only encode text.
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self.packing = packing.packing_for(self.path)
        self._temporary = None

    def write(self, data: bytes | ByteArray) -> None:
        """Write bytes that are already compressed in the file's format (if it has one)."""
        self._pack_waiting()
        self._write(data)

    def _write(self, data: bytes | ByteArray) -> None:
        try:
            self._file.write(data)  # type: ignore[arg-type]
            self._bytes += len(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failure(error) from error

    def encode(self, text: bytes | ByteArray) -> bytes:
        """Return text compressed in the file's format (if it has one); may be called by several threads.

        Empty text gives no bytes.
        """
        if not len(text):
            return b""
        return self.packing.compress(text) if self.packing else bytes(text)

    def write_text(self, text: bytes) -> None:
        """Write text, compressed in the file's format (if it has one)."""
        if self.packing in (None, packing.GZIP):
            self._write(self.encode(text))
            return
        # Compressing a stream of a few words takes as long as compressing many words.
        self._waiting.append(text)
        self._waiting_bytes += len(text)
        if self._waiting_bytes >= _BYTES_PER_MEMBER:
            self._pack_waiting()

    def _pack_waiting(self) -> None:
        if self._waiting:
            text = b"".join(self._waiting)
            self._waiting, self._waiting_bytes = [], 0
            self._write(self.encode(text))

    def flush(self) -> None:
        """Write all buffered data to the file.

        Raises:
            PhraseToolError: the disk is full.
        """
        self._pack_waiting()
        try:
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def discard(self) -> None:
        """Close the file and discard the written data."""
        with contextlib.suppress(OSError):
            self._file.close()
        if self._temporary:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None

    def _failure(self, error: OSError) -> PhraseToolError:
        if self.path == STANDARD:
            return PhraseToolError(f"standard output: cannot write: {reason(error)}")
        # Data that were written to a device or a pipe cannot be taken back.
        untouched = "; the existing file is unchanged" if self._temporary else ""
        return PhraseToolError(f"{self.path}: cannot write: {reason(error)}{untouched}")

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path == STANDARD:
            if kind is None:
                try:
                    self._file.flush()
                except BrokenPipeError:
                    raise
                except OSError as error:
                    raise self._failure(error) from error
            return
        if kind is not None and issubclass(kind, BrokenPipeError):
            paths.abandoned.append(self.path)
        try:
            if kind is None:
                self._pack_waiting()
                if self.packing and not self._bytes:
                    self._write(self.packing.compress(b""))
                self._file.flush()
                if self._temporary:
                    os.chmod(self._temporary, 0o666 & ~_umask())
                    # Rename before closing: until then, the lock marks the file as in use.
                    os.replace(self._temporary, self._target)
                    self._temporary = None
        except OSError as error:
            raise self._failure(error) from error
        finally:
            self.discard()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# The number of bytes that `peek` can return.
BUFFER_BYTES = 1 << 16


class _Unpacked(io.RawIOBase):
    """An `Input` as a Python file object."""

    def __init__(self, source: Input) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()


def open_bytes(path: str) -> BinaryIO:
    """Open a file, compressed or not (by its content), or `-` for standard input.

    Raises:
        DataError: the file cannot be opened; or, from reading, as `Input.read`.
        ModuleNotFoundError: the package for its compression format is not installed.
    """
    return cast(BinaryIO, io.BufferedReader(_Unpacked(Input(path)), BUFFER_BYTES))


def check_readable(path: str) -> None:
    """Refuse a file that `Input` would refuse; streams, which can be read only once, are not opened.

    Raises:
        DataError: the file cannot be opened.
    """
    if not is_stream(path):
        Input(path).close()


def check_writable(path: str) -> None:
    """Refuse a path that cannot be written; no file is left behind; pipes, devices and descriptors are not checked.

    Raises:
        PhraseToolError: the path is empty or ends in `/`, or its folder does not exist, cannot be written to, or its
            disk is full.
    """
    if is_stream(path) or paths.descriptor_of(path) is not None:
        return
    if not path:
        raise PhraseToolError("cannot write: expected a file name, found an empty one")
    if path.endswith(os.sep) and not os.path.isdir(path):
        raise PhraseToolError(f"{path}: cannot write: expected a file name, found one that ends in {os.sep}")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        # The folder that was typed exists if the path is a link into a missing one.
        typed = os.path.dirname(path)
        missing = folder if os.path.isdir(typed or os.curdir) else typed
        raise PhraseToolError(f"{path}: cannot write: there is no folder {missing}")
    Output(path).discard()
    if shutil.disk_usage(folder).free == 0:
        raise PhraseToolError(f"{path}: cannot write: the disk is full")
