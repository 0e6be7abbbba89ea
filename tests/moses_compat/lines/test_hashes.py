"""Hashes of phrase pairs, phrases and words."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.lines.fields import line_offsets_of
from moses_compat.lines.hashes import KeyedSums, PairSet, hash_pairs, hash_words, read_pair_hashes, side_keys
from tests import naive
from tests.naive_reordering import pair

# Few pieces, so that lines with the same pair but different white space are common.
PIECES = [
    b"a",
    b"b",
    b"ab",
    b" ",
    b"  ",
    b"\t",
    b"|",
    b"||",
    b"|||",
    b" ||| ",
    b"||||",
    b"\r",
    b"\xff",
    b"\x00",
    b"a|b",
]
line = st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)
SCORES = [b" 1 0.5", b"1\t1e-3 ", b" .5 inf", b" 1 0.5", b" 1", b" 1 x", b" nan 1", b""]
TAILS = [b"", b"\r", b" ||| 0-0 ||| 1 1 1", b"|||", b"  \t"]
DIFFERENT = [
    b"a b ||| c ||| 1",
    b"a ||| b c ||| 1",
    b"ab ||| c ||| 1",
    b"a b c ||| ||| 1",
    b"||| a b c ||| 1",
    b"a ||| ||| b c ||| 1",
    b"||| ||| 1",
    b"a b ||| C ||| 1",
    b"b a ||| c ||| 1",
    b"a b\x00 ||| c ||| 1",
    b"a b ||| c\xff ||| 1",
    b"a b | ||| c ||| 1",
    b"a b ||| c\r ||| 1",
]
BLANKS = st.sampled_from([b" ", b"\t", b"  ", b""])
FIELD = st.lists(st.tuples(BLANKS, st.sampled_from([b"a", b"b", b"&amp;", b"[X]", b"\xff"])), max_size=5).map(
    lambda pairs: b"".join(blank + word for blank, word in pairs)
)


def hashes_of(text, selected=None):
    array = np.frombuffer(text, np.uint8)
    offsets = line_offsets_of(array)
    return hash_pairs(array, offsets, np.ones(len(offsets) - 1, np.bool_) if selected is None else selected)


@settings(max_examples=300)
@given(st.lists(line, max_size=20), st.booleans())
def test_equal_hashes_are_equal_pairs(lines, newline):
    text = b"\n".join(lines) + b"\n" * (newline and bool(lines))
    parsed = [pair(line) for line in naive.parse_table(text)[0]]
    hashes = hashes_of(text).tolist()
    assert [h == 0 for h in hashes] == [parsed_pair is None for parsed_pair in parsed]
    numbers = {}
    assert [numbers.setdefault(parsed_pair, h) for parsed_pair, h in zip(parsed, hashes, strict=True)] == hashes
    assert len(set(numbers.values())) == len(numbers)


def test_different_pairs():
    assert len(set(hashes_of(b"\n".join(DIFFERENT)).tolist())) == len(DIFFERENT)


@pytest.mark.parametrize(
    "dress", [b"a b|||c|||", b" a  b |||  c ||| 9 9", b"a\tb\t|||\tc\t||| x\r", b"a b ||| c ||| 1 ||| 0-0 ||| 1 1 1"]
)
def test_white_space_and_further_fields_do_not_change_hashes(dress):
    assert hashes_of(dress).tolist() == hashes_of(DIFFERENT[0]).tolist()
    assert hashes_of(b"x ||| y ||| 1\n" + dress + b"\n").tolist()[1] == hashes_of(DIFFERENT[0]).tolist()[0]


def test_only_requested_lines_are_hashed():
    expected = np.arange(len(DIFFERENT)) % 3 == 0
    hashes = hashes_of(b"\n".join(DIFFERENT), expected)
    assert ((hashes != 0) == expected).all()


def test_many_pairs_have_as_many_hashes():
    text = b"".join(b"%d ||| %d ||| 1\n" % (i % 1000, i) for i in range(200_000))
    assert len(np.unique(hashes_of(text))) == 200_000


entry = st.tuples(line, line, st.sampled_from(SCORES), st.sampled_from(TAILS)).map(b"%b|||%b|||%b%b".__mod__)


@settings(max_examples=200)
@given(st.lists(entry, max_size=8), st.sampled_from([-1, 1, 2]), st.booleans())
def test_reading_lines_at_once(lines, scores, newline):
    text = b"\n".join(lines) + b"\n" * (newline and bool(lines))
    parsed = naive.parse_table(text, scores)[0]
    read = read_pair_hashes(np.frombuffer(text, np.uint8), len(parsed), scores)
    assert (read is None) == any(parsed_line.fault != "ok" for parsed_line in parsed)
    if read is not None:
        assert read[0].tolist() == [0, *(parsed_line.end for parsed_line in parsed)]
        assert read[1].tolist() == hashes_of(text).tolist()


@pytest.mark.parametrize(
    ("text", "offsets", "selected"),
    [
        (np.zeros(3, np.int8), np.array([0, 3]), np.ones(1, np.bool_)),
        (np.zeros(3, np.uint8), np.array([0, 3], np.int32), np.ones(1, np.bool_)),
        (np.zeros(3, np.uint8), np.array([0, 3]), np.ones(1, np.int8)),
        (np.zeros(3, np.uint8), np.array([0, 3]), np.ones(2, np.bool_)),
        (np.zeros(3, np.uint8), np.array([0, 4]), np.ones(1, np.bool_)),
    ],
)
def test_mismatched_arrays(text, offsets, selected):
    with pytest.raises(ValueError):
        hash_pairs(text, offsets, selected)


numbers = st.integers(0, 2**63 - 1).map(lambda number: number * 2) | st.integers(0, 5).map(lambda number: number * 2)


@given(st.lists(st.lists(numbers, max_size=30), max_size=5), st.lists(st.lists(numbers, max_size=30), max_size=5))
def test_set_agrees_with_python(added, looked_up):
    pairs = PairSet([np.array(part, np.uint64) for part in added])
    known = {number for part in added for number in part} - {0}
    assert len(pairs) == len(known)
    recorded = set()
    for part in looked_up:
        assert pairs.never_found() == len(known - recorded)
        assert pairs.find(np.array(part, np.uint64)).tolist() == [number in known for number in part]
        recorded |= set(part)
    assert pairs.never_found() == len(known - recorded)
    assert pairs.find(np.array([*known, 0], np.uint64)).tolist() == [True] * len(known) + [False]
    assert pairs.never_found() == 0


def test_a_full_and_crowded_set():
    # 600 hashes get 901 slots; all of these belong in the last slot, so probing wraps around to the first.
    crowd = (np.arange(1, 601, dtype=np.uint64) * np.uint64(901) - np.uint64(1)) * np.uint64(2)
    pairs = PairSet([crowd[:300], crowd[:300]])
    assert len(pairs) == 300
    assert pairs.find(crowd[:300]).all()
    assert not pairs.find(crowd[300:]).any()
    assert not pairs.find(np.zeros(4, np.uint64)).any()


def test_an_empty_set():
    pairs = PairSet([])
    assert len(pairs) == pairs.never_found() == 0
    assert pairs.find(np.array([0, 2, 2**64 - 2], np.uint64)).tolist() == [False] * 3


def test_wrong_types():
    with pytest.raises(ValueError):
        PairSet([]).find(np.zeros(3, np.int64))
    with pytest.raises(ValueError):
        read_pair_hashes(np.zeros(3, np.int64), 1, -1)


def keys_of(text, rows=None):
    array = np.frombuffer(text, np.uint8)
    offsets = line_offsets_of(array)
    return side_keys(array, offsets, np.arange(len(offsets) - 1) if rows is None else np.array(rows, np.int64))


def tokens(field):
    return tuple(field.replace(b"\t", b" ").split(b" ")) if field.strip(b" \t") else ()


def naive_sides(text_line):
    """Return source and target tokens; None for both if the line has no separator."""
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
    # A phrase has the same key on both sides.
    number = {}
    for side in (0, 1):
        for key, phrase in zip(keys[side].tolist(), [keys_of_pair[side] for keys_of_pair in expected], strict=True):
            assert (key == 0) == (phrase is None)
            assert number.setdefault(phrase, key) == key
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
    # Keys most of which belong in the same slot.
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
        result = sums.look_up(np.array([key(k) for k in range(12)], np.uint64))
        assert result.tolist() == [known.get(k, 0) for k in range(12)]
        sums.shrink()


def test_bad_arrays_for_sums():
    sums = KeyedSums(np.int32)
    for numbers in (np.ones(1, np.int32), np.ones(2)):
        with pytest.raises(ValueError, match="a number for each, int32"):
            sums.add(np.ones(2, np.uint64), numbers)
    with pytest.raises(ValueError, match="uint64 keys"):
        sums.look_up(np.ones(2, np.int64))


@given(st.lists(FIELD, max_size=6))
def test_different_words_have_different_hashes(fields):
    text = np.frombuffer(b"|".join(fields) + b"|", np.uint8)
    ends = np.cumsum([len(field) + 1 for field in fields], dtype=np.int64) - 1
    starts = ends - [len(field) for field in fields]
    result = hash_words(text, starts.astype(np.int64), ends)
    words = [word for field in fields for word in naive.tokens(field)]
    assert result.lengths.tolist() == [len(naive.tokens(field)) for field in fields]
    assert len(result.words) == len(words)
    assert len(dict(zip(words, result.words.tolist(), strict=True))) == len(set(result.words.tolist()))


def test_hashes_are_spread():
    """Each bit, including the highest and the lowest, is set in about half of the hashes of one-byte words."""
    text = np.arange(33, 127, dtype=np.uint8)
    words = hash_words(text, np.arange(94), np.arange(1, 95)).words
    bits = np.unpackbits(words.view(np.uint8).reshape(94, 8), axis=1)
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.25).all()
