import numpy as np
import pytest

from phrasetool.syntax.tag_groups import NO_GROUP, chance_accuracy, group_numbers, neighbour_accuracies, unit_vectors


def test_groups_are_large_enough():
    found = group_numbers(["a"] * 3 + ["b"] * 2 + ["a"], 3)
    assert found.tolist() == [0, 0, 0, NO_GROUP, NO_GROUP, 0]
    assert group_numbers([]).tolist() == []


def naive_accuracy(vectors, groups, count, sentences):
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    right = []
    for i in range(len(vectors)):
        others = [j for j in range(len(vectors)) if sentences[j] != sentences[i]]
        near = sorted(others, key=lambda j: -unit[i] @ unit[j])[:count]
        right.append(np.mean([groups[j] == groups[i] for j in near]))
    return np.mean(right)


def test_accuracies_are_those_of_an_obvious_search():
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 8, 300)
    vectors = (rng.normal(size=(8, 5))[groups] + rng.normal(size=(300, 5))).astype(np.float32)
    sentences = rng.integers(0, 100, 300)
    for parts in (np.arange(300), sentences):
        found = neighbour_accuracies(vectors, groups, (1, 5), parts)
        expected = [naive_accuracy(vectors, groups, count, parts) for count in (1, 5)]
        assert found == pytest.approx(expected, abs=0.005)
    assert neighbour_accuracies(vectors, groups) == neighbour_accuracies(vectors, groups, (1, 5), np.arange(300))


def test_what_is_equally_near_is_drawn():
    groups = np.repeat([0, 1], 200)
    same = neighbour_accuracies(np.ones((400, 2), np.float32), groups, (5,))[0]
    assert same == pytest.approx(0.5, abs=0.35)
    perfect = neighbour_accuracies(np.eye(2, dtype=np.float32)[groups], groups, (1, 5))
    assert perfect == [1, 1]


def test_chance():
    assert chance_accuracy(np.array([0, 0, 1, 1])) == pytest.approx(1 / 3)
    assert chance_accuracy(np.zeros(4, np.int64)) == 1


def test_zeros_stay_zeros():
    assert unit_vectors(np.array([[3, 4], [0, 0]], np.float32)).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [0, 0],
    ]
