import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.translator.likelihood import pair_order, pair_scores
from tests.naive_translator import NaiveTranslator, unit
from tests.phrasetool.translator.small_translators import KINDS, sentences, small

TEMPERATURE = 0.2


def scores(module, sources, pairs, reading):
    """Scores of (source number, target) in the order of the pairs."""
    numbers = np.array([number for number, _ in pairs])
    targets = Phrases.from_lists([target for _, target in pairs])
    order = pair_order(numbers, targets)
    found = np.empty(len(pairs))
    found[order] = pair_scores(module, sources, targets.select(order), numbers[order], reading, TEMPERATURE)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_obvious_version(kind):
    module = small(kind)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(4, 8, 3)
    pairs = [(0, [1, 2]), (0, [1, 2, 3]), (0, [1]), (3, [4]), (1, [0, 0]), (1, [5, 2]), (2, [1]), (0, [2, 2])]
    expected = [naive.score(sources[number].tolist(), target, TEMPERATURE) for number, target in pairs]
    np.testing.assert_allclose(scores(module, sources, pairs, "normalised"), expected, rtol=1e-4, atol=1e-5)


def test_densities_look_at_the_wanted_word_alone():
    module = small("gru")
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(2, 8, 3)
    pairs = [(0, [1, 2]), (1, [3]), (1, [3, 4])]
    expected = []
    for number, target in pairs:
        words = [*target, module.end]
        vectors = [unit(naive.predict(sources[number].tolist(), words[:i])[0]) for i in range(len(words))]
        cosines = [vector @ module.targets[word].numpy() for vector, word in zip(vectors, words, strict=True)]
        expected.append(sum((cosine - 1) / TEMPERATURE for cosine in cosines))
    found = scores(module, sources, pairs, "density")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert (found < 0).all()
    with pytest.raises(ValueError, match="no densities"):
        scores(small("softmax"), sources, pairs, "density")


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 2), min_size=1, max_size=4)), min_size=1))
def test_beginnings_that_are_shared_change_nothing(pairs):
    module, sources = small("gru"), sentences(3, 8, 3)
    together = scores(module, sources, pairs, "normalised")
    alone = [scores(module, sources, [pair], "normalised")[0] for pair in pairs]
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_no_pairs_and_their_order():
    module = small("gru")
    empty = Phrases.from_lists([])
    assert len(pair_scores(module, sentences(1, 8, 3), empty, np.zeros(0, np.int64), "normalised", 1.0)) == 0
    targets = Phrases.from_lists([[2], [1, 3], [1], [1]])
    assert pair_order(np.array([0, 0, 0, -1]), targets).tolist() == [3, 2, 1, 0]
