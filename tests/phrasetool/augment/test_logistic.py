import numpy as np
import pytest

from phrasetool.augment.logistic import expected, regression


def test_known_weights_are_found():
    rng = np.random.default_rng(1)
    rows = rng.normal([1, -2, 0], [1, 3, 0.2], (4000, 3))
    truth = np.array([0.8, -0.4, 2.0, -0.5])
    found = regression(rows, 1 / (1 + np.exp(-(rows @ truth[:-1] + truth[-1]))))
    assert found == pytest.approx(truth, abs=0.05)
    assert expected(rows[:1], truth)[0] == pytest.approx(1 / (1 + np.exp(-(rows[0] @ truth[:-1] - 0.5))))


def test_as_sklearn_finds_them():
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(500, 2))
    right = (rows @ [1, -1] + rng.normal(size=500) > 0.3).astype(float)
    scaled = (rows - rows.mean(0)) / rows.std(0)
    theirs = linear.LogisticRegression(C=1 / (1e-3 * 500), tol=1e-10).fit(scaled, right)
    assert expected(rows, regression(rows, right)) == pytest.approx(theirs.predict_proba(scaled)[:, 1], abs=1e-4)


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_without_variety_there_still_are_weights(right):
    found = regression(np.ones((5, 2)), np.full(5, right))
    assert np.isfinite(found).all()
    assert abs(expected(np.ones((1, 2)), found)[0] - right) < 0.1
