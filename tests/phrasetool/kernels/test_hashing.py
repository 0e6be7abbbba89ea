import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from phrasetool.kernels.hashing import (
    FREE,
    find_bytes,
    find_ids,
    find_key,
    fnv_bytes,
    fnv_bytes_32,
    home,
    make_slots,
    mix,
)
from phrasetool.phrases import Phrases

# Test vectors of FNV-1a, from the page cited in `phrasetool.kernels.hashing`.
VECTORS = [
    (b"", 0xCBF29CE484222325, 0x811C9DC5),
    (b"a", 0xAF63DC4C8601EC8C, 0xE40C292C),
    (b"foobar", 0x85944171F73967E8, 0xBF9CF968),
]


@pytest.mark.parametrize(("text", "long", "short"), VECTORS)
def test_fnv_gives_its_published_values(text, long, short):
    array = np.frombuffer(b"<" + text + b">", np.uint8)
    assert int(fnv_bytes(array, 1, len(array) - 1)) == long
    assert int(fnv_bytes_32(array, 1, len(array) - 1)) == short


@njit
def homes(count, size):
    result = np.empty(count, np.int64)
    for key in range(count):
        result[key] = home(key, size)
    return result


@pytest.mark.parametrize("size", [1, 7, 1000, 4096])
def test_neighbouring_keys_are_spread_over_the_table(size):
    result = homes(20 * size, size)
    assert result.min() == 0
    assert result.max() == size - 1
    assert np.bincount(result).max() < 60


@njit
def mixed(first, second):
    return mix(mix(np.uint64(2), first), second)


def test_mixing_depends_on_the_order_of_the_values():
    hashes = {int(mixed(a, b)) for a in range(-20, 20) for b in range(-20, 20)}
    assert len(hashes) == 1600


@njit
def enter_keys(table, keys):
    for key in keys:
        table[find_key(table, key)] = key


@njit
def has_key(table, key):
    return table[find_key(table, key)] == key


@given(
    keys=st.lists(st.integers(1, 40) | st.integers(1, 2**64 - 1), max_size=60),
    others=st.lists(st.integers(1, 60) | st.integers(1, 2**64 - 1), max_size=30),
    spare=st.integers(1, 20),
)
def test_integers_are_found_exactly_where_they_were_entered(keys, others, spare):
    table = np.zeros(len(set(keys)) + spare, np.uint64)
    enter_keys(table, np.array(keys, np.uint64))
    assert sorted(table[table != 0].tolist()) == sorted(set(keys))
    for key in keys + others:
        assert has_key(table, np.uint64(key)) == (key in keys)


@njit
def enter_ids(offsets, ids, slots):
    for i in range(len(offsets) - 1):
        slot = find_ids(ids, offsets[i], offsets[i + 1], ids, offsets, slots)
        if slots[slot] < 0:
            slots[slot] = i


@njit
def number_of_ids(wanted, ids, offsets, slots):
    return slots[find_ids(wanted, 0, len(wanted), ids, offsets, slots)]


SEQUENCES = st.lists(st.lists(st.integers(-1, 3), max_size=4), max_size=40)


@given(known=SEQUENCES, wanted=SEQUENCES)
def test_sequences_of_integers_have_the_number_of_their_first_occurrence(known, wanted):
    phrases = Phrases.from_lists(known)
    slots = make_slots(len(known))
    enter_ids(phrases.offsets, phrases.words, slots)
    for sequence in known + wanted:
        expected = known.index(sequence) if sequence in known else FREE
        assert number_of_ids(np.array(sequence, np.int32), phrases.words, phrases.offsets, slots) == expected


@given(known=st.lists(st.binary(max_size=3), max_size=40, unique=True), others=st.lists(st.binary(max_size=3)))
def test_words_are_found_by_their_bytes(known, others):
    text = np.frombuffer(b"".join(known), np.uint8)
    offsets = np.cumsum([0] + [len(word) for word in known])
    slots = make_slots(len(known))
    for number in range(len(known)):
        slot = find_bytes(text, offsets[number], offsets[number + 1], text, offsets, slots)
        assert slots[slot] == FREE
        slots[slot] = number
    for word in known + others:
        array = np.frombuffer(b"." + word, np.uint8)
        result = slots[find_bytes(array, 1, len(array), text, offsets, slots)]
        assert result == (known.index(word) if word in known else FREE)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 1024])
def test_at_most_half_of_the_slots_are_taken(count):
    slots = make_slots(count)
    assert len(slots) >= 2 * count
    assert len(slots) & (len(slots) - 1) == 0
    assert (slots == FREE).all()


def test_too_many_keys_are_refused():
    with pytest.raises(ValueError, match="32 bits"):
        make_slots(2**31)
