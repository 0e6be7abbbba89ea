import numpy as np

from phrasetool.pair_classifier.labelled_pairs import contained_pairs, encoded_logits, random_pairs
from tests.parallel_models import WORDS, random_classifier, toy_pairs

# Short texts, so that some are equal.
TEXTS = toy_pairs(60, longest=2)


def true_pairs():
    return {(s.tobytes(), t.tobytes()) for s, t in zip(TEXTS.sources, TEXTS.targets, strict=True)}


def test_random_ones_are_wrong_and_five_a_pair():
    made = random_pairs(TEXTS, 5, 1)
    for row, column, parallel in zip(made.rows, made.columns, made.parallel, strict=True):
        pair = TEXTS.sources[row].tobytes(), made.targets[column].tobytes()
        assert (pair in true_pairs()) == parallel
    assert made.parallel.sum() == 60
    assert np.bincount(made.rows).tolist() == [6] * 60
    assert np.array_equal(random_pairs(TEXTS, 5, 1).columns, made.columns)
    assert not np.array_equal(random_pairs(TEXTS, 5, 2).columns, made.columns)


def test_contained_ones_are_wrong_too():
    made = contained_pairs(TEXTS, 1)
    assert len(made) > 110
    for row, column in zip(made.rows[60:], made.columns[60:], strict=True):
        assert (TEXTS.sources[row].tobytes(), made.targets[column].tobytes()) not in true_pairs()
    assert made.parallel.tolist() == [True] * 60 + [False] * (len(made) - 60)


def test_logits_of_labelled_pairs():
    classifier, _ = random_classifier()
    made = contained_pairs(TEXTS, 1)
    logits, sources = encoded_logits(classifier, made)
    targets = classifier.sentence_vectors(1, made.targets, WORDS[1])
    for i in (0, 59, 60, 100):
        row, column = made.rows[i : i + 1], made.columns[i : i + 1]
        wanted = classifier.pair_logits(
            sources[row], TEXTS.sources.lengths[row], targets[column], made.targets.lengths[column]
        )
        assert abs(logits[i] - wanted[0]) < 1e-5
    assert np.array_equal(encoded_logits(classifier, made, sources)[0], logits)
