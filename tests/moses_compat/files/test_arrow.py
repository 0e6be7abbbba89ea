"""Conversion of arrays to Arrow and back, and outputs as files that pyarrow writes to."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moses_compat.files.arrow import number_array, numbers_of, parquet_file, text_array
from moses_compat.files.streams import Output

TABLE = pa.table({"x": list(range(5000)), "y": [f"text {i}" for i in range(5000)]})


def write_table(output):
    file = parquet_file(output)
    with pq.ParquetWriter(file, TABLE.schema) as writer:
        for first in range(0, len(TABLE), 1000):
            writer.write_table(TABLE.slice(first, 1000))
    file.close()


def test_what_is_written_is_read(tmp_path):
    with Output(str(tmp_path / "t.parquet")) as output:
        write_table(output)
        # The output is still open; its caller closes it.
        assert not (tmp_path / "t.parquet").exists()
    assert pq.read_table(tmp_path / "t.parquet").equals(TABLE)


def test_a_run_that_fails_leaves_nothing(tmp_path):
    def fails():
        with Output(str(tmp_path / "t.parquet")) as output:
            write_table(output)
            raise RuntimeError("afterwards")

    with pytest.raises(RuntimeError, match="afterwards"):
        fails()
    assert list(tmp_path.iterdir()) == []


def test_bytes_are_those_of_pyarrow_whatever_the_name(tmp_path):
    pq.write_table(TABLE, tmp_path / "plain", row_group_size=1000)
    with Output(str(tmp_path / "t.gz")) as output:
        write_table(output)
    data = (tmp_path / "t.gz").read_bytes()
    assert data[:4] == b"PAR1"
    assert data == (tmp_path / "plain").read_bytes()


@pytest.mark.parametrize("there", [None, np.array([True] * 4), np.array([True, False, True, False])])
def test_arrays_and_what_is_missing_of_them(there):
    values, offsets = np.array([1.5, -2.0, 0.0, 7.0], np.float32), np.array([0, 2, 2, 3, 5])
    numbers = number_array(values, pa.float32(), there)
    texts = text_array("abc\u00e4".encode(), offsets, pa.string(), there)
    kept = [True] * 4 if there is None else there.tolist()
    assert numbers.to_pylist() == [v if k else None for v, k in zip(values.tolist(), kept, strict=True)]
    assert texts.to_pylist() == [t if k else None for t, k in zip(["ab", "", "c", "\u00e4"], kept, strict=True)]
    assert numbers_of(numbers[1:3], np.float32).tolist() == [-2.0, 0.0]
