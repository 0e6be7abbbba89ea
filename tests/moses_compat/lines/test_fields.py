"""Basic functions on the text of tables compared with naive Python."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moses_compat.lines.fields import (
    find_separator,
    find_separators,
    line_offsets_of,
    phrase_text,
    same_tokens,
    write_bars,
)
from tests import naive
from tests.variants import for_each

PIECES = st.lists(st.sampled_from([b"|", b"|||", b"a", b"b", b" ", b"\t", b"\n", b"\r"]), max_size=14).map(b"".join)
FIELDS = st.lists(st.sampled_from([b"a", b"b", b"ab", b" ", b"  ", b"\t", b"|", b"\r"]), max_size=7).map(b"".join)


def array(data):
    return np.frombuffer(data, np.uint8)


@given(PIECES, st.integers(0, 14), st.integers(0, 60))
@example(b"||||||", 0, 6)
@example(b"a||||b", 2, 6)
@example(b"||", 0, 2)
def test_the_first_separator(text, start, end):
    start, end = min(start, len(text)), min(end, len(text))
    assert find_separator(array(text), start, end) == text.find(b"|||", start, end)


@given(PIECES, st.integers(0, 5))
@example(b"||||||", 3)
def test_the_first_separators(text, room):
    # Separators of `split` do not overlap either.
    positions, offset = [], 0
    for field in text.split(b"|||")[:-1]:
        positions.append(offset + len(field))
        offset = positions[-1] + 3
    bars = np.full(room, -9, np.int64)
    assert find_separators(array(text), 0, len(text), bars) == min(room, len(positions))
    assert bars.tolist() == (positions + [len(text)] * room)[:room]


@settings(max_examples=300)
@given(FIELDS, FIELDS, st.booleans())
@example(b"a b", b"a  b", False)
@example(b"a ", b"a", False)
@example(b"ab", b"a b", False)
@example(b"a", b"ab", False)
@example(b"", b" ", False)
def test_fields_of_the_same_tokens(first, second, alike):
    if alike:
        second = b" \t".join(naive.tokens(first))
    # Text around the fields is ignored.
    text = array(b"x" + first + b"|||" + second + b"y")
    a, b = 1, 4 + len(first)
    same = naive.tokens(first) == naive.tokens(second)
    assert same_tokens(text, a, a + len(first), b, b + len(second)) == same
    assert same_tokens(text, b, b + len(second), a, a + len(first)) == same


@given(PIECES)
def test_lines_begin_after_line_feeds(text):
    offsets = line_offsets_of(array(text))
    assert offsets.dtype == np.int64
    assert [text[a:b] for a, b in pairwise(offsets)] == naive.split_lines(text)
    assert (offsets[0], offsets[-1]) == (0, len(text))


@pytest.mark.parametrize("place", [0, 2])
def test_bars_are_written(place):
    out = np.zeros(6, np.uint8)

    assert write_bars(out, place) == place + 3
    assert out.tobytes() == b"\0" * place + b"|||" + b"\0" * (3 - place)


@given(st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\x8a", b"0123456", b"\n\n"])).map(b"".join), st.integers(0, 7))
def test_line_offsets_at_any_address(data, shift):
    text = np.frombuffer(bytes(shift) + data, np.uint8)[shift:]
    lines = io.BytesIO(data).readlines()
    assert line_offsets_of(text).tolist() == np.cumsum([0, *map(len, lines)]).tolist()


@for_each(
    ("phrase", "text"),
    [
        (b"das haus", "das haus"),
        (b"  das \t haus ", "das haus"),
        (b"das [X][Y] haus [X]", "das haus"),
        (b"[X]", ""),
        (b"", ""),
        (b"haus|NN ist|VB", "haus ist"),
        (b"|", "|"),
        (b"&apos;s &quot; &#91; a&amp;b", "'s \" [ a&b"),
        (b"&#124;", "|"),
        ("größe 经济".encode(), "größe 经济"),
        (b"gr\xfcn", "gr�n"),
        (b"[ ]", "[ ]"),
    ],
)
def test_text_of_phrases(phrase, text):
    assert phrase_text(phrase) == text
