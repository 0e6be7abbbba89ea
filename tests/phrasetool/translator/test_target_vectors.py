import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.translator.architecture import CENTRINGS, UNKNOWN_VECTORS
from phrasetool.translator.target_vectors import target_table
from phrasetool.vocabulary import Vocabulary
from tests.naive_translator import unit

WORDS = [b"<unk>", b"a", b"b", b"c", b"d"]


def vectors(seed, dimension=6, outside=2):
    rng = np.random.default_rng(seed)
    names = [*WORDS[1:], *(b"rare%d" % i for i in range(outside))]
    return {name: rng.normal(1, 1, dimension).astype(np.float32) for name in names}


@given(st.integers(0, 1000), st.sampled_from(CENTRINGS), st.sampled_from(UNKNOWN_VECTORS), st.integers(0, 3))
def test_rows_have_length_one_and_none_is_zero(seed, centring, unknown, outside):
    table = target_table(Vocabulary(WORDS), vectors(seed, outside=outside), centring, unknown, seed)
    assert table.shape == (6, 6)
    assert table.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(table[-1], 6**-0.5, rtol=1e-6)


def test_by_hand():
    known = vectors(1)
    table = target_table(Vocabulary(WORDS), known, "plain", "mean", 1)
    np.testing.assert_allclose(table[1:5], [unit(known[word]) for word in WORDS[1:]], rtol=1e-5)
    rare = unit(known[b"rare0"]) + unit(known[b"rare1"])
    np.testing.assert_allclose(table[0], unit(rare), rtol=1e-5)
    np.testing.assert_allclose(target_table(Vocabulary(WORDS), known, "plain", "negated", 1)[0], -table[0])
    centred = target_table(Vocabulary(WORDS), known, "centred", "mean", 1)
    middle = np.mean([known[word] for word in WORDS[1:]], axis=0)
    np.testing.assert_allclose(centred[3], unit(known[b"c"] - middle), rtol=1e-4)
    # Without words outside, the two least frequent ones stand for them.
    rare = unit(table[3] + table[4])
    alone = {word: known[word] for word in WORDS[1:]}
    np.testing.assert_allclose(target_table(Vocabulary(WORDS), alone, "plain", "mean", 1)[0], rare, rtol=1e-5)


def test_random_directions_owe_nothing_to_the_vectors():
    one, other = (target_table(Vocabulary(WORDS), vectors(seed), "random", "mean", 7) for seed in (1, 2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, target_table(Vocabulary(WORDS), vectors(1), "random", "mean", 8))


def changed(**changes):
    return {**vectors(1), **{name.encode(): np.array(row, np.float32) for name, row in changes.items()}}


@pytest.mark.parametrize(
    ("words", "known", "message"),
    [
        (WORDS[:1], vectors(1), "no target word has a vector"),
        (WORDS[:2], vectors(1), "a is the only target word with a vector"),
        (WORDS, changed(b=[0] * 6), "the vector of the target word b is zero"),
        (WORDS, changed(c=[1, np.nan, 0, 0, 0, 0]), "the vector of the target word c is not finite"),
        (WORDS, changed(c=[1, np.inf, 0, 0, 0, 0]), "the vector of the target word c is not finite"),
        (WORDS, changed(rare0=[np.nan] * 6), "the vector of the target word rare0 is not finite"),
        (WORDS, changed(b=[1] * 6, d=[1] * 6), "the target words b and d have the same vector"),
    ],
)
def test_what_cannot_be_told_apart(words, known, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        target_table(Vocabulary(words), known, "plain", "mean", 1)


def test_a_word_in_the_middle_of_all_has_no_direction():
    known = {b"a": np.array([1, 2, 3, 4]), b"b": np.array([3, 2, 1, 0]), b"c": np.array([2, 2, 2, 2])}
    known = {word: row.astype(np.float32) for word, row in known.items()}
    with pytest.raises(ValueError, match="word c is zero"):
        target_table(Vocabulary(WORDS[:4]), known, "centred", "mean", 1)
    with pytest.raises(KeyError):
        target_table(Vocabulary(WORDS), known, "plain", "mean", 1)
