import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.training.masked_lm.masking import hide
from phrasetool.training.masked_lm.word_pieces import BEGIN, END, MASK, PAD, SPECIAL

PIECES = 1000


def batch(rng, rows, width):
    """Texts of different lengths between special tokens, some pieces unknown."""
    ids = rng.integers(1, PIECES, (rows, width))
    ids[:, 0] = BEGIN
    for row, length in enumerate(rng.integers(2, width + 1, rows)):
        ids[row, length - 1], ids[row, length:] = END, PAD
    return ids


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(2, 12), st.floats(0.01, 0.99))
def test_special_tokens_are_never_chosen_and_never_drawn(seed, rows, width, share):
    rng = np.random.default_rng(seed)
    ids = batch(rng, rows, width)
    hidden = hide(ids, share, PIECES, rng)
    assert not hidden.chosen[ids < len(SPECIAL)].any()
    assert (hidden.ids[~hidden.chosen] == ids[~hidden.chosen]).all()
    assert hidden.wanted.tolist() == ids[hidden.chosen].tolist()
    shown = hidden.ids[hidden.chosen]
    assert ((shown == MASK) | (shown >= len(SPECIAL))).all()
    assert (shown < PIECES).all()
    assert hidden.chosen.any() == (ids >= len(SPECIAL)).any()


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_shares_are_those_of_the_rule(share):
    rng = np.random.default_rng(1)
    ids = batch(rng, 4000, 60)
    hidden = hide(ids, share, PIECES, rng)
    assert hidden.chosen.sum() / (ids >= len(SPECIAL)).sum() == pytest.approx(share, rel=0.03)
    shown = hidden.ids[hidden.chosen]
    assert np.mean(shown == MASK) == pytest.approx(0.8, abs=0.01)
    assert np.mean(shown == hidden.wanted) == pytest.approx(0.1, abs=0.01)
    drawn = shown[(shown != MASK) & (shown != hidden.wanted)]
    assert len(drawn) / len(shown) == pytest.approx(0.1, abs=0.01)
    # Every piece may be drawn, all alike.
    assert drawn.mean() == pytest.approx((PIECES + len(SPECIAL)) / 2, rel=0.05)


def test_a_seed_fixes_what_is_hidden():
    ids = batch(np.random.default_rng(1), 20, 30)
    first, again, other = (hide(ids, 0.15, PIECES, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert (first.ids == again.ids).all()
    assert (first.ids != other.ids).any()


def test_one_place_of_a_short_text_is_chosen():
    ids = np.array([[BEGIN, 7, END]])
    for seed in range(20):
        assert hide(ids, 0.01, PIECES, np.random.default_rng(seed)).wanted.tolist() == [7]
    assert not len(hide(ids[:, ::2], 0.5, PIECES, np.random.default_rng(1)).wanted)
