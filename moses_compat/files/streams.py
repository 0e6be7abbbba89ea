"""Bytes in and out: plain files, compressed ones (see `packing`), standard input and output.

Output goes to a temporary file beside its target and is renamed when complete, so a run that dies leaves the old
file or none.  Gzip is written as a sequence of members, compressed by whoever made the bytes (in parallel), without
timestamps; every gzip reader takes such files.
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

# What has a longer line is no text; without a limit, it would be held as a whole.
LONGEST_TEXT_LINE = 1 << 26


def limited_lines(name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same pieces of a text, as long as no line is too long.

    Args:
        name: of the text, in messages.
        pieces: one after another; where they end has nothing to do with lines.

    Raises:
        DataError: a line that spans several pieces has more than `LONGEST_TEXT_LINE` bytes.
    """
    lines = line = 0
    for piece in pieces:
        feed = piece.rfind(b"\n")
        line = len(piece) - feed - 1 if feed >= 0 else line + len(piece)
        if line > LONGEST_TEXT_LINE:
            message = f"the line has more than {LONGEST_TEXT_LINE:,} bytes; expected text, a sentence a line"
            raise DataError(name, message, lines + piece.count(b"\n") + 1)
        lines += piece.count(b"\n")
        yield piece


# Texts that are taken in as a whole come in pieces of this many bytes.
LINES_AT_ONCE = 1 << 24
_START_BYTES = 64  # As much of the text as tells its encoding.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Short texts are compressed together when this many bytes are there; gzip is written at once.
_PACKED_AT_ONCE = 1 << 20
_DAMAGED: tuple[type[Exception], ...] = (gzip.BadGzipFile, isal_zlib.error, packing.Damaged)  # type: ignore[assignment]


def compress(data: bytes | ByteArray) -> bytes:
    """One gzip member with no name and no timestamp."""
    return packing.GZIP.compress(data)


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
    """A table or corpus opened for reading, decompressed if it is compressed (told by its content, not its name).

    A byte order mark at the start of the text is left out, and noticed (see `paths.notice`).

    Args:
        path: a file, or `-` for standard input.
        name: what messages call it, if not by its path.

    Attributes:
        name: what messages call it.
        packing: how it is compressed; None if it is not.

    Raises:
        DataError: the file cannot be opened, or has 0 bytes and a name of a compressed one (a placeholder, not an empty
            table).
        ModuleNotFoundError: the package that can read it is not installed.
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
            raise DataError(path.replace("\0", "\\0"), "is no name of a file; it holds a zero byte") from error
        if not head and (expected := packing.packing_for(path)):
            self.close()
            raise DataError(self.name, table_kind.why_no_bytes(path, expected.name))
        whole: Any = io.BufferedReader(_Headed(head, self._raw), 1 << 17)
        self.packing = packing.packing_of(head, path)
        try:
            self._stream: Any = self._unpacked(whole)
        except ModuleNotFoundError:
            self.close()
            raise
        self._peeked = b""
        self._begun = False
        # Of the text so far: whether it has a line feed, a carriage return with something behind it, one at its end.
        self._line_feed = self._inner_return = self._last_return = False

    def __getstate__(self) -> dict[str, Any]:
        # In another process it is a name in messages.
        return {"path": self.path, "name": self.name}

    def _refuse_second_reading(self) -> None:
        """Before it is opened: to open a pipe to which nobody writes would wait for ever."""
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
        """Whether its content is gzip."""
        return self.packing is packing.GZIP

    def peek(self, size: int) -> bytes:
        """The next bytes, up to `size`, which stay to be read.

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
        except packing.Foreign as error:
            raise self._foreign(error.offset) from error
        except (EOFError, packing.Truncated) as error:
            self._refuse_foreign_bytes(error)
            raise self._fault("end too early (truncated file?)") from error
        except _DAMAGED as error:
            if isinstance(error, gzip.BadGzipFile):
                self._refuse_foreign_bytes(error)
            raise self._fault(f"are damaged ({error})") from error
        except OSError as error:
            raise DataError(self.name, reason(error)) from error
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not self._line_feed:
            self._refuse_carriage_returns(data, size > 0)
        return data

    def _refuse_carriage_returns(self, data: bytes, ended: bool) -> None:
        """Refuse a text that would be one line of everything; a carriage return within one of its lines is allowed.

        Args:
            data: what follows a part of the text that has no line feed.
            ended: whether nothing follows.
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

    def _foreign(self, offset: int) -> DataError:
        return self._fault(f"end at byte {offset}, and what follows is something else; expected the end of the file")

    def _refuse_foreign_bytes(self, error: Exception) -> None:
        """The reader of gzip does not say whether it was within a member, nor where."""
        if self.gzip and self.path != STANDARD and (offset := packing.foreign_bytes(self.path)) is not None:
            raise self._foreign(offset) from error

    def _without_mark(self, start: bytes) -> bytes:
        if start.startswith(_BYTE_ORDER_MARK):
            paths.notice(f"{self.name}: a byte order mark at its start was left out")
            return start[len(_BYTE_ORDER_MARK) :]
        if _is_utf_16(start[:_START_BYTES]):
            raise DataError(self.name, "is UTF-16 text; expected UTF-8 (iconv -f UTF-16 -t UTF-8 makes it)")
        return start

    def read_all(self) -> bytes:
        """Read all text that is left; see `whole_lines`."""
        return b"".join(self._pieces(True))

    def _pieces(self, limited: bool) -> Iterator[bytes]:
        found = iter(lambda: self.read(LINES_AT_ONCE), b"")
        return limited_lines(self.name, found) if limited else found

    def whole_lines(self, limited: bool = True) -> Iterator[bytes]:
        """What is left, in blocks of some `LINES_AT_ONCE` bytes that end at line ends, but for the last perhaps.

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


def _is_utf_16(start: bytes) -> bool:
    """Whether text has a byte order mark of UTF-16, or letters of ASCII with a zero byte before or after each."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    even, odd = start[::2], start[1::2]
    zeros = even.count(0), odd.count(0)
    return len(odd) >= 4 and min(zeros) == 0 and max(zeros) > 0.8 * len(odd)


class Output:
    """A file that appears under its name only when complete; or standard output.

    Use as a context manager: leaving it normally renames the temporary file, leaving it by an exception removes it.

    Attributes:
        packing: how it is compressed, as its name says; None if it is not.

    Raises:
        PhraseToolError: the folder cannot be written to, or (from `write` and on leaving) the disk is full.
        ModuleNotFoundError: the package that can compress it is not installed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.packing = packing.packing_for(path)
        if self.packing:
            # It raises here what else would come after hours.
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
        # Through a symbolic link, the file it points to is the one to replace.
        self._target = os.path.realpath(path)
        folder = os.path.dirname(self._target)
        try:
            # A device or a pipe cannot be renamed onto; it is written as it is.
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
            raise PhraseToolError(f"{shown}: is no name of a file; it holds a zero byte") from error

    def __getstate__(self) -> dict[str, Any]:
        # In another process it encodes, and no more.
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self.packing = packing.packing_for(self.path)
        self._temporary = None

    def write(self, data: bytes | ByteArray) -> None:
        """Write bytes that are already in the file's form (compressed, if its name says so)."""
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
        """Text in the file's form, compressed if its name says so; may be called by several threads.

        Nothing stays nothing.
        """
        if not len(text):
            return b""
        return self.packing.compress(text) if self.packing else bytes(text)

    def write_text(self, text: bytes) -> None:
        """Write text, compressed first if the name says so."""
        if self.packing in (None, packing.GZIP):
            self._write(self.encode(text))
            return
        # A stream of a few words costs as much time as one of many.
        self._waiting.append(text)
        self._waiting_bytes += len(text)
        if self._waiting_bytes >= _PACKED_AT_ONCE:
            self._pack_waiting()

    def _pack_waiting(self) -> None:
        if self._waiting:
            text = b"".join(self._waiting)
            self._waiting, self._waiting_bytes = [], 0
            self._write(self.encode(text))

    def flush(self) -> None:
        """Bring what was written to the disk, where there may be no room for it."""
        self._pack_waiting()
        try:
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def discard(self) -> None:
        """Close and forget what was written."""
        with contextlib.suppress(OSError):
            self._file.close()
        if self._temporary:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None

    def _failure(self, error: OSError) -> PhraseToolError:
        if self.path == STANDARD:
            return PhraseToolError(f"standard output: cannot write: {reason(error)}")
        # What goes to a device or a pipe cannot be taken back.
        untouched = "; it is as it was" if self._temporary else ""
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
                    # Before it is closed: until then it is locked, and nobody takes it for dead.
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


# As much is there to be peeked at.
BUFFER_BYTES = 1 << 16


class _Unpacked(io.RawIOBase):
    """An input as a file of Python."""

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
    """Open a file, compressed or not (told by its content), or `-` for standard input.

    Raises:
        DataError: the file cannot be opened; or, from reading, as `Input.read`.
        ModuleNotFoundError: the package that can read it is not installed.
    """
    return cast(BinaryIO, io.BufferedReader(_Unpacked(Input(path)), BUFFER_BYTES))


def check_readable(path: str) -> None:
    """Refuse what `Input` would; of a pipe nothing is taken.

    Raises:
        DataError: the file cannot be opened.
    """
    if not is_pipe(path):
        Input(path).close()


def check_writable(path: str) -> None:
    """Refuse a name under which nothing could be written; nothing is left there, and pipes and devices are let pass.

    Raises:
        PhraseToolError: there is no such folder, it cannot be written to, or its disk is full.
    """
    if is_stream(path):
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise PhraseToolError(f"{path}: cannot write: there is no folder {os.path.dirname(path)}")
    Output(path).discard()
    if shutil.disk_usage(folder).free == 0:
        raise PhraseToolError(f"{path}: cannot write: the disk is full")
