import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier.labelled_pairs import contained_pairs, random_pairs
from phrasetool.pair_classifier.model import probabilities_of
from phrasetool.pair_classifier.quality import (
    best_quality,
    calibrated_temperature,
    calibration_error,
    measure_pair_classifier,
    quality_at,
)
from phrasetool.ranking import area_under_curve
from tests.parallel_models import WORDS, random_parallel_model, toy_pairs

# Few values, so that many are equal.
PAIRS = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=20).filter(
    lambda pairs: {parallel for _, parallel in pairs} == {True, False}
)


def arrays(pairs):
    return np.array([value / 8 for value, _ in pairs]), np.array([parallel for _, parallel in pairs])


def naive_f1(found, parallel, threshold):
    right = sum(p and f >= threshold for f, p in zip(found, parallel, strict=True))
    wrong = sum(f >= threshold and not p for f, p in zip(found, parallel, strict=True))
    missed = sum(p and f < threshold for f, p in zip(found, parallel, strict=True))
    return 2 * right / (2 * right + wrong + missed)


@given(PAIRS, st.integers(0, 8))
def test_quality_at_a_threshold(pairs, threshold):
    result, parallel = arrays(pairs)
    quality = quality_at(result, parallel, threshold / 8)
    assert quality.f1 == pytest.approx(naive_f1(result, parallel, threshold / 8))
    assert quality.threshold == threshold / 8


@given(PAIRS)
def test_the_best_threshold(pairs):
    result, parallel = arrays(pairs)
    best = best_quality(result, parallel)
    assert best.f1 == pytest.approx(max(naive_f1(result, parallel, threshold) for threshold in result))
    assert best.f1 == quality_at(result, parallel, best.threshold).f1
    assert 0 <= best.threshold <= 1


def test_a_threshold_between_neighbouring_numbers():
    low = np.nextafter(0.5, 0)
    best = best_quality(np.array([0.5, low]), np.array([True, False]))
    assert (best.f1, best.threshold) == (1.0, 0.5)


@given(PAIRS)
def test_area_under_the_curve(pairs):
    result, parallel = arrays(pairs)
    couples = [(a > b) + (a == b) / 2 for a in result[parallel] for b in result[~parallel]]
    assert area_under_curve(result[parallel], result[~parallel]) == pytest.approx(np.mean(couples))


def test_calibration():
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 2, 40000)
    parallel = rng.random(40000) < probabilities_of(logits)
    assert calibrated_temperature(logits, parallel) == pytest.approx(1, abs=0.05)
    assert calibrated_temperature(3 * logits, parallel) == pytest.approx(3, abs=0.15)
    assert calibration_error(probabilities_of(logits), parallel) < 0.015
    assert calibration_error(probabilities_of(3 * logits), parallel) > 0.08
    assert calibration_error(probabilities_of(3 * logits, 3.0), parallel) < 0.015
    # Two bins: half of the pairs with probability 0.2 are parallel, and all with 0.9.
    probabilities, labels = np.array([0.2, 0.2, 0.9, 0.9]), np.array([True, False, True, True])
    assert calibration_error(probabilities, labels) == pytest.approx((0.3 * 2 + 0.1 * 2) / 4)


def test_probabilities_of_any_logit():
    result = probabilities_of(np.array([-np.inf, -1e6, 0.0, 1e6]))
    assert result.tolist() == [0.0, 0.0, 0.5, 1.0]


TEXTS = toy_pairs(60)


def test_the_quality_is_that_of_the_probabilities_of_each_pair():
    model = random_parallel_model()
    result = measure_pair_classifier(model, TEXTS, 3)

    def lines(texts, side):
        return [b" ".join(WORDS[side][i] for i in text) for text in texts]

    for labelled, half, best in (
        (random_pairs(TEXTS, 5, 3), result.random_half, result.random_best),
        (contained_pairs(TEXTS, 3), result.contained_half, result.contained_best),
    ):
        sources, targets = lines(TEXTS.sources, 0), lines(labelled.targets, 1)
        p = model.probabilities([sources[i] for i in labelled.rows], [targets[i] for i in labelled.columns])
        assert quality_at(p, labelled.parallel, 0.5) == half
        assert quality_at(p, labelled.parallel, 0.4) == best
        if labelled.targets is TEXTS.targets:
            assert result.auc == pytest.approx(area_under_curve(p[labelled.parallel], p[~labelled.parallel]))
    vectors = [model.encode(lines(TEXTS.sources, side), name) for side, name in enumerate(("source", "target"))]
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in vectors]
    nearest = (unit[0] @ unit[1].T).argmax(1)
    right = [np.array_equal(TEXTS.targets[i], TEXTS.targets[j]) for i, j in enumerate(nearest.tolist())]
    assert result.accuracy_at_1 == np.mean(right)
    assert result.pairs == 60


def test_nothing_to_tell_apart():
    with pytest.raises(ValueError, match="no negative pairs"):
        measure_pair_classifier(random_parallel_model(), TEXTS.select(np.array([0, 0])), 1)
