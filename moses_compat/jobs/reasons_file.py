"""Reasons for the removal of entries, in Parquet (`pandas.read_parquet(FILE)`).

The file has one row for each entry that failed, in table order.

line             int64, line number in the table, from 1
source, target   text; bytes that are not UTF-8 become U+FFFD
a criterion      float32, one column per criterion: the score of the entry; infinite if the criterion has none
failed           the criteria that alone would have removed the entry, joined with +; or `together`
kept             whether it was kept anyway, as one of the best of its source
"""

from __future__ import annotations

from itertools import pairwise
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from moses_compat.files.arrow import bits, number_array, parquet_file, text_array
from moses_compat.files.streams import Output
from moses_compat.jobs.sinks import DecidedBlock
from moses_compat.lines.fields import gather, strip_fields
from phrasetool.phrases import ByteArray, Int64Array, prefix_sums

RecordBatch = Any
SCHEMA_VERSION = "1"
# Rows of a row group, independent of the size of blocks.
_GROUP = 1 << 17


def _texts(text: ByteArray, starts: Int64Array, ends: Int64Array) -> pa.Array:
    strip_fields(text, starts, ends)
    data, offsets = gather(text, starts, ends)
    packed = data.tobytes()
    try:
        packed.decode()
    except UnicodeDecodeError:
        pieces = [packed[a:b].decode(errors="replace").encode() for a, b in pairwise(offsets)]
        offsets = prefix_sums([len(piece) for piece in pieces])
        packed = b"".join(pieces)
    return text_array(packed, offsets, pa.string())


def _schema(names: tuple[str, ...]) -> pa.Schema:
    labels = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("line", pa.int64()), ("source", pa.string()), ("target", pa.string()),
            *((name, pa.float32()) for name in names), ("failed", labels), ("kept", pa.bool_()),
        ],
        {"phrasetool_reasons": SCHEMA_VERSION},
    )  # fmt: skip


class ReasonsWriter:
    """A sink that writes rows in order, in row groups of one size, independent of the size of blocks.

    Args:
        output: the file.
        names: names of the criteria.
    """

    def __init__(self, output: Output, names: tuple[str, ...]) -> None:
        self._writer = pq.ParquetWriter(
            parquet_file(output), _schema(names), compression="zstd", use_dictionary=["failed"],
            write_statistics=False,
        )  # fmt: skip
        self._pending: list[RecordBatch] = []
        self._rows = 0

    def __getstate__(self) -> dict[str, Any]:
        # Other processes only prepare blocks.
        return {name: value for name, value in self.__dict__.items() if name not in ("_writer", "_pending")}

    def prepare(self, decided: DecidedBlock) -> bytes | None:
        """Return the rows of the failed entries of a block, without malformed lines, as an Arrow stream.

        None if the reasons are unknown.
        """
        block, reasons = decided.block, decided.reasons
        if reasons is None:
            return None
        lines = np.flatnonzero(decided.decision.fails & ~block.malformed)
        source_ends = block.source_ends[lines]
        failed_reasons = reasons.part(lines)
        labels = pa.array(reasons.labels, pa.string())
        columns = [
            number_array(block.first_entry + lines + 1, pa.int64()),
            _texts(block.text, block.line_offsets[lines], source_ends.copy()),
            _texts(block.text, source_ends + 3, block.target_ends[lines]),
            *(number_array(scores, pa.float32()) for scores in failed_reasons.criterion_scores.T),
            pa.DictionaryArray.from_arrays(number_array(failed_reasons.codes, pa.int32()), labels),
            pa.Array.from_buffers(pa.bool_(), len(lines), [None, bits(decided.keep[lines])]),
        ]
        batch = pa.record_batch(columns, schema=_schema(reasons.names))
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(stream.getvalue())

    def write(self, prepared: bytes | None) -> None:
        """Append the result of `prepare`; blocks must come in order."""
        if prepared is None:
            return
        batch = pa.ipc.open_stream(prepared).read_next_batch()
        self._pending.append(batch)
        self._rows += batch.num_rows
        while self._rows >= _GROUP:
            self._flush(_GROUP)

    def _flush(self, rows: int) -> None:
        # One array per column, because the chunks of a row group would affect the file.
        table = pa.Table.from_batches(self._pending).combine_chunks()
        self._writer.write_table(table.slice(0, rows), row_group_size=_GROUP)
        rest = table.slice(rows)
        self._pending = rest.to_batches()
        self._rows = rest.num_rows

    def __enter__(self) -> ReasonsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._pending:
            self._flush(self._rows)
        self._writer.close()
