"""Lines as columns, and back to the byte."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.lines.columns import COUNTS, RAW, SCORES, SOURCE, TAIL, TARGET, read_rows, write_rows
from moses_compat.lines.separators import gather
from tests import naive

fields = st.sampled_from(
    [b"", b" ", b"x", b" x ", b" x y ", b"\tx ", b" 0-0 ", b" 1 2 3 ", b" 5.25e-24 ", b" 1.50 ", b"\r"]
)


line_lists = st.lists(st.lists(fields, max_size=10).map(b"|||".join), max_size=6)


@settings(max_examples=300)
@given(line_lists, st.integers(0, 3), st.sampled_from([b"", b"\n"]))
def test_any_lines_are_rows_and_back(lines, scores, end):
    text = b"\n".join(lines) + end
    if not text:
        return
    rows = read_rows(np.frombuffer(text, np.uint8), scores)
    written, fault = write_rows(rows)
    assert (written.tobytes(), fault) == (text, -1)


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        (b"a ||| b ||| 0.5 0.25\n", ()),
        (b"a ||| b ||| 0.5 0.25 ||| 0-0 ||| 3 2 1 ||| |||\n", ()),
        (b"a |||  ||| 0.5 0.25 ||| |||\n", (COUNTS,)),
        (b"a ||| b ||| 0.50 0.25\n", (SCORES,)),
        (b"a ||| b ||| 0.5 1e-44\n", (SCORES,)),
        (b"a ||| b ||| 0.5\n", (SCORES,)),
        (b"a ||| b ||| 0.5  0.25\n", (SCORES,)),
        (b"a ||| b ||| 0.5 0.25 ||| 0-0 ||| 3 2 1 7\n", (COUNTS,)),
        (b"a ||| b ||| 0.5 0.25 \r\n", (TAIL,)),
        (b"a ||| b ||| 0.5 0.25 ||| \n", (TAIL,)),
        (b"a ||| b ||| 0.5 0.25", (RAW,)),
        (b"a  ||| b ||| 0.5 0.25\n", (RAW,)),
        (b"a |||b ||| 0.5 0.25\n", (RAW,)),
        (b"a ||| b ||| 0.5 0.25 |||  |||\n", (COUNTS, RAW)),
        (b"a ||| \xff ||| 0.5 0.25\n", (RAW,)),
        (b"a ||| b\n", (RAW,)),
        (b"\n", (RAW,)),
    ],
    ids=str,
)
def test_what_is_kept_beside_the_numbers(line, texts):
    rows = read_rows(np.frombuffer(line, np.uint8), 2)
    found = [text for text in (SCORES, COUNTS, TAIL, RAW) if rows.starts[0, text] >= 0]
    assert sorted({*found} - {SCORES} if RAW in texts else found) == sorted(texts)
    assert write_rows(rows)[0].tobytes() == line


def test_source_and_target_texts_are_whole_fields():
    rows = read_rows(np.frombuffer(b"  a  b |||\tc ||| 1\n", np.uint8), 1)
    assert [rows.text[rows.starts[0, k] : rows.ends[0, k]].tobytes() for k in (SOURCE, TARGET)] == [b"a  b", b"c"]


@given(line_lists.filter(len), st.integers(0, 3))
def test_texts_are_the_fields_that_lines_are_split_into(lines, scores):
    text = b"".join(line + b"\n" for line in lines)
    rows = read_rows(np.frombuffer(text, np.uint8), scores)
    for row, line in enumerate(lines):
        parts = [part.strip(b" \t") for part in line.removesuffix(b"\r").split(b"|||", 7)]
        for field in (SOURCE, TARGET):
            start, end = rows.starts[row, field], rows.ends[row, field]
            found = rows.text[start:end].tobytes() if start >= 0 else None
            assert found == (parts[field] if field < len(parts) else None)
        numbers = naive.tokens(parts[2]) if len(parts) > 2 else []
        if len(numbers) == scores and all(naive.number_fault(number) == "ok" for number in numbers):
            assert rows.score_there[row].all()
            np.testing.assert_array_equal(rows.scores[row], np.array(list(map(float, numbers)), np.float32))
        else:
            assert not rows.score_there[row].any()


@given(st.lists(st.binary(max_size=6), max_size=8), st.randoms(use_true_random=False))
def test_gathered_texts_stand_one_after_another(texts, rng):
    text = b"".join(texts)
    ends = np.cumsum([len(part) for part in texts], dtype=np.int64)
    places = [(int(end) - len(part), int(end)) for part, end in zip(texts, ends, strict=True)] + [(-1, -1)]
    rng.shuffle(places)
    starts, ends = np.array(places, np.int64).T
    out, offsets = gather(np.frombuffer(text, np.uint8), starts, ends)
    expected = [text[a:b] if a >= 0 else b"" for a, b in places]
    assert [out[a:b].tobytes() for a, b in pairwise(offsets)] == expected
    assert len(out) == offsets[-1]


def test_a_row_without_a_score_ends_the_text():
    rows = read_rows(np.frombuffer(b"a ||| b ||| 1\nc ||| d ||| 0.5\ne ||| f ||| 1\n", np.uint8), 1)
    rows.score_there[1] = False
    written, fault = write_rows(rows)
    assert (written[: len(b"a ||| b ||| 1\n")].tobytes(), fault) == (b"a ||| b ||| 1\n", 1)
