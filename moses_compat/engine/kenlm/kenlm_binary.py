"""Binary language models of kenlm, as `build_binary` writes them: read as they lie in the file.

A head that says what follows, the vocabulary, the n-grams, and the words as text, which nothing needs.  What kenlm's
source says of it: lm/binary_format.cc (the head), lm/vocab.cc, lm/search_hashed.hh (type `probing`).
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass

import numpy as np

from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray
from phrasetool.smt.language_model.hashed import (
    LAYOUT_WIDTH,
    LONGEST_SLOT,
    MAX_ORDER,
    MIDDLE_SLOT,
    ORDER,
    TABLES,
    UNIGRAMS,
    WORD_SLOT,
    HashedModel,
)

MAGIC = b"mmap lm http"
_BEFORE_VERSION = b"mmap lm http://kheafield.com/code format version "
_INCOMPLETE = b"mmap lm http://kheafield.com/code incomplete"
_VERSION = 5
# The text and what fills it up to 8 bytes; numbers of which each byte is known; then what differs between files.
_SANITY = struct.Struct("<56s3f3IQ")
_EXPECTED = (_BEFORE_VERSION + b"5\n", 0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
_FIXED = struct.Struct("<B3xfIB3xI")
PROBING, REST_PROBING, TRIE = range(3)
# Of the trie, with quantised numbers and with shorter pointers.
QUANTISED, ARRAY = 1, 2
_TYPES = 6
_SEARCH_VERSION = {PROBING: 0, TRIE: 1}
REBUILD = "make it again from the ARPA text, `build_binary lm.arpa lm.binary`"


@dataclass(frozen=True)
class Head:
    """What a file says of itself.

    Attributes:
        kind: PROBING, REST_PROBING, or TRIE plus what there is of QUANTISED and ARRAY.
        multiplier: slots of a hash table for each entry.
        counts: n-grams of each order.
        size: bytes of the head.
    """

    kind: int
    multiplier: float
    counts: tuple[int, ...]
    size: int


def is_kenlm_binary(path: str) -> bool:
    """Whether a file begins as kenlm's binary files do."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def mapped(path: str) -> ByteArray:
    """The bytes of a file, read when they are looked at.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        raise DataError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def read_head(path: str, data: ByteArray) -> Head:
    """Read what a file says of itself.

    Raises:
        DataError: it is not complete, of another version, or of a type that is not known.
    """
    begin = data[: _SANITY.size + _FIXED.size].tobytes()
    if begin.startswith(_INCOMPLETE):
        raise DataError(path, f"build_binary did not finish this file of kenlm; {REBUILD}")
    version = begin[len(_BEFORE_VERSION) :].split(b"\n")[0]
    if begin.startswith(_BEFORE_VERSION) and version.isdigit() and int(version) != _VERSION:
        message = f"a binary file of kenlm's format {int(version)}; expected format {_VERSION}"
        raise DataError(path, f"{message}: {REBUILD}")
    if len(begin) < _SANITY.size + _FIXED.size:
        raise DataError(path, f"this binary file of kenlm is truncated; {REBUILD}")
    text, *numbers = _SANITY.unpack_from(begin)
    if (text.rstrip(b"\0"), *numbers) != _EXPECTED:
        raise DataError(path, f"a binary file of kenlm from another kind of machine; {REBUILD}")
    order, multiplier, kind, _, search_version = _FIXED.unpack_from(begin, _SANITY.size)
    if kind >= _TYPES or kind == REST_PROBING:
        what = "with rest costs (build_binary -r)" if kind == REST_PROBING else f"of type {kind}"
        raise DataError(path, f"a binary file of kenlm {what} is not supported; {REBUILD}")
    if search_version != _SEARCH_VERSION[min(kind, TRIE)]:
        raise DataError(path, f"a binary file of kenlm whose tables are of version {search_version}; {REBUILD}")
    size = _SANITY.size + _FIXED.size + 8 * order
    if not 2 <= order <= MAX_ORDER or not 1 <= multiplier < 1e3 or len(data) < size:
        raise DataError(path, f"this binary file of kenlm is damaged; {REBUILD}")
    counts = tuple(data[size - 8 * order : size].view("<u8").tolist())
    if max(counts) >= 1 << 48 or not min(counts[:1]):
        raise DataError(path, f"this binary file of kenlm is damaged; {REBUILD}")
    return Head(kind, multiplier, counts, -(-size // 8) * 8)


def check_size(path: str, data: ByteArray, expected: int) -> None:
    """Refuse a file that is shorter than its head says.

    Raises:
        DataError: it is.
    """
    if len(data) < expected:
        message = f"this binary file of kenlm has {len(data):,} bytes, and its head speaks of {expected:,}: truncated?"
        raise DataError(path, message)


def _slots(entries: int, multiplier: float) -> int:
    """The slots of a hash table; kenlm multiplies in single precision."""
    return max(entries + 1, int(np.float32(multiplier) * np.float32(entries)))


def hashed_model(path: str, data: ByteArray, head: Head) -> HashedModel:
    """The model of a file of type `probing`.

    Raises:
        DataError: the file is truncated.
    """
    counts = head.counts
    words = _slots(counts[0], head.multiplier)
    vocabulary = head.size // 4 + 2
    layout = np.zeros(LAYOUT_WIDTH, np.int64)
    layout[ORDER], layout[UNIGRAMS] = len(counts), vocabulary + words * WORD_SLOT
    # One more than there are words, for a model that has no unknown word.
    place = int(layout[UNIGRAMS]) + 2 * (counts[0] + 1)
    for n, count in enumerate(counts[1:], 2):
        slots = _slots(count, head.multiplier)
        layout[TABLES + 2 * (n - 2)], layout[TABLES + 2 * (n - 2) + 1] = place, slots
        place += slots * (LONGEST_SLOT if n == len(counts) else MIDDLE_SLOT)
    check_size(path, data, 4 * place)
    if int(data[head.size : head.size + 4].view("<u4")[0]):
        raise DataError(path, f"a binary file of kenlm whose vocabulary is of another version; {REBUILD}")
    return HashedModel(data[: 4 * place].view("<u4"), layout, (vocabulary, words), counts[0] + 1)
