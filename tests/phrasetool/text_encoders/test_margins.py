import numpy as np
import pytest

from phrasetool.text_encoders.margins import (
    NORMALISATIONS,
    ROWS,
    mean_direction,
    nearness,
    pair_similarities,
    prepared,
    sample_rows,
    unit_rows,
)


def halves(rows, n, seed, zero=()):
    vectors = np.random.default_rng(seed).normal(0.3, 1, (rows, n))
    vectors[list(zero)] = 0
    return unit_rows(vectors).astype(np.float16)


def naive_margin(source, target, sources, targets, k):
    """Return 2 cos(s, t) - r(s) - r(t) of one pair, in double precision."""

    def reach(vector, others):
        return np.mean(sorted((float(vector @ other) for other in others), reverse=True)[:k])

    return 2 * float(source @ target) - reach(source, targets) - reach(target, sources)


@pytest.mark.parametrize("n", [1, 7, 16, 33])
def test_margins_are_those_of_the_definition(n):
    sources, targets = halves(40, n, 1), halves(30, n, 2)
    reached = nearness(sources, sample_rows(targets)), nearness(targets, sample_rows(sources))
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 40, 200), rng.integers(0, 30, 200)
    result, known = pair_similarities(*rows, (sources, targets), reached, True)
    exact = sources.astype(np.float64), targets.astype(np.float64)
    expected = [naive_margin(exact[0][s], exact[1][t], *exact, 10) for s, t in zip(*rows, strict=True)]
    np.testing.assert_allclose(result, np.clip(expected, -1, 1), atol=1e-5)
    assert known.all()
    cosines, _ = pair_similarities(*rows, (sources, targets), reached, False)
    np.testing.assert_allclose(cosines, (exact[0][rows[0]] * exact[1][rows[1]]).sum(1).clip(-1, 1), atol=1e-6)


def test_every_half_precision_number_is_widened_exactly():
    finite = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = finite[np.isfinite(finite) & (np.abs(finite) <= 1)]
    rows = np.arange(len(finite))
    unit = np.ones((1, 1), np.float16)
    result, known = pair_similarities(
        rows, np.zeros(len(rows), np.int64), (finite[:, None], unit), (np.zeros(0, np.float32),) * 2, False
    )
    # The square of a number below 1e-23 would underflow; half precision has no such numbers.
    np.testing.assert_array_equal(known, finite != 0)
    np.testing.assert_array_equal(result, finite.astype(np.float32))


def test_phrases_without_a_vector_have_no_score():
    sources, targets = halves(5, 4, 1, zero=[2]), halves(5, 4, 2, zero=[3])
    reached = nearness(sources, sample_rows(targets)), nearness(targets, sample_rows(sources))
    result, known = pair_similarities(
        np.array([0, 2, 1, -1, 0]), np.array([0, 0, 3, 0, -1]), (sources, targets), reached, True
    )
    assert known.tolist() == [True, False, False, False, False]
    assert result[1:].tolist() == [0, 0, 0, 0]
    assert reached[0][2] == 0


def test_fewer_others_than_neighbours():
    vectors = halves(3, 4, 1)
    exact = vectors.astype(np.float64)
    np.testing.assert_allclose(nearness(vectors, sample_rows(vectors)), (exact @ exact.T).mean(1), atol=1e-6)
    assert nearness(vectors, np.zeros((0, 4), np.float32)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("rows", [1, ROWS - 1, ROWS, 3 * ROWS + 5])
def test_nearness_does_not_depend_on_threads_or_neighbours(rows):
    vectors, others = halves(rows, 24, 1), sample_rows(halves(500, 24, 2))
    result = nearness(vectors, others, 1)
    np.testing.assert_array_equal(result, nearness(vectors, others, 3))
    np.testing.assert_array_equal(result[-1:], nearness(vectors[-1:], others, 1))
    products = np.sort(vectors.astype(np.float64) @ others.astype(np.float64).T)[:, -10:]
    np.testing.assert_allclose(result, products.mean(1), atol=1e-6)


def test_centring():
    vectors = halves(ROWS + 300, 6, 1, zero=[0, ROWS])
    exact = vectors.astype(np.float64)
    exact = np.delete(exact, [0, ROWS], axis=0)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    centre = mean_direction(vectors)
    np.testing.assert_allclose(centre, exact.mean(0), atol=1e-6)
    exact -= exact.mean(0)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    result = np.concatenate(list(prepared(vectors, centre)))
    assert result.dtype == np.float16
    assert not result[[0, ROWS]].any()
    np.testing.assert_allclose(np.delete(result, [0, ROWS], axis=0).astype(np.float64), exact, atol=1e-3)


def test_samples_are_seeded_and_hold_no_zeros():
    vectors = halves(900, 4, 1, zero=range(0, 900, 3))
    result = sample_rows(vectors, 50)
    np.testing.assert_array_equal(result, sample_rows(vectors, 50))
    assert result.shape == (50, 4)
    assert result.any(1).all()
    assert np.abs(result - sample_rows(vectors, 50, seed=2)).max() > 0
    assert len(sample_rows(vectors, 5000)) == 600


def test_names_of_normalisations():
    assert {(kind.centred, kind.margin) for kind in NORMALISATIONS.values()} == {(a, b) for a in (0, 1) for b in (0, 1)}


@pytest.mark.parametrize(
    ("rows", "vectors"),
    [
        (([5], [0]), None), (([0], [-2]), None), (([0, 1], [0]), None),
        (([0], [0]), (np.zeros((5, 4), np.float32), np.zeros((5, 4), np.float16))),
        (([0], [0]), (np.zeros((5, 4), np.float16), np.zeros((5, 3), np.float16))),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(rows, vectors):
    zeros = np.zeros(5, np.float32), np.zeros(5, np.float32)
    with pytest.raises(ValueError, match=r"expected|outside"):
        pair_similarities(*map(np.array, rows), vectors or (halves(5, 4, 1), halves(5, 4, 2)), zeros, True)
    with pytest.raises(ValueError, match="nearness"):
        pair_similarities(
            np.zeros(1, np.int64), np.zeros(1, np.int64), (halves(5, 4, 1),) * 2, (zeros[0][:3],) * 2, True
        )
