"""The two texts that are searched: each different sentence once, in an order that suits encoders."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import overload

import numpy as np

from moses_compat.files.names import STANDARD, same_file
from moses_compat.files.streams import Input
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Int64Array
from phrasetool.text_encoders.vector_store import StoredPhrases
from phrasetool.text_splitting import single_spaced, split_lines
from phrasetool.vocabulary import unescape
from phrasetool.watch import NOBODY, Watch

_DIGEST = 16


@dataclass(frozen=True)
class MiningText:
    """One side; its lines stand in memory one after another, 30 bytes a line more than they have.

    Attributes:
        name: of the file, for messages.
        lines: how many there are.
        empty: how many have no word.
        rows: of each different sentence, the line where it stands first: shortest first, then by a hash.
        keys: uint64, a hash of each, in the same order.
    """

    name: str
    lines: int
    empty: int
    rows: Int64Array
    keys: np.ndarray[tuple[int], np.dtype[np.uint64]]
    _text: bytearray
    _offsets: Int64Array
    _id_ends: Int64Array

    def __len__(self) -> int:
        return len(self.rows)

    def written(self, row: int) -> bytes:
        """A sentence as it stands in the file, tabs as spaces."""
        line = int(self.rows[row])
        return bytes(self._text[self._id_ends[line] : self._offsets[line + 1]])

    def name_of(self, row: int) -> bytes:
        """The name that stands before a sentence; empty without names."""
        line = int(self.rows[row])
        return bytes(self._text[self._offsets[line] : self._id_ends[line]])

    def plain(self, row: int) -> str:
        """The words of a sentence, escapes undone, with a space between."""
        return plain_words(self.written(row)).decode()


def plain_words(text: bytes) -> bytes:
    """Words with a space between, Moses' escapes undone."""
    return single_spaced(unescape(text) if b"&" in text else text)


class RowTexts(Sequence[str]):
    """The different sentences of a side, made when they are looked at.

    Args:
        text: the side.
        ready: from the words of a sentence to the text that is encoded.
    """

    def __init__(self, text: MiningText, ready: Callable[[str], str]) -> None:
        self._text, self._ready = text, ready

    def __len__(self) -> int:
        return len(self._text)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[row] for row in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._ready(self._text.plain(place))


def read_sides(source: str, target: str, ids: bool, watch: Watch = NOBODY) -> tuple[MiningText, MiningText]:
    """Read both texts, which need not have equally many lines.

    Args:
        source, target: files, compressed or not; one may be `-`, standard input.
        ids: a name and a tab stand before each sentence, as in the files of BUCC.
        watch: follows the work.

    Raises:
        DataError: a file cannot be read, is not UTF-8, has no sentence, or a line without a name.
        PhraseToolError: both are one file, or standard input.
    """
    if source == target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides")
    if same_file(source, target):
        raise PhraseToolError(f"{target}: is the file of the source, too; expected text of the other language")
    return _read(source, ids, watch), _read(target, ids, watch)


def _read(path: str, ids: bool, watch: Watch) -> MiningText:
    text, offsets, id_ends = bytearray(), array("q", [0]), array("q")
    digests, lengths = bytearray(), array("q")
    with Input(path) as file, watch.file(f"read {file.name}", file.size()) as progress:
        name = file.name
        for number, line in enumerate(_lines(file, progress), 1):
            if ids:
                found, tab, line = line.partition(b"\t")
                if not tab or not found.strip(b" "):
                    raise DataError(name, "expected a name, a tab and a sentence", number)
                text += found.strip(b" ")
            id_ends.append(len(text))
            written = line.replace(b"\t", b" ").strip(b" ")
            plain = plain_words(written)
            try:
                plain.decode()
            except UnicodeDecodeError as error:
                raise DataError(name, f"is not UTF-8 (byte {line[error.start] if error.start < len(line) else 0:#04x})",
                                number) from error  # fmt: skip
            text += written
            offsets.append(len(text))
            digests += blake2b(plain, digest_size=_DIGEST).digest()
            lengths.append(len(plain))
    rows, keys = _different(np.frombuffer(digests, "<u8").reshape(-1, 2), np.array(lengths, np.int64))
    if not len(rows):
        raise DataError(name, "there is no sentence in it")
    empty = sum(length == 0 for length in lengths)
    return MiningText(
        name, len(lengths), empty, rows, keys, text, np.array(offsets, np.int64), np.array(id_ends, np.int64)
    )


def _lines(file: Input, progress: Callable[[int, int], None]) -> Iterator[bytes]:
    read = 0
    for block in file.whole_lines():
        lines = split_lines(block)
        yield from lines
        read += len(lines)
        progress(file.position(), read)


def _different(
    digests: np.ndarray[tuple[int, int], np.dtype[np.uint64]], lengths: Int64Array
) -> tuple[Int64Array, np.ndarray[tuple[int], np.dtype[np.uint64]]]:
    """The first line of each different sentence that is not empty, and its key."""
    order = np.lexsort((np.arange(len(digests)), digests[:, 1], digests[:, 0], lengths))
    order = order[lengths[order] > 0]
    first = np.ones(len(order), np.bool_)
    first[1:] = (digests[order][1:] != digests[order][:-1]).any(1)
    rows = order[first]
    return rows, np.ascontiguousarray(digests[rows, 0], np.uint64)


def stored(sides: tuple[MiningText, MiningText], ready: Callable[[str, int], str]) -> StoredPhrases:
    """The sentences as a store of vectors takes them."""
    keys, rows = [], []
    for side in sides:
        order = np.argsort(side.keys, kind="stable")
        keys.append(side.keys[order])
        rows.append(order.astype(np.int64))
    texts = RowTexts(sides[0], lambda text: ready(text, 0)), RowTexts(sides[1], lambda text: ready(text, 1))
    return StoredPhrases((keys[0], keys[1]), (rows[0], rows[1]), texts, np.zeros((0, 3), np.int64))
