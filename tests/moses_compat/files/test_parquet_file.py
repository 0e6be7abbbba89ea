"""An output as a file that pyarrow writes to."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moses_compat.files.parquet_file import parquet_file
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
        # The output is still open: whoever opened it says when it is done.
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
