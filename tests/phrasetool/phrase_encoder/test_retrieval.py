import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrases import Phrases
from phrasetool.ranking import area_under_curve


class FixedScorer:
    """Scorer with fixed unit vectors, so that the correct ranks are known."""

    def __init__(self, sources, targets):
        self.tables = np.asarray(sources, np.float32), np.asarray(targets, np.float32)

    def encode_sources(self, phrases):
        vectors = self.tables[0][[int(p[0]) for p in phrases]]
        return vectors, vectors

    def encode_targets(self, phrases):
        vectors = self.tables[1][[int(p[0]) for p in phrases]]
        return vectors, vectors

    def calibrate(self, cosines):
        """Leave the cosines unchanged."""

    def score_pairs(self, sources, targets):
        s, t = self.encode_sources(sources)[0], self.encode_targets(targets)[0]
        return np.repeat((s * t).sum(1, keepdims=True), 2, 1)


def test_ranks_of_a_known_similarity_matrix():
    # Target 1 is the nearest of all sources; the true target of the other sources ranks second.
    sources = np.eye(4)
    targets = np.eye(4) * 0.5
    targets[1] = [0.8, 0.6, 0.8, 0.8]
    phrases = Phrases.from_lists([[0], [1], [2], [3]])
    quality = evaluate_pairs(FixedScorer(sources, targets), phrases, phrases, 4, candidates=4)
    assert quality.pairs == quality.candidates == 4
    assert quality.accuracy_at_1 == 0.25
    assert quality.accuracy_at_10 == 1
    assert quality.mean_reciprocal_rank == pytest.approx((1 + 3 * 0.5) / 4)


def test_constant_similarities_rank_the_true_target_last():
    table = np.ones((5, 3)) / np.sqrt(3)
    phrases = Phrases.from_lists([[i] for i in range(5)])
    quality = evaluate_pairs(FixedScorer(table, table), phrases, phrases, 5, candidates=5)
    assert quality.accuracy_at_1 == 0
    assert quality.mean_reciprocal_rank == pytest.approx(0.2)
    assert quality.auc_other_targets == 0.5


def test_another_translation_of_the_source_counts_as_one():
    # Source 0 has the targets 0 and 1; target 1 is nearer to it.
    sources, targets = np.eye(3), np.array([[0.6, 0, 0.8], [1, 0, 0], [0, 0, 1]])
    pairs = Phrases.from_lists([[0], [0], [2]]), Phrases.from_lists([[0], [1], [2]])
    quality = evaluate_pairs(FixedScorer(sources, targets), *pairs, 3, candidates=3)
    assert quality.accuracy_at_1 == pytest.approx(2 / 3)
    assert quality.any_translation_at_1 == 1


def test_the_same_target_twice_is_not_a_wrong_candidate():
    phrases = Phrases.from_lists([[0], [0]])
    quality = evaluate_pairs(FixedScorer(np.eye(3), np.eye(3)), phrases, phrases, 3, candidates=2)
    assert quality.accuracy_at_1 == 1


def test_targets_that_differ_in_unknown_words_are_different():
    # All words of both targets are unknown, so their vectors are equal and each ranks second.
    phrases, written = Phrases.from_lists([[0], [0]]), Phrases.from_lists([[1], [2]])
    quality = evaluate_pairs(
        FixedScorer(np.eye(3), np.eye(3)), phrases, phrases, 3, written=(written, written), candidates=2
    )
    assert quality.pairs == 2
    assert quality.accuracy_at_1 == 0
    assert quality.mean_reciprocal_rank == 0.5
    assert quality.auc_other_targets == 0.5


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20), st.lists(st.integers(-3, 3), min_size=1, max_size=20))
def test_area_equals_the_share_of_ordered_pairs(positive, negative):
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    result = area_under_curve(np.array(positive, float), np.array(negative, float))
    assert result == pytest.approx(wins / len(positive) / len(negative))
