"""Columns and records on disk."""

import errno
import gc
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.disk import columns
from phrasetool.disk.columns import DiskColumn, Partitions, even_cuts, parts_for, sampled_cuts
from phrasetool.errors import PhraseToolError


@given(st.lists(st.integers(0, 5), max_size=6), st.sampled_from([1, 3]), st.sampled_from(["f4", "?", "u8"]))
def test_rows_come_back(sizes, width, dtype):
    rng = np.random.default_rng(len(sizes))
    parts = [rng.integers(0, 2, (size, width) if width > 1 else size).astype(dtype) for size in sizes]
    column = DiskColumn(None, dtype, width)
    for part in parts:
        column.append(part)
    whole = np.concatenate([np.zeros((0, width) if width > 1 else 0, dtype), *parts])
    assert len(column) == len(whole)
    for first, last in ((0, len(whole)), (1, 3), (2, 2), (len(whole), len(whole) + 4), (3, len(whole) + 4)):
        result = column.read(first, last)
        assert result.dtype == whole.dtype
        np.testing.assert_array_equal(result, whole[first:last])
    np.testing.assert_array_equal(column.all(), whole)


def test_pieces(monkeypatch):
    monkeypatch.setattr(columns, "PIECE", 12)
    column = DiskColumn(None, np.float32)
    column.append(np.arange(8, dtype=np.float32))
    assert [piece.tolist() for piece in column.pieces()] == [[0, 1, 2], [3, 4, 5], [6, 7]]


@pytest.mark.parametrize("values", [np.zeros(2), np.zeros((2, 2), np.float32)])
def test_rows_of_another_type_or_shape_are_refused(values):
    with pytest.raises(ValueError, match="expected float32"):
        DiskColumn(None, np.float32).append(values)


def test_the_file_of_a_column_is_invisible_and_is_closed(tmp_path):
    column = DiskColumn(str(tmp_path), np.float32)
    column.append(np.ones(1000, np.float32))
    assert os.listdir(tmp_path) == []
    file = os.readlink(f"/proc/self/fd/{column._handle}")
    assert file.startswith(str(tmp_path))
    del column
    gc.collect()
    assert file not in _open_files()


def _open_files():
    with os.scandir("/proc/self/fd") as entries:
        return [os.readlink(entry) for entry in entries]


def test_a_full_disk_and_no_folder(tmp_path, monkeypatch):
    column = DiskColumn(str(tmp_path), np.float32)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(PhraseToolError, match=f"^{tmp_path}: cannot write work files: the disk is full$"):
        column.append(np.ones(1, np.float32))
    with pytest.raises(PhraseToolError, match="none: cannot write work files: No such file"):
        DiskColumn(str(tmp_path / "none"), np.float32)


def test_a_truncated_file(tmp_path):
    column = DiskColumn(str(tmp_path), np.float32)
    column.append(np.ones(4, np.float32))
    os.truncate(column._handle, 8)
    with pytest.raises(PhraseToolError, match="cannot read work files: the file is shorter than it was written"):
        column.all()


@given(st.lists(st.lists(st.integers(0, 50), max_size=30), max_size=5), st.integers(1, 9), st.booleans())
def test_each_part_has_its_numbers_in_their_original_order(batches, parts, even):
    pieces = [np.array(batch, np.int64) for batch in batches]
    numbers = np.concatenate([np.zeros(0, np.int64), *pieces])
    cuts = even_cuts(51, parts) if even else sampled_cuts(lambda: pieces, len(numbers), parts)
    partitions = Partitions(None, [("number", np.int64), ("place", np.int32)], cuts)
    count = 0
    for piece in pieces:
        partitions.add(piece, number=piece, place=np.arange(count, count + len(piece)))
        count += len(piece)
    bounds = list(partitions.bounds(0, 51))
    assert bounds[0][0] == 0
    assert bounds[-1][1] == 51
    assert len(bounds) == len(partitions) <= parts
    for part, (first, last) in enumerate(bounds):
        positions = np.flatnonzero((numbers >= first) & (numbers < last))
        records = partitions.take(part)
        np.testing.assert_array_equal(records["place"], positions)
        np.testing.assert_array_equal(records["number"], numbers[positions])


def test_drawn_cuts_split_a_skewed_distribution_evenly():
    numbers = (np.random.default_rng(1).random(200_000) ** 4 * 1e6).astype(np.int64)
    cuts = sampled_cuts(lambda: np.array_split(numbers, 9), len(numbers), 10)
    sizes = np.bincount(np.searchsorted(cuts, numbers, "right"))
    assert len(sizes) == 10
    assert sizes.max() < 1.3 * len(numbers) / 10


@pytest.mark.parametrize(("rows", "memory", "parts"), [(0, 100, 1), (100, 1000, 1), (101, 1000, 2), (10**9, 1, 200)])
def test_number_of_parts(rows, memory, parts):
    assert parts_for(rows, 10, memory) == parts
