"""Binary language models of kenlm, as `build_binary` writes them: the header and the vocabulary, and the trie.

A file has a header, the vocabulary, the n-grams, and the words as text, which phrasetool does not read.  Facts from
kenlm's source: lm/binary_format.cc (the header), lm/vocab.cc, lm/search_hashed.hh (type `probing`).

In a trie, a 1-gram points to the 2-grams that end with its word, each of these to the 3-grams that end with it, and so
on.  A pointer is the position of the first child; the children end where those of the next entry begin.  Entries are
packed bit by bit: a word, numbers, and the pointer.  Words are ids in the order of their hashes, 0 for the unknown one.
Facts from kenlm's source:
lm/search_trie.hh and lm/search_trie.cc (layout), lm/trie.hh and lm/trie.cc (entries), lm/bhiksha.hh and lm/bhiksha.cc
(pointers), lm/quantize.hh (numbers), lm/vocab.cc (`SortedVocabulary`), util/bit_packing.hh (bits).
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray, FloatArray, Int32Array, Int64Array, prefix_sums
from phrasetool.smt.language_model.automaton import LanguageModel
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
    word_hashes,
)
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, UNKNOWN_WORD, BackoffModel, NgramTable

MAGIC = b"mmap lm http"
_BEFORE_VERSION = b"mmap lm http://kheafield.com/code format version "
_INCOMPLETE = b"mmap lm http://kheafield.com/code incomplete"
_VERSION = 5
# The text, padded to a multiple of 8 bytes, and numbers with known bytes; `_FIXED` has the fields that differ by file.
_SANITY = struct.Struct("<56s3f3IQ")
_EXPECTED = (_BEFORE_VERSION + b"5\n", 0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
_FIXED = struct.Struct("<B3xfIB3xI")
PROBING, REST_PROBING, TRIE = range(3)
# Flags that are added to TRIE: quantised numbers, and shorter pointers.
QUANTISED, ARRAY = 1, 2
_TYPES = 6
_SEARCH_VERSION = {PROBING: 0, TRIE: 1}
REBUILD = "make it again from the ARPA text, `build_binary lm.arpa lm.binary`"


@dataclass(frozen=True)
class Header:
    """Header of a binary language model.

    Attributes:
        kind: PROBING, REST_PROBING, or TRIE plus the applicable flags of QUANTISED and ARRAY.
        multiplier: number of slots of a hash table per entry.
        counts: number of n-grams of each order.
        size: size of the header in bytes.
    """

    kind: int
    multiplier: float
    counts: tuple[int, ...]
    size: int


def is_kenlm_binary(path: str) -> bool:
    """Whether a file begins with the magic bytes of kenlm's binary files."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def map_file(path: str) -> ByteArray:
    """Map a file into memory; its bytes are read on access.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        raise DataError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def has_rest_costs(data: ByteArray) -> bool:
    """Whether a binary file is of the type `probing` with rest costs, which only kenlm itself reads."""
    begin = data[: _SANITY.size + _FIXED.size].tobytes()
    return len(begin) == _SANITY.size + _FIXED.size and _FIXED.unpack_from(begin, _SANITY.size)[2] == REST_PROBING


def read_header(path: str, data: ByteArray) -> Header:
    """Read the header of a file.

    Raises:
        DataError: the file is incomplete, of another version, or of an unsupported type.
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
        variant = "with rest costs (build_binary -r)" if kind == REST_PROBING else f"of type {kind}"
        raise DataError(path, f"a binary file of kenlm {variant} is not supported; {REBUILD}")
    if search_version != _SEARCH_VERSION[min(kind, TRIE)]:
        raise DataError(path, f"a binary file of kenlm whose tables are of version {search_version}; {REBUILD}")
    size = _SANITY.size + _FIXED.size + 8 * order
    if not 2 <= order <= MAX_ORDER or not 1 <= multiplier < 1e3 or len(data) < size:
        raise DataError(path, f"this binary file of kenlm is damaged; {REBUILD}")
    counts = tuple(data[size - 8 * order : size].view("<u8").tolist())
    if max(counts) >= 1 << 48 or not min(counts[:1]):
        raise DataError(path, f"this binary file of kenlm is damaged; {REBUILD}")
    return Header(kind, multiplier, counts, -(-size // 8) * 8)


def check_size(path: str, data: ByteArray, expected: int) -> None:
    """Raise an error if a file is shorter than its header implies.

    Raises:
        DataError: the file is shorter.
    """
    if len(data) < expected:
        message = f"this binary file of kenlm has {len(data):,} bytes, but its header implies {expected:,}"
        raise DataError(path, f"{message}; is the file truncated?")


def _slots(entries: int, multiplier: float) -> int:
    """Return the number of slots of a hash table; kenlm multiplies in single precision."""
    return max(entries + 1, int(np.float32(multiplier) * np.float32(entries)))


def hashed_model(path: str, data: ByteArray, header: Header) -> HashedModel:
    """Return the model of a file of type `probing`.

    Raises:
        DataError: the file is truncated.
    """
    counts = header.counts
    words = _slots(counts[0], header.multiplier)
    vocabulary = header.size // 4 + 2
    layout = np.zeros(LAYOUT_WIDTH, np.int64)
    layout[ORDER], layout[UNIGRAMS] = len(counts), vocabulary + words * WORD_SLOT
    # One more entry than words, because a model may lack the unknown word.
    offset = int(layout[UNIGRAMS]) + 2 * (counts[0] + 1)
    for n, count in enumerate(counts[1:], 2):
        slots = _slots(count, header.multiplier)
        layout[TABLES + 2 * (n - 2)], layout[TABLES + 2 * (n - 2) + 1] = offset, slots
        offset += slots * (LONGEST_SLOT if n == len(counts) else MIDDLE_SLOT)
    check_size(path, data, 4 * offset)
    if int(data[header.size : header.size + 4].view("<u4")[0]):
        raise DataError(path, f"a binary file of kenlm whose vocabulary is of another version; {REBUILD}")
    return HashedModel(data[: 4 * offset].view("<u4"), layout, (vocabulary, words), counts[0] + 1)


_QUANTISED_VERSION, _ARRAY_VERSION = 2, 0
_UNIGRAM = np.dtype([("score", "<f4"), ("backoff", "<f4"), ("next", "<u8")])
# Number of entries that are unpacked at a time.
_BLOCK = 1 << 20
_SIGN = np.uint32(0x80000000)
Places = npt.NDArray[np.uint64]


class _Bits:
    """Reader of numbers that are packed bit by bit in a file.

    Args:
        data: the file.
    """

    def __init__(self, data: ByteArray) -> None:
        # The 8-byte integer that begins at each byte.
        self._eight: Places = np.ndarray(max(len(data) - 7, 0), "<u8", data, 0, (1,))

    def read(self, places: Places, width: int) -> Places:
        """Return the numbers of `width` bits (at most 57) at these bit offsets, uint64."""
        numbers: Places = self._eight[places >> np.uint64(3)] >> (places & np.uint64(7))
        return numbers & np.uint64((1 << width) - 1)


@dataclass(frozen=True)
class _Order:
    """Location and packing of the entries of an order.

    Attributes:
        first: bit offset of the first entry.
        word_bits, number_bits, next_bits: widths of the parts of an entry, in this order.
        numbers: tables of the quantised probabilities and back-offs; None without quantisation.
        high: entries at which the high part of pointers increases, uint64; None if entries hold whole pointers.
    """

    first: int
    word_bits: int
    number_bits: int
    next_bits: int
    numbers: tuple[FloatArray, FloatArray] | None
    high: Places | None

    def places(self, entries: Int64Array) -> Places:
        """Return the bit offsets of entries."""
        return (self.first + entries * (self.word_bits + self.number_bits + self.next_bits)).astype(np.uint64)

    def words(self, bits: _Bits, entries: Int64Array) -> Int64Array:
        """Return the ids of the words of entries."""
        return bits.read(self.places(entries), self.word_bits).astype(np.int64)

    def pointers(self, bits: _Bits, entries: Int64Array) -> Int64Array:
        """Return the first child of each entry, a position among the entries of the next order."""
        pointers = bits.read(self.places(entries) + np.uint64(self.word_bits + self.number_bits), self.next_bits)
        if self.high is not None:
            pointers |= (np.searchsorted(self.high, entries, "right") - 1).astype(np.uint64) << np.uint64(
                self.next_bits
            )
        return pointers.astype(np.int64)

    def scores(self, bits: _Bits, entries: Int64Array) -> tuple[FloatArray, FloatArray]:
        """Return log10 probabilities and back-offs of entries; back-offs of the highest order are 0."""
        offsets = self.places(entries) + np.uint64(self.word_bits)
        none = np.zeros(len(entries), np.float32)
        if self.numbers is None:
            scores = (bits.read(offsets, 31).astype(np.uint32) | _SIGN).view(np.float32)
            highest = self.number_bits == 31
            backoffs = none if highest else bits.read(offsets + np.uint64(31), 32).astype(np.uint32).view(np.float32)
            return scores, backoffs
        scores, backoffs = self.numbers
        # The back-off comes first; the highest order has no table of them.
        low = len(backoffs).bit_length() - 1 if len(backoffs) else 0
        probabilities = scores[bits.read(offsets + np.uint64(low), len(scores).bit_length() - 1)]
        return probabilities, backoffs[bits.read(offsets, low)] if low else none


class _Trie:
    """The trie of a file, read from its start to its end.

    Args:
        path: the file.
        data: its bytes.
        header: its header.

    Raises:
        DataError: the file is truncated, or of an unsupported version.
    """

    def __init__(self, path: str, data: ByteArray, header: Header) -> None:
        self._path, self._data, self._counts = path, data, header.counts
        self._kind = header.kind - TRIE
        self._at = header.size
        self.bits = _Bits(data)
        # The number of hashes, then space for one hash per word; the unknown word has none.
        hashes: Places = self._take(8 * (header.counts[0] + 1)).view("<u8")
        self.hashes = hashes[1 : 1 + int(min(hashes[0], header.counts[0]))]
        numbers = self._quantised() if self._kind & QUANTISED else [None] * (len(header.counts) - 1)
        self.unigrams = self._take(_UNIGRAM.itemsize * (header.counts[0] + 2)).view(_UNIGRAM)
        self.orders = [self._order(n, numbers[n - 2]) for n in range(2, len(header.counts) + 1)]

    def _take(self, size: int) -> ByteArray:
        check_size(self._path, self._data, self._at + size)
        self._at += size
        return self._data[self._at - size : self._at]

    def _check_version(self, version: int, expected: int, part: str) -> None:
        if version != expected:
            raise DataError(self._path, f"a binary file of kenlm whose {part} is of version {version}; {REBUILD}")

    def _quantised(self) -> list[tuple[FloatArray, FloatArray] | None]:
        """Read the tables of quantised numbers of each order from 2 on."""
        version, score_bits, backoff_bits, *_ = self._take(8).tolist()
        self._check_version(version, _QUANTISED_VERSION, "quantisation")
        if not (1 <= score_bits <= 25 and 1 <= backoff_bits <= 25):
            raise DataError(self._path, f"this binary file of kenlm is damaged; {REBUILD}")
        tables: list[tuple[FloatArray, FloatArray] | None] = []
        for n in range(2, len(self._counts) + 1):
            scores = self._take(4 << score_bits).view("<f4")
            backoffs = self._take(4 << backoff_bits if n < len(self._counts) else 0).view("<f4")
            tables.append((scores, backoffs))
        return tables

    def _order(self, n: int, numbers: tuple[FloatArray, FloatArray] | None) -> _Order:
        counts, highest = self._counts, n == len(self._counts)
        word_bits = counts[0].bit_length()
        if numbers is None:
            number_bits = 31 if highest else 63
        else:
            number_bits = sum(len(table).bit_length() - 1 for table in numbers if len(table))
        next_bits, high = 0, None
        if not highest:
            next_bits = counts[n].bit_length()
            if self._kind & ARRAY:
                next_bits, high = self._array(counts[n - 1] + 1, counts[n])
        first = 8 * self._at
        self._take(((1 + counts[n - 1]) * (word_bits + number_bits + next_bits) + 7) // 8 + 8)
        return _Order(first, word_bits, number_bits, next_bits, numbers, high)

    def _array(self, entries: int, last: int) -> tuple[int, Places]:
        """Return the number of pointer bits in an entry, and the entries at which the high part increases."""
        version, most, *_ = self._data[self._at : self._at + 8].tolist() + [0, 0]
        self._check_version(version, _ARRAY_VERSION, "array of pointers")
        required = last.bit_length()
        costs = [(last >> (required - chop)) * 64 - entries * chop for chop in range(min(required, most) + 1)]
        chop = costs.index(min(costs))
        count = (last >> (required - chop)) + 1
        aligned = -(-self._at // 8) * 8 + 8
        self._take(8 * (1 + count) + 7)
        return required - chop, self._data[aligned : aligned + 8 * count].view("<u8")

    def ids(self, words: list[bytes]) -> Int64Array:
        """Return the ids of words, 0 for unknown ones."""
        hashes = word_hashes(words)
        first, end = (np.searchsorted(self.hashes, hashes, side) for side in ("left", "right"))
        ids: Int64Array = np.where(first < end, first + 1, 0)
        return ids


def trie_model(path: str, data: ByteArray, header: Header, vocabulary: Collection[bytes]) -> LanguageModel:
    """Read the n-grams of a file whose words are all in a vocabulary.

    Args:
        path: the file.
        data: its bytes.
        header: its header.
        vocabulary: the words.

    Raises:
        DataError: the file is truncated or damaged.
        ValueError: the model has no `<s>` or no `</s>`, or lacks the context of an n-gram.
    """
    trie = _Trie(path, data, header)
    words = list(dict.fromkeys([BEGIN_WORD, END_WORD, *vocabulary]))
    ids = trie.ids(words)
    kept = np.flatnonzero(ids)
    words = [UNKNOWN_WORD, *(words[i] for i in kept)]
    known = np.concatenate([[0], ids[kept]])
    renumbered = np.full(header.counts[0] + 1, -1, np.int32)
    if known.max() >= len(renumbered):
        raise DataError(path, f"this binary file of kenlm is damaged; {REBUILD}")
    renumbered[known] = np.arange(len(known), dtype=np.int32)
    unigrams = trie.unigrams[known]
    tables = [NgramTable(np.arange(len(known), dtype=np.int32)[:, None], unigrams["score"], unigrams["backoff"])]
    paths: Int32Array = tables[0].words
    begins, ends = (trie.unigrams["next"][known + i].astype(np.int64) for i in (0, 1))
    for n, order in enumerate(trie.orders, 2):
        # Each entry of this order has exactly one parent.
        wrong = begins.min(initial=0) < 0 or (begins > ends).any() or ends.max(initial=0) > header.counts[n - 1]
        if wrong or (ends - begins).sum() > header.counts[n - 1]:
            raise DataError(path, f"this binary file of kenlm is damaged; {REBUILD}")
        paths, entries = _children(trie, order, paths, begins, ends, renumbered)
        scores, backoffs = order.scores(trie.bits, entries)
        # A path has the last word of the n-gram first.
        tables.append(NgramTable(np.ascontiguousarray(paths[:, ::-1]), scores, backoffs))
        if n < len(header.counts):
            begins, ends = order.pointers(trie.bits, entries), order.pointers(trie.bits, entries + 1)
    return LanguageModel(BackoffModel(words, tables))


def _children(
    trie: _Trie, order: _Order, paths: Int32Array, begins: Int64Array, ends: Int64Array, renumbered: Int32Array
) -> tuple[Int32Array, Int64Array]:
    """Return the children that are known words: their n-grams, last word first, and their positions in the order."""
    sizes = ends - begins
    totals = prefix_sums(sizes)
    child_paths, child_entries = [np.zeros((0, paths.shape[1] + 1), np.int32)], [np.zeros(0, np.int64)]
    first = 0
    while first < len(paths):
        # A parent with more than `_BLOCK` children forms its own block.
        last = max(first + 1, int(np.searchsorted(totals, totals[first] + _BLOCK, "right")) - 1)
        parents = np.repeat(np.arange(first, last), sizes[first:last])
        entries = begins[parents] + np.arange(totals[first], totals[last]) - totals[parents]
        words = order.words(trie.bits, entries)
        # A damaged file may have ids beyond the table.
        words = np.where(words < len(renumbered), renumbered[np.minimum(words, len(renumbered) - 1)], -1)
        kept = words >= 0
        new = np.column_stack([paths[parents[kept]], words[kept]]).astype(np.int32)
        child_paths.append(new)
        child_entries.append(entries[kept])
        first = last
    return np.concatenate(child_paths), np.concatenate(child_entries)
