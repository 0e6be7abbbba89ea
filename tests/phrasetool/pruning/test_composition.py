from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pruning import composition
from phrasetool.pruning.composition import Compositions, EntriesBySourceLength, HashedPhrases
from tests import naive

words = st.integers(1, 3)
phrases = st.lists(words, min_size=1, max_size=5).map(tuple)
tables = st.lists(st.tuples(phrases, phrases, st.floats(-8, 0, width=32)), max_size=60)


def hashed(phrases):
    """Return phrases whose words are numbers spread over 64 bits."""
    offsets = np.append(0, np.cumsum([len(phrase) for phrase in phrases], dtype=np.int64))
    words = [word * 0x9E3779B97F4A7C15 % 2**64 for phrase in phrases for word in phrase]
    return HashedPhrases(offsets.astype(np.int64), np.array(words, np.uint64))


def levelled(entries):
    """Return entries in which consecutive ones with the same source form one group."""
    groups = [(source, len(list(group))) for source, group in groupby(entries, key=lambda entry: entry[0])]
    return EntriesBySourceLength.of(
        hashed([source for source, _ in groups]), np.array([size for _, size in groups], np.int64),
        hashed([entry[1] for entry in entries]), np.array([entry[2] for entry in entries], np.float32),
    )  # fmt: skip


def losses(entries, jump=0.0, threads=1, block=1000):
    compositions = Compositions()
    for first in range(0, len(entries), block):
        compositions.add(levelled(entries[first : first + block]))
    result = compositions.losses(jump, threads)
    # Taken in blocks of another size than those that were added.
    return np.concatenate([np.zeros(0, np.float32), *(result.take(7) for _ in range(0, len(entries), 7))])


@given(tables, st.sampled_from([0.0, 0.25]), st.sampled_from([1, 2]), st.sampled_from([1, 3, 1000]))
def test_losses_are_the_naive_ones(entries, jump, threads, block):
    expected = np.array(naive.composition_losses(entries, jump), np.float64)
    np.testing.assert_allclose(losses(entries, jump, threads, block), expected, atol=1e-4)


def test_sources_of_many_words_share_a_file(monkeypatch):
    """Each entry is composed of the next shorter one and a word, from the shortest to the longest."""
    monkeypatch.setattr(composition, "LONG", 3)
    words = [((word,), (word,), -1.0) for word in range(1, 8)]
    long = [(tuple(range(1, size + 1)), tuple(range(1, size + 1)), -float(size)) for size in range(2, 8)]
    # In an order in which entries of successive lengths are not adjacent.
    entries = words + long[::2] + long[1::2]
    expected = naive.composition_losses(entries, 0.25)
    np.testing.assert_allclose(losses(entries, 0.25, 2, 5), expected, atol=1e-4)
    assert np.isfinite(expected[len(words) :]).all()


def test_a_phrase_of_three_words_is_composed_from_a_phrase_of_two():
    entries = [
        *[((word,), (word,), -1.0) for word in (1, 2, 3)], ((1, 2), (1, 2), -9.0), ((1, 2, 3), (1, 2, 3), -2.0),
    ]  # fmt: skip
    # The two-word entry costs 9, but its own composition 2.
    np.testing.assert_allclose(losses(entries), [np.inf, np.inf, np.inf, -7.0, 1.0])


def test_a_swap_jumps_twice_the_words_of_the_source():
    entries = [((1, 1), (1,), -1.0), ((2,), (2,), -1.0), ((1, 1, 2), (2, 1), -1.0)]
    np.testing.assert_allclose(losses(entries, jump=0.5), [np.inf, np.inf, 1.0 + 0.5 * 2 * 3])


def test_an_empty_table():
    assert losses([]).shape == (0,)


@pytest.mark.parametrize("scores", [np.zeros(1, np.float64), np.zeros(2, np.float32)])
def test_scores_of_another_form_are_refused(scores):
    with pytest.raises(ValueError, match="expected float32"):
        EntriesBySourceLength.of(hashed([(1,)]), np.ones(1, np.int64), hashed([(1,)]), scores)


def test_groups_must_hold_all_entries():
    with pytest.raises(ValueError, match="1 groups of 2 entries"):
        EntriesBySourceLength.of(hashed([(1,)]), np.array([2]), hashed([(1,)]), np.zeros(1, np.float32))
