"""The n-grams of a corpus, counted as Kneser-Ney smoothing needs them, in memory or on disk.

Sentences are concatenated in one array, each as `<s> w1 .. wm </s>`.  The n-grams of order n are separated by sorting
one 64-bit key per position: the n-gram without its first word, which has a number already, and that word.  Thus n-grams
are sorted by their last word, then by the previous one, and so on, and every order costs one sort.

On disk, text and tables are in files, of which only a part is in memory at a time.  The positions are partitioned by
the same keys, and each part is sorted in memory; the numbers of the n-grams are then partitioned by position, so that
the next order reads them in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phrasetool.disk.columns import DiskColumn, Partitions, Records, even_cuts, parts_for, sampled_cuts
from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, UNKNOWN_WORD

# The first words of every vocabulary used for counting.
MARKERS = [UNKNOWN_WORD, BEGIN_WORD, END_WORD]
UNKNOWN_ID, BEGIN_ID, END_ID = range(3)
_PLACE = [("key", np.int64), ("place", np.int64), ("context", np.int32)]
_ROW = [("place", np.int64), ("row", np.int32)]
# Bytes that a record takes while its part is processed: itself, its sorted copy, and derived values.
_PLACE_BYTES, _ROW_BYTES = 120, 40
_LEAST_BLOCK, _BLOCK = 1 << 10, 1 << 18


@dataclass(frozen=True)
class NgramCounts:
    """The distinct n-grams of one order n, N of them.

    Attributes:
        order: n.
        raw: int64, shape (N,), number of occurrences.
        adjusted: int64, shape (N,).  For the highest order, and for n-grams that begin with `<s>`: the number of
            occurrences.  For others: the number of distinct words before them (Kneser & Ney 1995; Chen & Goodman 1998,
            section 2.7).
        contexts: int32, shape (N,), row of the n-gram without its last word in the table of order n - 1.
        suffixes: int32, shape (N,), row of the n-gram without its first word in the table of order n - 1.
        places: int64, shape (N,), position in the text of the last word of one occurrence.
    """

    order: int
    raw: Int64Array
    adjusted: Int64Array
    contexts: Int32Array
    suffixes: Int32Array
    places: Int64Array

    def __len__(self) -> int:
        return len(self.raw)


@dataclass(frozen=True)
class CorpusCounts:
    """All n-grams of a corpus.

    Attributes:
        text: int32, the sentences with their markers.
        orders: the n-grams of order 1, 2 and so on; those of order 1 are all words of the vocabulary in id order, seen
            or not.
    """

    text: Int32Array
    orders: list[NgramCounts]

    def words(self, order: int, rows: Int64Array) -> Int32Array:
        """Return the word ids of some n-grams, int32, shape (len(rows), order)."""
        positions = self.orders[order - 1].places[rows]
        if order == 1:
            return rows.astype(np.int32)[:, None]
        return self.text[positions[:, None] + np.arange(1 - order, 1)]


def mark_sentences(sentences: Phrases) -> tuple[Int32Array, Int32Array]:
    """Return the text with markers, and the position of every word in its sentence (`<s>` is at 0)."""
    lengths = sentences.lengths
    starts = sentences.offsets[:-1] + 2 * np.arange(len(sentences))
    text = np.full(len(sentences.words) + 2 * len(sentences), END_ID, np.int32)
    text[starts] = BEGIN_ID
    inner = np.ones(len(text), np.bool_)
    inner[starts] = False
    inner[starts + lengths + 1] = False
    text[inner] = sentences.words
    return text, (np.arange(len(text)) - np.repeat(starts, lengths + 2)).astype(np.int32)


def count_ngrams(sentences: Phrases, vocabulary: int, order: int) -> CorpusCounts:
    """Count the n-grams of all orders up to `order`.

    Memory: some 50 bytes per word of the corpus, and 40 bytes per distinct n-gram.

    Args:
        sentences: word ids of 3 or more; the ids 0, 1 and 2 are those of `MARKERS`.
        vocabulary: the number of words, markers included.
        order: 1 or more.

    Raises:
        ValueError: an id is outside the vocabulary or is a marker's, or `order` is below 1.
    """
    if order < 1:
        raise ValueError(f"the order is {order}, expected 1 or more")
    if len(sentences.words) and not len(MARKERS) <= sentences.words.min() <= sentences.words.max() < vocabulary:
        raise ValueError(f"a word id is outside {len(MARKERS)}..{vocabulary - 1}")
    text, depths = mark_sentences(sentences)
    positions = np.flatnonzero(depths > 0)
    raw = np.bincount(text[positions], minlength=vocabulary)
    nowhere = np.zeros(vocabulary, np.int32)
    # Row in the table of the current order, for every position of the text.
    rows = text
    orders = [NgramCounts(1, raw, raw, nowhere, nowhere, np.zeros(vocabulary, np.int64))]
    for n in range(2, order + 1):
        positions = positions[depths[positions] >= n - 1]
        keys = rows[positions].astype(np.int64) << 32 | text[positions - (n - 1)]
        permutation = np.argsort(keys)
        keys = keys[permutation]
        new = np.concatenate([np.ones(min(len(keys), 1), np.bool_), keys[1:] != keys[:-1]])
        firsts = np.flatnonzero(new)
        sorted_positions = positions[permutation]
        del permutation
        examples = sorted_positions[firsts]
        raw = np.diff(np.append(firsts, len(keys)))
        suffixes = (keys[firsts] >> 32).astype(np.int32)
        orders[-1] = _adjust(orders[-1], suffixes, text)
        orders.append(NgramCounts(n, raw, raw, rows[examples - 1], suffixes, examples))
        del keys
        rows = np.empty(len(text), np.int32)
        rows[sorted_positions] = np.cumsum(new, dtype=np.int32) - 1
        del sorted_positions
    return CorpusCounts(text, orders)


def _adjust(counts: NgramCounts, suffixes: Int32Array, text: Int32Array) -> NgramCounts:
    """Replace raw counts by the numbers of distinct words before, given the suffixes of the next order's n-grams."""
    adjusted = np.bincount(suffixes, minlength=len(counts))
    if counts.order > 1:
        begins = text[counts.places - (counts.order - 1)] == BEGIN_ID
        adjusted[begins] = counts.raw[begins]
    return NgramCounts(counts.order, counts.raw, adjusted, counts.contexts, counts.suffixes, counts.places)


@dataclass(frozen=True)
class DiskNgrams:
    """The distinct n-grams of one order n, N of them, in the order and with the numbers of `NgramCounts`.

    Attributes:
        order: n.
        raw, adjusted: int64, N rows.
        contexts, suffixes: int32, N rows.
        words: int32, N rows of n ids.
    """

    order: int
    raw: DiskColumn
    adjusted: DiskColumn
    contexts: DiskColumn
    suffixes: DiskColumn
    words: DiskColumn

    def __len__(self) -> int:
        return len(self.raw)

    def words_of(self, first: int, last: int) -> Int32Array:
        """Return the word ids of rows first..last - 1, shape (R, n)."""
        words: Int32Array = self.words.read(first, last).reshape(-1, self.order)
        return words


class DiskText:
    """A corpus on disk: sentences with markers.

    Args:
        folder: folder of the unnamed files; None for the system's folder of temporary files.
        memory: bytes that counting may take, in addition to the words themselves.
    """

    def __init__(self, folder: str | None, memory: int) -> None:
        self.folder, self.memory = folder, memory
        self.column = DiskColumn(folder, np.int32)
        self.block = int(np.clip(memory // 400, _LEAST_BLOCK, _BLOCK))

    def append(self, sentences: Phrases) -> None:
        """Add sentences, word ids of 3 or more.

        Raises:
            PhraseToolError: the disk is full.
        """
        self.column.append(mark_sentences(sentences)[0])

    def places(self, rows: DiskColumn, order: int) -> Iterator[tuple[Int64Array, Int64Array, Int32Array]]:
        """Yield the end positions of n-grams of an order, their keys, and the rows of their contexts, block by block.

        Args:
            rows: int32, row of the n-gram of the order below that ends at each position.
            order: n, 2 or more.
        """
        for first in range(0, len(self.column), self.block):
            before = min(first, order - 1)
            words = np.full(order - 1 - before, BEGIN_ID, np.int32)
            words = np.concatenate([words, self.column.read(first - before, first + self.block)])
            size = len(words) - (order - 1)
            # None of the last n - 1 words of an n-gram begins a sentence.
            inside = np.ones(size, np.bool_)
            for back in range(order - 1):
                inside &= words[order - 1 - back : order - 1 - back + size] != BEGIN_ID
            contexts = rows.read(max(first - 1, 0), first + self.block)
            contexts = contexts if first else np.concatenate([np.zeros(1, np.int32), contexts])
            at = np.flatnonzero(inside)
            yield first + at, contexts[at + 1].astype(np.int64) << 32 | words[at], contexts[at]


def count_on_disk(text: DiskText, vocabulary: int, order: int) -> list[DiskNgrams]:
    """Count the n-grams of all orders up to `order`.

    Args:
        text: the sentences.
        vocabulary: the number of words, markers included.
        order: 1 or more.

    Raises:
        PhraseToolError: the disk is full.
    """
    folder = text.folder
    raw = np.zeros(vocabulary, np.int64)
    for piece in text.column.pieces():
        raw += np.bincount(piece[piece != BEGIN_ID], minlength=vocabulary)
    nowhere = np.zeros(vocabulary, np.int32)
    counts = _column(folder, raw)
    words = _column(folder, np.arange(vocabulary, dtype=np.int32))
    orders = [DiskNgrams(1, counts, counts, _column(folder, nowhere), _column(folder, nowhere), words)]
    rows = text.column
    for n in range(2, order + 1):
        table, rows = _next_order(text, orders[-1], rows, last=n == order)
        orders[-1] = _adjusted(orders[-1], table.suffixes, folder)
        orders.append(table)
    return orders


def _column(folder: str | None, values: Int32Array | Int64Array) -> DiskColumn:
    column = DiskColumn(folder, values.dtype)
    column.append(values)
    return column


def _next_order(text: DiskText, lower: DiskNgrams, rows: DiskColumn, last: bool) -> tuple[DiskNgrams, DiskColumn]:
    """Return the n-grams of the next order, and the row of the one that ends at each position, unless `last`."""
    folder, order, size = text.folder, lower.order + 1, len(text.column)
    raw = DiskColumn(folder, np.int64)
    contexts, suffixes = DiskColumn(folder, np.int32), DiskColumn(folder, np.int32)
    words = DiskColumn(folder, np.int32, order)
    parts = parts_for(size, _PLACE_BYTES, text.memory)
    cuts = sampled_cuts(lambda: (keys for _, keys, _ in text.places(rows, order)), size, parts)
    by_key = Partitions(folder, _PLACE, cuts)
    for positions, keys, context_rows in text.places(rows, order):
        by_key.add(keys, key=keys, place=positions, context=context_rows)
    by_place = Partitions(folder, _ROW, even_cuts(size, parts_for(size, _ROW_BYTES, text.memory)))
    for part in range(len(by_key)):
        records = by_key.take(part)
        records = records[np.argsort(records["key"], kind="stable")]
        keys = records["key"]
        new = np.ones(len(keys), np.bool_)
        new[1:] = keys[1:] != keys[:-1]
        firsts = np.flatnonzero(new)
        if not last:
            by_place.add(records["place"], place=records["place"], row=len(raw) + np.cumsum(new) - 1)
        raw.append(np.diff(np.append(firsts, len(keys))))
        contexts.append(records["context"][firsts])
        ends = (keys[firsts] >> 32).astype(np.int32)
        suffixes.append(ends)
        words.append(_with_first(lower, ends, keys[firsts]))
    return DiskNgrams(order, raw, raw, contexts, suffixes, words), _by_place(by_place, size, folder, last)


def _with_first(lower: DiskNgrams, suffixes: Int32Array, keys: Int64Array) -> Int32Array:
    """Return the words of n-grams: the first ones, from the keys, and those of the suffixes, which ascend."""
    words = np.empty((len(keys), lower.order + 1), np.int32)
    words[:, 0] = keys & 0xFFFFFFFF
    if len(keys):
        words[:, 1:] = lower.words_of(int(suffixes[0]), int(suffixes[-1]) + 1)[suffixes - suffixes[0]]
    return words


def _by_place(records: Partitions, size: int, folder: str | None, last: bool) -> DiskColumn:
    """Return the row at each position; 0 where there is none."""
    rows = DiskColumn(folder, np.int32)
    for part, (first, end) in enumerate(records.bounds(0, 0 if last else size)):
        part_records: Records = records.take(part)
        block = np.zeros(end - first, np.int32)
        block[part_records["place"] - first] = part_records["row"]
        rows.append(block)
    return rows


def _adjusted(counts: DiskNgrams, suffixes: DiskColumn, folder: str | None) -> DiskNgrams:
    """Replace raw counts by the numbers of distinct words before, given the suffixes of the next order's n-grams."""
    adjusted = DiskColumn(folder, np.int64)
    # Suffixes ascend; the last one of a piece may occur in the next piece, too.
    current, waiting = 0, 0
    for piece in suffixes.pieces():
        occurrences = np.bincount(piece - current)
        occurrences[0] += waiting
        _append_adjusted(adjusted, counts, occurrences[:-1].astype(np.int64))
        current, waiting = int(piece[-1]), int(occurrences[-1])
    rest = np.zeros(len(counts) - current, np.int64)
    rest[:1] = waiting
    _append_adjusted(adjusted, counts, rest)
    return DiskNgrams(counts.order, counts.raw, adjusted, counts.contexts, counts.suffixes, counts.words)


def _append_adjusted(adjusted: DiskColumn, counts: DiskNgrams, occurrences: Int64Array) -> None:
    first = len(adjusted)
    if counts.order > 1:
        begins = counts.words_of(first, first + len(occurrences))[:, 0] == BEGIN_ID
        occurrences[begins] = counts.raw.read(first, first + len(occurrences))[begins]
    adjusted.append(occurrences)
