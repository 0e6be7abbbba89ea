import numpy as np

from phrasetool.ranking import pairwise_auc


def naive(own, targets, similarity, seed):
    """In obvious Python, with the same draws."""
    rng = np.random.default_rng(seed)
    points = []
    for _ in range(8):
        for row, place in enumerate(rng.integers(0, len(own), len(own)).tolist()):
            if targets[place] != targets[row]:
                drawn = similarity[row][targets[place]]
                points.append(1.0 if own[row] > drawn else 0.5 if own[row] == drawn else 0.0)
    return sum(points) / len(points) if points else None


def test_against_the_obvious_way():
    rng = np.random.default_rng(3)
    # Whole numbers, so that there are ties.
    similarity = rng.integers(0, 4, (30, 9)).astype(np.float32)
    targets = rng.integers(0, 9, 30)
    rows = np.arange(30)
    own = similarity[rows, targets] + 1
    found = pairwise_auc(own, targets, lambda other: similarity[rows, other], 5)
    assert found == naive(own.tolist(), targets.tolist(), similarity.tolist(), 5)
    assert 0.5 < found < 1


def test_bounds():
    targets = np.arange(40)
    for sign, expected in ((1, 1.0), (-1, 0.0), (0, 0.5)):
        own = np.full(40, sign, np.float32)
        assert pairwise_auc(own, targets, lambda other: np.zeros(len(other), np.float32), 1) == expected


def test_one_target_has_no_others():
    own = np.ones(5, np.float32)
    assert pairwise_auc(own, np.zeros(5, np.int64), lambda other: own, 1) is None
