import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrase_encoder.scoring import Calibration
from phrasetool.phrases import Phrases

cosines = st.floats(-1, 1, width=32)


def naive(x, random, pair):
    """Interpolate linearly between (-1, -1), (random, 0), (pair, 0.7) and (1, 1)."""
    return float(np.interp(x, [-1, random, pair, 1], [-1, 0, 0.7, 1]))


def calibrated(calibration, values):
    array = np.array(values, np.float32).reshape(-1, 1)
    calibration.apply(array)
    return array[:, 0]


@given(st.lists(cosines, max_size=20), st.floats(-0.9, 0.8), st.floats(0.02, 0.9))
def test_calibration_equals_the_obvious_interpolation_and_keeps_the_order(values, random, share):
    pair = random + share * (1 - random)
    calibration = Calibration(random, pair)
    result = calibrated(calibration, values)
    np.testing.assert_allclose(result, [naive(x, random, pair) for x in values], atol=2e-5)
    assert np.all(np.abs(result) <= 1)
    assert np.all(np.diff(calibrated(calibration, sorted(values))) >= 0)


def test_the_ends_and_knots():
    calibration = Calibration(0.1, 0.35)
    np.testing.assert_allclose(calibrated(calibration, [-1, 0.1, 0.35, 1]), [-1, 0, 0.7, 1], atol=1e-6)
    # These knots give the identity.
    np.testing.assert_allclose(calibrated(Calibration(0.0, 0.7), [-0.3, 0.2, 0.9]), [-0.3, 0.2, 0.9], atol=1e-6)


@pytest.mark.parametrize(("random", "pair"), [(0.5, 0.5), (0.6, 0.5), (-1.0, 0.5), (0.0, 1.0), (float("nan"), 0.5)])
def test_knots_out_of_order_are_refused(random, pair):
    with pytest.raises(ValueError, match="expected -1 < random < pair < 1"):
        Calibration(random, pair)


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.zeros(2, np.float32), np.zeros((4, 4), np.float32)[:, ::2]])
def test_other_arrays_are_refused(array):
    with pytest.raises(ValueError, match="contiguous float32 matrix"):
        Calibration(0.0, 0.5).apply(array)


def test_calibration_is_restored_from_its_dictionary():
    calibration = Calibration(0.02, 0.36)
    assert Calibration.from_dict(calibration.as_dict()) == calibration
    for damaged in ({}, {"random": 0.1}, {"random": "x", "pair": 0.5}, {"random": 0.5, "pair": 0.1}):
        with pytest.raises(ValueError, match=r"calibration|could not convert|expected"):
            Calibration.from_dict(damaged)


class Known:
    """Scorer of one-word phrases: about `same` for equal words, about `other` for different ones."""

    def __init__(self, same, other):
        self.same, self.other = same, other

    def score_pairs(self, sources, targets):
        rng = np.random.default_rng(len(sources))
        alike = sources.words == targets.words
        noise = rng.uniform(-0.05, 0.05, (len(sources), 2))
        return (np.where(alike, self.same, self.other)[:, None] + noise).astype(np.float32)


def test_a_fit_puts_random_pairs_at_zero_and_almost_all_pairs_above_the_level():
    words = Phrases.from_lists([[1 + i] for i in range(1000)])
    scorer = Known(0.5, 0.1)
    fitted = Calibration.fit(scorer.score_pairs, words, words, seed=1)
    similarities = scorer.score_pairs(words, words)
    fitted.apply(similarities)
    assert np.mean(similarities.max(1) < 0.7) == pytest.approx(0.01, abs=0.005)
    assert fitted.random == pytest.approx(0.1, abs=0.03)
    assert Calibration.fit(scorer.score_pairs, words, words, seed=1) == fitted


def test_a_model_that_does_not_discriminate_has_no_calibration():
    words = Phrases.from_lists([[1 + i] for i in range(50)])
    assert Calibration.fit(Known(0.3, 0.3).score_pairs, words, words, seed=1) is None
    assert Calibration.fit(Known(0.3, 0.3).score_pairs, words.part(0, 0), words.part(0, 0), seed=1) is None
