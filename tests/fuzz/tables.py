"""Targets: lines of phrase tables and of reordering tables, and whole table files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.annotate import annotate_table
from moses_compat.jobs.moses_filters import threshold_table
from moses_compat.jobs.remove_orphans import remove_orphans, table_pairs
from moses_compat.measures.similarities import ModelSimilarities
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.inspect import inspect_table
from moses_compat.tables.parquet import parquet_to_table, table_to_parquet
from moses_compat.tables.parser import TableParser
from phrasetool.phrase_encoder.model import BilingualModel
from tests.fuzz.target import Target, Wrong, scratch, written
from tests.small_experiment import small_model, table_lines
from tests.tables import TABLES

_WORDS = (b"|||", b" ||| ", b"||", b"|", b"{{", b"}}", b"0-0", b"1e-5", b"nan", b"inf", b"[X]", b"[X][Y]", b" ||| |||")
_SMALL = 1 << 12


def _scan(**options: object) -> TableScan:
    return TableScan(on_error="skip", block_bytes=_SMALL, allow_empty=True, force=True, **options)  # type: ignore[arg-type]


def _lines(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n") if data else []


def _malformed(data: bytes, scores: int) -> list[int]:
    """Return the indices of the lines that the parser reports as malformed."""
    _, faults = TableParser(scores=scores)(0, np.frombuffer(data, np.uint8))
    return [fault.entry for fault in faults]


def _check_rest(what: str, found: list[bytes], lines: list[bytes], refused: list[int]) -> None:
    """Check that all lines except the refused ones are output in their order."""
    dropped = set(refused)
    expected = [line for i, line in enumerate(lines) if i not in dropped]
    if found != expected:
        position = next((i for i, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), -1)
        raise Wrong(
            f"{what}: {len(lines)} lines, {len(dropped)} refused, {len(found)} out; first difference {position}"
        )


def _run_table(data: bytes) -> int:
    path, out, packed = written("t", data), str(scratch("out")), str(scratch("t.parquet"))
    lines = _lines(data)
    refused = _malformed(data, 4)
    with Input(path) as source, Output(out) as output:
        threshold_table(source, output, {0: -np.inf}, _scan())
    _check_rest("threshold-filter", _lines(Path(out).read_bytes()), lines, refused)
    with Input(path) as source, Output(out) as output:
        counts = annotate_table(source, output, [ModelSimilarities(_MODEL)], _scan())
    annotated = [line.split(b"|||")[:2] for line in _lines(Path(out).read_bytes())]
    refused_lines = set(refused)
    if annotated != [line.split(b"|||")[:2] for i, line in enumerate(lines) if i not in refused_lines]:
        raise Wrong("annotate: other lines came out")
    if counts.malformed != len(refused):
        raise Wrong(f"annotate: counts {counts.malformed} malformed lines of {len(refused)}")
    with Input(path) as source:
        summary = inspect_table(source, block_bytes=_SMALL)
    if summary.entries != len(lines):
        raise Wrong(f"inspect: {summary.entries} of {len(lines)} lines")
    with Input(path) as source, Output(packed) as output:
        table_to_parquet(source, output, block_bytes=_SMALL)
    with Output(out) as output:
        parquet_to_table(packed, output)
    if Path(out).read_bytes() != data:
        raise Wrong("convert: another table came back from Parquet")
    return len(refused)


def _run_reordering(data: bytes) -> int:
    path, out = written("r", data), str(scratch("out"))
    with Input(path) as source:
        pairs = table_pairs(source, _scan())
    with Input(path) as source, Output(out) as output:
        counts = remove_orphans(source, output, pairs, _scan())
    lines = _lines(data)
    out_lines = _lines(Path(out).read_bytes())
    if counts.lines != len(lines) or counts.kept != len(out_lines):
        raise Wrong(
            f"remove-orphans: {len(lines)} lines, {counts.lines} counted, {len(out_lines)} of {counts.kept} out"
        )
    if counts.kept + counts.orphans + counts.malformed_skipped != len(lines):
        raise Wrong(f"remove-orphans: {counts} of {len(lines)} lines")
    # Every pair is in the table, so only refused lines may be removed.
    if counts.orphans:
        raise Wrong(f"remove-orphans: {counts.orphans} lines of pairs that are there went")
    return counts.malformed_skipped


def _run_file(data: bytes) -> None:
    """Read arbitrary bytes as a table file."""
    path = written("t.gz", data)
    with Input(path) as source:
        inspect_table(source, block_bytes=_SMALL)
    with Input(path) as source, Output(str(scratch("out"))) as output:
        threshold_table(source, output, {0: 0.1}, _scan())


_MODEL = small_model()
_ENTRIES = [line.removesuffix(b"\n") for line in table_lines()]
_REORDERING = [b"%s ||| 0.2 0.2 0.6 0.1 0.3 0.6" % b" ||| ".join(line.split(b" ||| ")[:2]) for line in _ENTRIES]
_FILES = [data for table in TABLES.values() for data in (table, gzip.compress(table, 1, mtime=0))]

TARGETS = (
    Target("table", _ENTRIES, _run_table, _WORDS, lines=500, head=_ENTRIES[0]),
    Target("reordering table", _REORDERING, _run_reordering, _WORDS, lines=500, head=_REORDERING[0]),
    Target("table file", _FILES, _run_file, _WORDS),
)


def score_few(model: BilingualModel) -> None:
    """Score some entries with a loaded model."""
    path = written("few", b"".join(line + b"\n" for line in _ENTRIES[:5]))
    with Input(path) as source, Output(str(scratch("out"))) as output:
        annotate_table(source, output, [ModelSimilarities(model)], _scan())
