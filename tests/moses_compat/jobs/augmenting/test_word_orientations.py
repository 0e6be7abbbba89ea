import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input
from moses_compat.jobs.augmenting.word_orientations import word_orientations
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests.commands import write

ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "a b", "b", "c d"]), st.lists(st.integers(0, 1000), min_size=3, max_size=3)),
    min_size=1,
    max_size=20,
)


def means(folder, text, **scan):
    with Input(str(write(folder / "r", text.encode()))) as source:
        return word_orientations(source, {"a", "b"}, "table", TableScan(**scan))


@given(ROWS, st.integers(1, 2), st.integers(1, 200))
def test_the_mean_over_words(workspace, rows, threads, block_bytes):
    text = "".join(f"{source} ||| x ||| {' '.join(f'{n / 1000:g}' for n in row)}\n" for source, row in rows)
    wanted = [row for source, row in rows if " " not in source]
    if not wanted:
        with pytest.raises(DataError, match="no entry whose source is one word"):
            means(workspace, text)
        return
    found = means(workspace, text, threads=threads, block_bytes=block_bytes)
    np.testing.assert_allclose(found, np.mean(wanted, 0) / 1000, atol=1e-9)
    # Not a bit depends on how the table was cut.
    assert (found == means(workspace, text)).all()
