"""Fields behind the last one, as filter-pt writes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.append_fields import lines_with_fields
from moses_compat.tables.parser import TableParser


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 1e6)), min_size=1, max_size=5))
def test_numbers_are_written_as_printf_does(rows):
    data = b"a ||| b ||| 1\r\n" * (len(rows) - 1) + b"a ||| b ||| 1"
    block, _ = TableParser()(0, 0, np.frombuffer(data, np.uint8))
    counts, values = (np.array([[row[k]] for row in rows]) for k in (0, 1))
    text = lines_with_fields(block, np.ones(len(rows), bool), counts, values).tobytes()
    assert len(text.split(b"\r\n")) == len(rows)
    for line, (count, value) in zip(text.split(b"\r\n"), rows, strict=True):
        start, written = line.rsplit(b" ||| ", 1)
        assert start == b"a ||| b ||| 1 ||| %d" % count
        assert float(written) == pytest.approx(value, abs=5.1e-7)
        assert b"e" not in written
        assert not (b"." in written and written.endswith(b"0"))


@pytest.mark.parametrize(("counts", "values"), [(3, 1), (0, 2), (2, 0), (0, 0)])
def test_kept_lines_get_fields_before_their_ends(counts, values):
    """Against slow Python, with faulty lines, carriage returns and a last line without an end."""
    rng = np.random.default_rng(counts * 9 + values)
    lines = [b"a ||| x ||| 1\r\n", b"no entry\r\n", b"a ||| y ||| 1 ||| 0-0 \n", b"b ||| ||| 1\n", b"c ||| z ||| 1"]
    block, _ = TableParser(scores=1)(0, 0, np.frombuffer(b"".join(lines), np.uint8))
    numbers = rng.integers(0, 10**12, (len(lines), counts))
    scores = np.round(rng.uniform(0, 100, (len(lines), values)), 6)
    for keep in ([True] * 5, [False] * 5, [True, True, False, True, True]):
        expected = b""
        for i in np.flatnonzero(keep):
            content = lines[i].rstrip(b"\r\n") if i != 1 else lines[i]
            expected += content
            if i != 1:
                expected += b" ||| " + b" ".join(b"%d" % n for n in numbers[i]) if counts else b""
                expected += b"".join(b" ||| " + (b"%.6f" % v).rstrip(b"0").rstrip(b".") for v in scores[i])
            expected += lines[i][len(content) :]
        assert lines_with_fields(block, np.array(keep), numbers, scores).tobytes() == expected
