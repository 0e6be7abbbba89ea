import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from phrasetool.syntax.dissimilarity import edit_distances, functional_dissimilarity, rank_correlation


def levenshtein(first, second):
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@given(st.lists(st.lists(st.integers(0, 3), max_size=8), max_size=6))
def test_distances_are_those_of_an_obvious_table(sequences):
    found = edit_distances(sequences)
    for i, first in enumerate(sequences):
        for j, second in enumerate(sequences):
            assert found[i, j] == levenshtein(first, second) / max(len(first), len(second), 1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=20))
def test_rank_correlation_is_scipys(pairs):
    first, second = (np.array(side, np.float64) for side in zip(*pairs, strict=True))
    found = rank_correlation(first, second)
    if np.ptp(first) and np.ptp(second):
        assert found == pytest.approx(spearmanr(first, second).statistic)
    else:
        assert found == 0


def test_perfect_and_turned_distances():
    # On a half circle cosines order pairs as their angles do.
    angles = np.array([0.0, 0.4, 1.1, 2.0])
    vectors = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    distances = 1 - vectors @ vectors.T
    wanted = distances.astype(np.float64) / distances.max()
    right = functional_dissimilarity(vectors, wanted)
    assert (right.fd, right.rho) == (pytest.approx(0, abs=1e-6), pytest.approx(1))
    literal = functional_dissimilarity(vectors, wanted, literal=True)
    assert literal.fd == pytest.approx(np.linalg.norm(1 - 2 * wanted) / 4, abs=1e-6)
    assert literal.rho == right.rho


def test_noise_deceives_fd_and_not_rho():
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 17, rng.integers(5, 25)).tolist() for _ in range(200)]
    edits = edit_distances(sequences)
    noise = functional_dissimilarity(rng.normal(size=(200, 256)).astype(np.float32), edits)
    bag = np.array([np.bincount(one, minlength=17) for one in sequences], np.float32)
    counts = functional_dissimilarity(bag, edits)
    assert abs(noise.rho) < 0.05 < counts.rho
    assert noise.fd < counts.fd


def test_equal_vectors_are_no_fault():
    found = functional_dissimilarity(np.ones((3, 2), np.float32), edit_distances([[1], [2], [1]]))
    assert (found.rho, found.fd) == (0, pytest.approx(2 / 3, abs=0.4))
