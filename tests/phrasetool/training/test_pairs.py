from dataclasses import replace

import numpy as np

from phrasetool.phrases import Phrases
from phrasetool.training.pairs import PhrasePairs, log_shares
from tests.phrasetool.training.toy_language import vocabulary


def test_merging_adds_counts_and_keeps_the_order():
    sources, targets = [[1], [1, 2], [1], [3]], [[2, 3], [3], [2, 3], [2, 3]]
    pairs = Phrases.from_lists(sources), Phrases.from_lists(targets)
    merged = PhrasePairs(*pairs, np.array([1, 2, 4, 8]), vocabulary(b"f"), vocabulary(b"e")).merged()
    assert [phrase.tolist() for phrase in merged.sources] == [[1], [1, 2], [3]]
    assert merged.counts.tolist() == [5, 2, 8]


def repeated():
    return PhrasePairs(
        Phrases.from_lists([[1], [1, 2], [1], [3]]), Phrases.from_lists([[2, 3], [3], [4], [2, 3]]),
        np.array([1, 16, 4, 4]), vocabulary(b"f"), vocabulary(b"e"),
    )  # fmt: skip


def test_weights_are_powers_of_the_counts_with_mean_1():
    pairs = repeated()
    assert pairs.weights(0).tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(pairs.weights(1), np.array([1, 16, 4, 4]) / 6.25)
    np.testing.assert_allclose(pairs.weights(0.5), np.array([1, 4, 2, 2]) / 2.25)


def test_shares_count_the_pairs_that_hold_a_phrase():
    pairs = repeated()
    np.testing.assert_allclose(np.exp(log_shares(pairs.sources)), [1 / 2, 1 / 4, 1 / 2, 1 / 4])
    np.testing.assert_allclose(np.exp(log_shares(pairs.targets)), [1 / 2, 1 / 4, 1 / 4, 1 / 2])


def test_a_fingerprint_differs_when_a_count_does():
    pairs = repeated()
    assert replace(pairs, counts=pairs.counts + 1).fingerprint != pairs.fingerprint
    assert pairs.select(np.arange(4)).fingerprint == pairs.fingerprint
