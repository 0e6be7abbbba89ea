"""Reranking, compared with plain Python."""

import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bleu import bleu_statistics, corpus_bleu, sentence_bleu_plus_one
from phrasetool.smt.tuning.reranking import (
    best_first,
    centred,
    first_lines,
    list_weights,
    oracle,
    tuned_weights,
    unexplained_share,
)

# Of the features of `lists`, the third is new.
NEW = np.array([False, False, True])


@pytest.fixture
def lists():
    """Return lists whose first feature favours wrong words, and whose third, on another scale, favours correct ones."""
    rng = np.random.default_rng(5)
    references, words, sentences, features = [], [], [], []
    for sentence in range(30):
        right = rng.integers(0, 50, 8)
        references.append(right.tolist())
        for _ in range(10):
            kept = rng.random(8) < rng.random()
            words.append(np.where(kept, right, 99).tolist())
            sentences.append(sentence)
            features.append([10 * rng.normal() - kept.sum(), rng.normal(), 0.01 * kept.sum() + 0.002 * rng.normal()])
    return np.array(features), Phrases.from_lists(words), np.array(sentences), [Phrases.from_lists(references)]


def bleu(lists, weights):
    features, words, sentences, references = lists
    chosen = best_first(features @ weights, sentences)[first_lines(sentences)]
    return corpus_bleu(bleu_statistics(sentences[chosen], words.select(chosen), references))


def test_lists_are_sorted_and_ties_keep_their_order():
    order = best_first(np.array([1.0, 3, 3, 2, 5, 5]), np.array([0, 0, 0, 0, 7, 7]))
    assert order.tolist() == [1, 2, 3, 0, 4, 5]
    assert first_lines(np.array([0, 0, 3, 3, 3, 9])).tolist() == [0, 2, 5]


def test_centred(lists):
    features, _, sentences, _ = lists
    expected = np.concatenate([rows - rows.mean(0) for rows in np.split(features, first_lines(sentences)[1:])])
    np.testing.assert_allclose(centred(features, sentences), expected, atol=1e-12)


def test_weights_of_a_list_are_found_despite_sentence_offsets(lists):
    features, _, sentences, _ = lists
    weights = np.array([0.3, -0.2, 5])
    totals = features @ weights - 100 * (sentences % 3)
    result = list_weights(features, totals, sentences)
    assert result.found
    assert result.unique
    np.testing.assert_allclose(result.weights, weights, rtol=1e-6)
    # Two hypotheses of one sentence determine the weight of one direction only.
    few = list_weights(features[:2], totals[:2], sentences[:2])
    assert (few.found, few.unique) == (True, False)
    assert unexplained_share(features, totals, sentences, few.weights) > 0.05
    assert unexplained_share(features, totals, sentences, weights) == pytest.approx(0, abs=1e-12)


def test_totals_that_are_not_weighted_sums_are_detected(lists):
    features, _, sentences, _ = lists
    result = list_weights(features, np.random.default_rng(1).normal(size=len(features)), sentences)
    assert not result.found
    assert result.unexplained > 0.9


def test_the_oracle_has_the_best_bleu_plus_one_of_each_sentence(lists):
    _, words, sentences, references = lists
    scores = sentence_bleu_plus_one(bleu_statistics(sentences, words, references))
    for line, sentence in zip(oracle(words, sentences, references), np.unique(sentences), strict=True):
        rows = np.flatnonzero(sentences == sentence)
        assert line == rows[np.argmax(scores[rows])]


def test_a_new_feature_on_another_scale_is_used(lists):
    features, words, sentences, references = lists
    start = np.array([1.0, 0.1, 0])
    result = tuned_weights(features, words, sentences, references, start, NEW, 1)
    assert result[0] / result[1] == pytest.approx(10)
    assert bleu(lists, result) > bleu(lists, start) + 20
    top = oracle(words, sentences, references)
    assert bleu(lists, result) <= corpus_bleu(bleu_statistics(sentences[top], words.select(top), references))
    # The same weights for the same seed, and for features in other units.
    again = tuned_weights(features * [1, 8, 64], words, sentences, references, start / [1, 8, 64], NEW, 1)
    np.testing.assert_allclose(again * [1, 8, 64], result, rtol=1e-3)


def test_all_features_can_be_tuned_together(lists):
    """The initial weight of the first feature has the wrong sign."""
    features, words, sentences, references = lists
    start = np.array([1.0, 0.1, 0])
    result = tuned_weights(features, words, sentences, references, start, NEW, 1, together=True)
    assert bleu(lists, result) > bleu(lists, start)
    assert result[0] / result[1] != pytest.approx(10)
