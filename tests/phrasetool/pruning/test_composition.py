import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.pruning.composition import composition_losses
from phrasetool.pruning.measures import NumberedEntries
from phrasetool.unique_phrases import number_distinct
from tests import naive

words = st.integers(1, 3)
phrases = st.lists(words, min_size=1, max_size=5).map(tuple)
tables = st.lists(st.tuples(phrases, phrases, st.floats(-8, 0, width=32)), max_size=60)


def numbered(entries):
    sides = []
    for side in (0, 1):
        every = Phrases.from_lists([entry[side] for entry in entries])
        numbers, firsts = number_distinct(every)
        sides.append((every.select(firsts), numbers.astype(np.int32)))
    return NumberedEntries(sides[0][0], sides[1][0], sides[0][1], sides[1][1])


def losses(entries, jump=0.0, threads=1):
    scores = np.array([entry[2] for entry in entries], np.float32)
    return composition_losses(numbered(entries), scores, jump, threads)


@given(tables, st.sampled_from([0.0, 0.25]), st.sampled_from([1, 2]))
def test_losses_are_the_naive_ones(entries, jump, threads):
    expected = np.array(naive.composition_losses(entries, jump), np.float64)
    np.testing.assert_allclose(losses(entries, jump, threads), expected, atol=1e-4)


def test_a_phrase_of_three_words_is_composed_by_way_of_a_phrase_of_two():
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
        composition_losses(numbered([((1,), (1,), 0.0)]), scores)


def test_phrases_must_be_distinct():
    twice = Phrases.from_lists([[1], [1]])
    numbers = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="only 1 distinct"):
        composition_losses(NumberedEntries(twice, twice, numbers, numbers), np.zeros(1, np.float32))
