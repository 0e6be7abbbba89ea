from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.phrase_totals import KeyedSums, side_keys
from moses_compat.lines.separators import line_offsets_of
from tests.moses_compat.lines.test_pair_hashes import line


def keys_of(text, rows=None):
    array = np.frombuffer(text, np.uint8)
    offsets = line_offsets_of(array)
    return side_keys(array, offsets, np.arange(len(offsets) - 1) if rows is None else np.array(rows, np.int64))


def tokens(field):
    return tuple(field.replace(b"\t", b" ").split(b" ")) if field.strip(b" \t") else ()


def naive_sides(text_line):
    """Source and target tokens, None without a bar."""
    fields = text_line.split(b"|||", 2)
    if len(fields) < 2:
        return None, None
    return tuple(tuple(token for token in tokens(field) if token) for field in fields[:2])


@given(st.lists(line, max_size=20), st.booleans())
def test_equal_keys_are_equal_phrases(lines, newline):
    text = b"\n".join(lines) + b"\n" * (newline and bool(lines))
    expected = [naive_sides(part) for part in text.removesuffix(b"\n").split(b"\n")] if text else []
    keys = keys_of(text)
    assert keys.shape == (2, len(expected))
    # A phrase has one key on both sides.
    number = {}
    for side in (0, 1):
        for key, found in zip(keys[side].tolist(), [pair[side] for pair in expected], strict=True):
            assert (key == 0) == (found is None)
            assert number.setdefault(found, key) == key
    assert len(set(number.values())) == len(number)


def test_rows():
    text = b"a b ||| c ||| 1\nx ||| y z\na\tb|||d\n"
    keys = keys_of(text)
    assert np.array_equal(keys_of(text, [2, 0]), keys[:, [2, 0]])
    assert keys[0, 0] == keys[0, 2]
    assert keys_of(text, []).shape == (2, 0)
    for rows in ([3], [-1]):
        with pytest.raises(ValueError, match="do not fit 3 lines"):
            keys_of(text, rows)
    with pytest.raises(ValueError, match="int64"):
        side_keys(np.frombuffer(text, np.uint8), line_offsets_of(np.frombuffer(text, np.uint8)), np.zeros(1, np.int32))


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=30), max_size=6),
    st.sampled_from([np.int32, np.float64]),
)
def test_sums(parts, kind):
    # Keys that all want the same slot, more or less.
    def key(k):
        return 0 if k == 0 else 2 * k * 2**40

    sums, expected = KeyedSums(kind), Counter()
    for part in parts:
        sums.add(np.array([key(k) for k, _ in part], np.uint64), np.array([n for _, n in part], kind))
        for k, n in part:
            expected[k] += n if k else 0
    known = {k: n for k, n in expected.items() if k}
    for _ in range(2):
        assert np.count_nonzero(sums.slots) == len(known)
        found = sums.look_up(np.array([key(k) for k in range(12)], np.uint64))
        assert found.tolist() == [known.get(k, 0) for k in range(12)]
        sums.shrink()


def test_refuses():
    sums = KeyedSums(np.int32)
    for numbers in (np.ones(1, np.int32), np.ones(2)):
        with pytest.raises(ValueError, match="a number for each, int32"):
            sums.add(np.ones(2, np.uint64), numbers)
    with pytest.raises(ValueError, match="uint64 keys"):
        sums.look_up(np.ones(2, np.int64))
