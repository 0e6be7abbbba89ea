"""Scores stored in Parquet files: similarities of a table for later runs, and the finished parts of unfinished scores.

A file of similarities has one row per line of the table: marks of the line (so that a file is never applied to another
table, and lines that did not change are not parsed again), the two similarities, and whether the entry has a score.
The metadata of the file identify the model.

A folder of unfinished scores allows interrupted work to be resumed.  It has a file for each finished window of a table,
with a fingerprint of each pair (so that no part is ever applied to another table) and its score.  The metadata of a
file identify the model and the settings that the scores were computed with.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from moses_compat.files.arrow import DAMAGED, number_array, numbers_of
from moses_compat.tables.blocks import LineMarks
from phrasetool.disk.folders import scratch_file
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import EntryBlock, FloatArray

SCHEMA_VERSION = "2"
_SIMILARITY_SCHEMA = pa.schema(
    [
        ("pair_hash", pa.uint32()),
        ("line_hash", pa.uint32()),
        ("source_words", pa.uint16()),
        ("similarity_st", pa.float32()),
        ("similarity_ts", pa.float32()),
        ("scored", pa.uint8()),
    ]
)
# A cosine of float32 may be slightly above 1.
_LARGEST = 1 + 1e-5
_KINDS = [field.type.to_pandas_dtype() for field in _SIMILARITY_SCHEMA]
_PART_VERSION = "1"
_PART_SCHEMA = pa.schema([("pair_hash", pa.uint32()), ("score", pa.float32())])
_ENDING, _BEGUN = ".parquet", ".part-"


def _columns(schema: pa.Schema) -> str:
    """Return names and types of columns, for comparison."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)


class ScoreWriter:
    """Writer of similarities to a Parquet file, which appears under its name only when complete.

    Args:
        path: the file.
        signature: the model's part of the signature line.
    """

    def __init__(self, path: str, signature: str) -> None:
        self.path = path
        folder = os.path.dirname(os.path.abspath(path))
        try:
            self._lock, self._temporary = scratch_file(folder, f".{os.path.basename(path)}.", ".part")
        except OSError as error:
            raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error
        metadata = {"phrasetool_schema": SCHEMA_VERSION, "signature": signature}
        try:
            # The writer writes its first bytes immediately.
            self._writer = pq.ParquetWriter(
                self._temporary, _SIMILARITY_SCHEMA.with_metadata(metadata), compression="NONE",
                use_dictionary=["scored", "source_words"], write_page_checksum=True,
            )  # fmt: skip
        except OSError as error:
            self._forget()
            raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error

    def write(self, marks: LineMarks, scores: Scores) -> None:
        """Append N rows.

        Args:
            marks: marks of the N lines.
            scores: scores of the same N entries.

        Raises:
            PhraseToolError: the rows cannot be written.
        """
        st, ts = np.ascontiguousarray(scores.similarities.T)
        columns = (*marks, st, ts, scores.scored.view(np.uint8))
        arrays = [number_array(values, field.type) for values, field in zip(columns, _SIMILARITY_SCHEMA, strict=True)]
        batch = pa.record_batch(arrays, schema=self._writer.schema)
        try:
            self._writer.write_batch(batch)
        except OSError as error:
            raise PhraseToolError(f"{self.path}: cannot write: {reason(error)}") from error

    def __enter__(self) -> ScoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._writer.close()
            if kind is None:
                os.chmod(self._temporary, 0o644)
                os.replace(self._temporary, self.path)
        except OSError as error:
            raise PhraseToolError(f"{self.path}: cannot write: {reason(error)}") from error
        finally:
            self._forget()

    def _forget(self) -> None:
        if os.path.exists(self._temporary):
            os.unlink(self._temporary)
        os.close(self._lock)


class SavedScores:
    """Reader of a file written by `ScoreWriter`, in order, one block at a time.

    Raises:
        DataError: the path is not such a file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
        except FileNotFoundError as error:
            raise DataError(path, "no such file") from error
        except DAMAGED as error:
            raise DataError(path, f"not a file of saved similarities ({error})") from error
        metadata = self._file.schema_arrow.metadata or {}
        if metadata.get(b"phrasetool_schema") != SCHEMA_VERSION.encode():
            raise DataError(path, f"not a file of saved similarities of version {SCHEMA_VERSION}")
        if (columns := _columns(self._file.schema_arrow)) != (expected := _columns(_SIMILARITY_SCHEMA)):
            raise DataError(path, f"has columns {columns}; expected {expected}")
        self.signature: str = metadata.get(b"signature", b"").decode("utf-8", "replace")
        self.rows: int = self._file.metadata.num_rows
        self._batches = self._all_batches()
        self._taken = 0
        self._pending: list[pa.RecordBatch] = []

    def __getstate__(self) -> dict[str, Any]:
        # Another process only compares rows.
        return {"path": self.path, "signature": self.signature, "rows": self.rows}

    def _all_batches(self) -> Iterator[pa.RecordBatch]:
        # `iter_batches` of the file keeps all rows in memory until its end: 19 bytes per row.
        for group in range(self._file.num_row_groups):
            yield from self._file.read_row_group(group, use_threads=False).to_batches()

    def take(self, count: int) -> tuple[LineMarks, Scores]:
        """Return marks and scores of the next `count` rows (fewer at the end).

        Raises:
            DataError: the file is damaged.
        """
        have = sum(batch.num_rows for batch in self._pending)
        try:
            while have < count and (batch := next(self._batches, None)) is not None:
                self._pending.append(batch)
                have += batch.num_rows
        except DAMAGED as error:
            raise DataError(self.path, f"the file is damaged ({error})") from error
        batches: list[pa.RecordBatch] = []
        while count > 0 and self._pending:
            batch = self._pending.pop(0)
            batches.append(batch.slice(0, count))
            if batch.num_rows > count:
                self._pending.insert(0, batch.slice(count))
            count -= batches[-1].num_rows
        if any(column.null_count for batch in batches for column in batch.columns):
            raise DataError(self.path, "the file is damaged (values are missing)")
        pairs, lines, sources, st, ts, scored = (
            np.concatenate([np.zeros(0, kind), *(numbers_of(batch.column(i), kind) for batch in batches)])
            for i, kind in enumerate(_KINDS)
        )
        for similarities in (st, ts):
            # The comparison is also False for NaN.
            if len(similarities) and not max(-similarities.min(), similarities.max()) <= _LARGEST:
                row = self._taken + int(np.argmin(np.abs(similarities) <= _LARGEST)) + 1
                raise DataError(
                    self.path, f"the file is damaged (the similarities of row {row:,} are not from -1 to 1)"
                )
        self._taken += len(st)
        return LineMarks(pairs, lines, sources), Scores(np.column_stack([st, ts]), scored.astype(np.bool_))

    def check(self, name: str, block: EntryBlock, marks: LineMarks) -> None:
        """Check that rows and entries belong to the same pairs.

        Raises:
            DataError: they differ, or there are fewer rows than entries.
        """
        pairs = marks.pairs
        same = pairs == block.fingerprints[: len(pairs)]
        if len(pairs) < len(block) or not same.all():
            wrong = len(pairs) if same.all() else int(np.argmin(same))
            raise DataError(
                name,
                f"{self.path} holds no similarity for this entry; it was made from another table",
                block.first_entry + wrong + 1,
            )

    def finish(self, name: str, entries: int) -> None:
        """Check that there are no further rows.

        Raises:
            DataError: the file has more rows than the table has entries.
        """
        if entries != self.rows:
            raise DataError(self.path, f"has {self.rows:,} rows, but {name} has {entries:,} entries")


class ScoreParts:
    """The parts of one table's scores.  Threads may read and write different parts at the same time.

    Args:
        folder: folder of the parts; created with the first part.
        signature: signature of the model and the settings of the scores.
        holder: name of the origin of the pairs in messages.
    """

    def __init__(self, folder: str, signature: str, holder: str = "table") -> None:
        self.folder, self._signature, self._holder = folder, signature, holder

    def read(self, number: int, hashes: npt.NDArray[np.uint32]) -> FloatArray | None:
        """Return the scores of a part, float32, shape (N,); None if the part does not exist.

        Args:
            number: number of the part, from 0.
            hashes: shape (N,), fingerprints of its pairs.

        Raises:
            DataError: the part belongs to another model or another table, or is damaged.
        """
        path = self._path(number)
        if not os.path.exists(path):
            return None
        remedy = "delete the folder to start again"
        try:
            table = pq.read_table(path, use_threads=False, page_checksum_verification=True)
        except DAMAGED as error:
            raise DataError(path, f"the file is damaged ({error}); {remedy}") from error
        metadata = table.schema.metadata or {}
        if metadata.get(b"phrasetool_parts") != _PART_VERSION.encode() or table.schema.names != _PART_SCHEMA.names:
            raise DataError(self.folder, f"holds no scores of version {_PART_VERSION}; {remedy}")
        if metadata.get(b"signature") != self._signature.encode():
            raise DataError(self.folder, f"holds scores of another model or other scoring settings; {remedy}")
        stored_hashes, scores = (
            np.concatenate([np.zeros(0, kind), *(numbers_of(chunk, kind) for chunk in table.column(name).chunks)])
            for name, kind in (("pair_hash", np.uint32), ("score", np.float32))
        )
        if not np.array_equal(stored_hashes, hashes):
            raise DataError(self.folder, f"holds scores of another {self._holder}; {remedy}")
        return np.asarray(scores, np.float32)

    def write(self, number: int, hashes: npt.NDArray[np.uint32], scores: FloatArray) -> None:
        """Store a part atomically.

        Args:
            number: number of the part, from 0.
            hashes: shape (N,), fingerprints of its pairs.
            scores: float32, shape (N,).

        Raises:
            PhraseToolError: the part cannot be written; existing parts are kept.
        """
        schema = _PART_SCHEMA.with_metadata({"phrasetool_parts": _PART_VERSION, "signature": self._signature})
        arrays = [number_array(values, field.type) for values, field in zip((hashes, scores), schema, strict=True)]
        handle = temporary = None
        try:
            os.makedirs(self.folder, exist_ok=True)
            handle, temporary = scratch_file(self.folder, _BEGUN)
            pq.write_table(
                pa.table(arrays, schema=schema), temporary, compression="NONE", use_dictionary=False,
                write_page_checksum=True,
            )  # fmt: skip
            os.chmod(temporary, 0o644)
            os.replace(temporary, self._path(number))
        except OSError as error:
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}") from error
        finally:
            if temporary and os.path.exists(temporary):
                os.unlink(temporary)
            if handle is not None:
                os.close(handle)

    def _path(self, number: int) -> str:
        return os.path.join(self.folder, f"part-{number:06}{_ENDING}")


def remove_parts(folders: Iterable[str]) -> None:
    """Remove folders that only contain parts."""
    for folder in map(Path, folders):
        if all(file.suffix == _ENDING or file.name.startswith(_BEGUN) for file in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
