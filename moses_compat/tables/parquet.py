"""Lossless conversion between phrase tables and Parquet: one row per line, in the order of the table.

    source, target                           text
    score_1 .. score_S                       float32
    alignment, sparse, properties            the fields as text, null where a line ends before them
    count_target, count_source, count_joint  float64
    extra                                    text after the seventh field
    scores_text, counts_text                 such a field as text, if its numbers would be written differently
    tail                                     blanks, or a carriage return, after the last field
    raw                                      the line's bytes, if they cannot be rebuilt from the columns

`raw` has precedence over the other columns, and a text over numbers.  Rows may be removed, reordered or given more
score columns with any program; the file can still be converted to a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from moses_compat.files.arrow import DAMAGED, number_array, numbers_of, parquet_file, text_array
from moses_compat.files.paths import STANDARD, is_pipe
from moses_compat.files.streams import Input, Output
from moses_compat.lines.fields import BARS, gather
from moses_compat.tables.blocks import Progress, RawBlock, raw_blocks
from moses_compat.tables.rows import COUNTS, EXTRA, FIELDS, RAW, SCORES, TEXTS, Rows, read_rows, write_rows
from phrasetool import __version__
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import LF, PIPE
from phrasetool.phrases import ByteArray, Int64Array, prefix_sums
from phrasetool.pipeline import run

SCHEMA_VERSION = "1"
# Approximate size of the text of a row group.
ROW_GROUP_BYTES = 1 << 23
_ROWS_PER_BATCH = 1 << 16
# If a table has no entry in this many bytes of text, it gets no score columns.
_LOOK_FOR_SCORES = 1 << 24
_MAGIC = b"PAR1"

# Column of each text of a row, in the order of the constants above.
TEXT_NAMES = (
    "source", "target", "scores_text", "alignment", "counts_text", "sparse", "properties", "extra", "tail", "raw",
)  # fmt: skip
COUNT_NAMES = ("count_target", "count_source", "count_joint")
_SCORE = re.compile(r"score_([1-9]\d{0,5})")
# Index columns that pandas adds if rows were removed.
_INDEX = re.compile(r"__index_level_\d+__")


@dataclass
class ConvertCounts:
    """Counts of a conversion.

    Attributes:
        entries: number of lines.
        kept_whole: number of lines stored in `raw`.
        scores: number of score columns.
    """

    entries: int = 0
    kept_whole: int = 0
    scores: int = 0


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet, by its first bytes; standard input and other pipes never are."""
    if path == STANDARD or is_pipe(path):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return False
    return head.startswith(_MAGIC) and b"\0" in head


def _schema(scores: int) -> pa.Schema:
    """Return the columns in an order suitable for readers."""
    texts = {name: pa.field(name, pa.binary() if name == "raw" else pa.string()) for name in TEXT_NAMES}
    numbers = [pa.field(f"score_{i + 1}", pa.float32()) for i in range(scores)]
    counts = [pa.field(name, pa.float64()) for name in COUNT_NAMES]
    order = [texts["source"], texts["target"], *numbers, texts["alignment"], *counts]
    order += [texts[name] for name in ("sparse", "properties", "extra", "scores_text", "counts_text", "tail", "raw")]
    metadata = {"phrasetool_table": SCHEMA_VERSION, "created_by": f"phrasetool {__version__}"}
    return pa.schema(order, metadata)


def _text_array(rows: Rows, column: int, kind: pa.DataType) -> pa.Array:
    starts, ends = rows.starts[:, column], rows.ends[:, column]
    return text_array(*gather(rows.text, starts, ends), kind, starts >= 0)


def _batch(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        if score := _SCORE.fullmatch(field.name):
            column = int(score[1]) - 1
            arrays.append(number_array(rows.scores[:, column], field.type, rows.score_there[:, column]))
        elif field.name in COUNT_NAMES:
            column = COUNT_NAMES.index(field.name)
            arrays.append(number_array(rows.counts[:, column], field.type, rows.count_there[:, column]))
        else:
            arrays.append(_text_array(rows, TEXT_NAMES.index(field.name), field.type))
    return pa.record_batch(arrays, schema=schema)


class TableBatches:
    """A table in text form as record batches, one per block.

    Args:
        source: the table.
        block_bytes: approximate size of the text of a batch.
        whole_groups: whether a batch has all entries of its sources.

    Raises:
        DataError: the file is damaged or is not a table in text form.
    """

    def __init__(self, source: Input, block_bytes: int = ROW_GROUP_BYTES, whole_groups: bool = True) -> None:
        blocks = raw_blocks(source, block_bytes, whole_groups=whole_groups)
        first: list[RawBlock] = []
        while (not first or first[-1].scores < 0) and sum(len(raw.text) for raw in first) < _LOOK_FOR_SCORES:
            if (block := next(blocks, None)) is None:
                break
            first.append(block)
        self.scores = max(first[-1].scores, 0) if first else 0
        self.schema = _schema(self.scores)
        self._blocks = chain(first, blocks)

    def read(self, threads: int = 1) -> Iterator[tuple[RawBlock, pa.RecordBatch, int]]:
        """Yield each block, its rows, and the number of rows with `raw`; may be called only once.

        Raises:
            DataError: the file is damaged.
        """

        def work(raw: RawBlock) -> tuple[RawBlock, pa.RecordBatch, int]:
            rows = read_rows(raw.text, self.scores, raw.line_offsets)
            return raw, _batch(rows, self.schema), int((rows.starts[:, RAW] >= 0).sum())

        return run(self._blocks, work, threads)


def table_to_parquet(
    source: Input,
    output: Output,
    *,
    threads: int = 1,
    block_bytes: int = ROW_GROUP_BYTES,
    progress: Progress = lambda position, entries: None,
) -> ConvertCounts:
    """Write a table in text form as Parquet, compressed with zstd; each block becomes a row group.

    Args:
        progress: called with the bytes of the file read and the lines written so far.

    Raises:
        DataError: the file is damaged or is not a table in text form.
    """
    batches = TableBatches(source, block_bytes, whole_groups=False)
    counts, schema = ConvertCounts(scores=batches.scores), batches.schema
    dictionary = ["target", "alignment", "tail", *(field.name for field in schema if field.type == pa.float32())]
    with pq.ParquetWriter(
        parquet_file(output), schema, compression="zstd", use_dictionary=[*dictionary, *COUNT_NAMES],
        write_statistics=False,
    ) as writer:  # fmt: skip
        for raw, batch, kept_whole in batches.read(threads):
            writer.write_batch(batch)
            counts.entries += raw.lines
            counts.kept_whole += kept_whole
            progress(raw.position, counts.entries)
    return counts


def _text_column(array: pa.Array) -> tuple[ByteArray, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the bytes of a column of texts, and the start and end of each text, -1 for a null."""
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    starts, ends = offsets[:-1].copy(), offsets[1:].copy()
    missing = ~_there(array)
    starts[missing] = ends[missing] = -1
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), starts, ends


def _there(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a mask, shape (N,), which is False for a null."""
    bits = array.buffers()[0]
    if bits is None:
        return np.ones(len(array), np.bool_)
    unpacked = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return unpacked[array.offset : array.offset + len(array)].astype(np.bool_)


class _Reader:
    """Reader of a table in Parquet, one batch of rows at a time.

    Raises:
        DataError: the file cannot be read, or its columns are not those of a table.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._file = pq.ParquetFile(path)
            names = self._file.schema_arrow.names
        except DAMAGED as error:
            raise self._fault(error) from error
        fields = dict.fromkeys(names)
        if twice := next((name for name in fields if names.count(name) > 1), None):
            raise DataError(path, f"the Parquet file is not a phrase table: it has two columns {twice}")
        score_numbers = [int(score[1]) for name in fields if (score := _SCORE.fullmatch(name))]
        self.scores = max(score_numbers, default=0)
        known = {*TEXT_NAMES, *COUNT_NAMES, *(f"score_{i + 1}" for i in range(self.scores))}
        missing = sorted({"source", "target", *(f"score_{i + 1}" for i in range(self.scores))} - fields.keys())
        if missing:
            raise DataError(path, f"the Parquet file is not a phrase table: it has no column {missing[0]}")
        unknown = [name for name in fields if name not in known and not _INDEX.fullmatch(name)]
        if unknown:
            raise DataError(path, f"a phrase table has no column {unknown[0]}; remove it, or name it score_N")
        self._schema = pa.schema([field for field in _schema(self.scores) if field.name in fields])

    def _fault(self, error: Exception) -> DataError:
        lines = str(error).splitlines()
        return DataError(self._path, f"the Parquet file cannot be read ({lines[0] if lines else error})")

    def batches(self) -> Iterator[Rows]:
        """Yield all rows, in order.

        Raises:
            DataError: the file is damaged, or a column is of another type.
        """
        try:
            names = self._schema.names
            for batch in self._file.iter_batches(_ROWS_PER_BATCH, columns=names, use_threads=False):
                columns = {name: batch.column(name).cast(self._schema.field(name).type) for name in names}
                yield self._rows(batch.num_rows, columns)
        except DAMAGED as error:
            raise self._fault(error) from error

    def _rows(self, count: int, columns: dict[str, pa.Array]) -> Rows:
        starts, ends = np.full((count, TEXTS), -1, np.int64), np.full((count, TEXTS), -1, np.int64)
        parts: list[ByteArray] = []
        size = 0
        for text, name in enumerate(TEXT_NAMES):
            if name not in columns or columns[name].null_count == count:
                continue
            data, first, last = _text_column(columns[name])
            present = first >= 0
            starts[present, text], ends[present, text] = first[present] + size, last[present] + size
            parts.append(data)
            size += len(data)
        scores, score_there = self._matrix(count, columns, [f"score_{i + 1}" for i in range(self.scores)], np.float32)
        counts, count_there = self._matrix(count, columns, COUNT_NAMES, np.float64)
        text_bytes = np.concatenate([np.zeros(0, np.uint8), *parts])
        return Rows(text_bytes, starts, ends, scores, score_there, counts, count_there)

    @staticmethod
    def _matrix(
        count: int, columns: dict[str, pa.Array], names: Sequence[str], kind: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        values, present = np.zeros((count, len(names)), kind), np.zeros((count, len(names)), np.bool_)
        for i, name in enumerate(names):
            if name in columns and columns[name].null_count < count:
                values[:, i], present[:, i] = numbers_of(columns[name], kind), _there(columns[name])
        return values, present


def parquet_to_table(
    path: str,
    output: Output,
    *,
    threads: int = 1,
    progress: Progress = lambda position, entries: None,
) -> ConvertCounts:
    """Write a table made by `table_to_parquet` as text again, byte for byte.

    Args:
        progress: called with 0 and the lines written so far.

    Raises:
        DataError: the file is not a Parquet file of a table, is damaged, or a row lacks a source, a target or a score.
    """
    reader = _Reader(path)
    counts = ConvertCounts(scores=reader.scores)

    def work(rows: Rows) -> tuple[bytes, ConvertCounts, str]:
        _forget_outdated_texts(rows, reader.scores)
        text, wrong = write_rows(rows)
        message = "" if wrong < 0 else "lacks a source, a target or a score"
        if wrong < 0:
            wrong, message = min(
                (
                    candidate
                    for candidate in (_broken_row(rows), _outdated_row(rows, reader.scores))
                    if candidate[0] >= 0
                ),
                default=(-1, ""),
            )
        counted = ConvertCounts(wrong if message else len(rows.starts), int((rows.starts[:, RAW] >= 0).sum()))
        return output.encode(text), counted, message

    for data, counted, message in run(reader.batches(), work, threads):
        counts.entries += counted.entries
        counts.kept_whole += counted.kept_whole
        if message:
            raise DataError(path, f"row {counts.entries + 1} {message}")
        output.write(data)
        progress(0, counts.entries)
    return counts


def _forget_outdated_texts(rows: Rows, scores: int) -> None:
    """Drop texts of numbers, stored for their spelling, that no longer match the numeric columns."""
    for field, lead, values, present in (
        (SCORES, b"a ||| a ||| ", rows.scores, rows.score_there),
        (COUNTS, b"a ||| a ||| 1 ||| ||| ", rows.counts, rows.count_there),
    ):
        kept = np.flatnonzero((rows.starts[:, field] >= 0) & (rows.starts[:, RAW] < 0))
        if not len(kept):
            continue
        texts = [rows.text[rows.starts[row, field] : rows.ends[row, field]].tobytes() for row in kept.tolist()]
        again = _read_again([lead + text + b"\n" for text in texts], scores if field == SCORES else 1)
        new_values, new_present = (
            (again.scores, again.score_there) if field == SCORES else (again.counts, again.count_there)
        )
        same = ((new_values == values[kept]) | ~new_present).all(axis=1) & (new_present == present[kept]).all(axis=1)
        rows.starts[kept[~same], field] = rows.ends[kept[~same], field] = -1


def _outdated_row(rows: Rows, scores: int) -> tuple[int, str]:
    """Return the first row whose stored line contradicts a changed column, and a message; -1 without one."""
    kept = np.flatnonzero(rows.starts[:, RAW] >= 0)
    if not len(kept):
        return -1, ""
    lines = [rows.text[rows.starts[row, RAW] : rows.ends[row, RAW]].tobytes() for row in kept.tolist()]
    again = _read_again(lines, scores)
    same = (again.score_there == rows.score_there[kept]).all(axis=1)
    same &= ((again.scores == rows.scores[kept]) | ~again.score_there).all(axis=1)
    for number, row in enumerate(kept.tolist()):
        if not same[number] or any(
            _text_of(again, number, field) != _text_of(rows, row, field) for field in range(FIELDS)
        ):
            return row, "was changed, but its line is in the column `raw`, too; set that to null"
    return -1, ""


def _read_again(lines: Sequence[bytes], scores: int) -> Rows:
    return read_rows(np.frombuffer(b"".join(lines), np.uint8), scores, prefix_sums([len(line) for line in lines]))


def _text_of(rows: Rows, row: int, field: int) -> bytes | None:
    first, last = rows.starts[row, field], rows.ends[row, field]
    return rows.text[first:last].tobytes() if first >= 0 else None


def _broken_row(rows: Rows) -> tuple[int, str]:
    """Return the first row with a text that would add a line or a field, and a message; -1 without one."""
    inside = rows.starts[:, :RAW] >= 0
    inside[rows.starts[:, RAW] >= 0] = False
    broken_rows = [(_first_row(rows, inside, np.flatnonzero(rows.text == LF), 1), "has a text with a line feed")]
    if BARS in rows.text.tobytes():
        bar = rows.text == PIPE
        # The text after the seventh field may contain anything.
        inside[:, EXTRA:] = False
        positions = np.flatnonzero(bar[:-2] & bar[1:-1] & bar[2:])
        broken_rows.append(
            (_first_row(rows, inside, positions, len(BARS)), "has a text with |||, which separates fields")
        )
    return min(((row, message) for row, message in broken_rows if row >= 0), default=(-1, ""))


def _first_row(rows: Rows, inside: npt.NDArray[np.bool_], places: Int64Array, size: int) -> int:
    """Return the first row with a text of `inside` that contains `size` bytes from one of `places` on, or -1."""
    row, column = np.nonzero(inside)
    first, last = rows.starts[row, column], rows.ends[row, column]
    broken = np.searchsorted(places, first) < np.searchsorted(places, np.maximum(last - size + 1, first))
    return int(row[broken].min()) if broken.any() else -1
