"""Scores of n-best lists against forced decoding of each hypothesis alone."""

import numpy as np
import pytest
import torch

from phrasetool.phrases import Phrases
from phrasetool.translator.beam import log_probabilities
from phrasetool.translator.list_scores import list_scores
from phrasetool.translator.network import padded_targets
from tests.neural_models import random_translator

WORDS = 7


def alone(module, source, target):
    """log p of one target, all steps at once."""
    ids = padded_targets(Phrases.from_lists([target]), module.end)
    with torch.no_grad():
        predicted = module.predict(module.encode(Phrases.from_lists([source])), ids)
        logs = log_probabilities(module, predicted, 1.0)
    return float(logs.gather(1, ids[0][:, None]).double().sum())


@pytest.fixture(scope="module")
def lists():
    """Sources, hypotheses (repetitions, shared beginnings, an empty one) and their sentences."""
    rng = np.random.default_rng(3)
    sources = [rng.integers(0, WORDS, rng.integers(1, 6)).tolist() for _ in range(6)]
    hypotheses, sentences = [[]], [0]
    for sentence in (0, 1, 3, 4, 5):
        beginning = rng.integers(0, WORDS, 2).tolist()
        for _ in range(7):
            ending = rng.integers(0, WORDS, rng.integers(0, 4)).tolist()
            hypotheses += [beginning + ending] * rng.integers(1, 3)
        sentences += [sentence] * (len(hypotheses) - len(sentences))
    return Phrases.from_lists(sources), Phrases.from_lists(hypotheses), np.array(sentences)


@pytest.mark.parametrize("backward", [False, True])
def test_scores_are_those_of_each_hypothesis_alone(lists, backward):
    sources, hypotheses, sentences = lists
    module = random_translator(WORDS, WORDS)
    found = list_scores(module, 1.0, sources, hypotheses, sentences, backward=backward)
    for i, sentence in enumerate(sentences):
        ours, theirs = sources[sentence].tolist(), hypotheses[i].tolist()
        # No words are read as an unknown one.
        expected = alone(module, theirs or [0], ours) if backward else alone(module, ours, theirs)
        assert found[i] == pytest.approx(expected, abs=2e-4)
    assert np.ptp(found) > 1


@pytest.mark.parametrize("backward", [False, True])
def test_neither_threads_nor_a_split_nor_the_order_of_a_list_changes_a_bit(lists, backward):
    sources, hypotheses, sentences = lists
    module = random_translator(WORDS, WORDS)
    ticks = []
    whole = list_scores(module, 1.0, sources, hypotheses, sentences, backward=backward, tick=ticks.append)
    assert sum(ticks) == len(set(sentences.tolist()))
    for threads in (2, 3):
        other = list_scores(module, 1.0, sources, hypotheses, sentences, backward=backward, threads=threads)
        assert other.tobytes() == whole.tobytes()
    for sentence in np.unique(sentences):
        rows = np.flatnonzero(sentences == sentence)[::-1]
        part = list_scores(module, 1.0, sources, hypotheses.select(rows), sentences[rows], backward=backward)
        assert part.tobytes() == whole[rows].tobytes()


def test_sentences_that_do_not_ascend_or_are_not_there_are_refused(lists):
    sources, hypotheses, sentences = lists
    module = random_translator(WORDS, WORDS)
    for wrong in (sentences[::-1], sentences + 1, sentences - 1):
        with pytest.raises(ValueError, match="ascending"):
            list_scores(module, 1.0, sources, hypotheses, wrong, backward=False)


def test_the_number_of_threads_of_torch_is_given_back(lists):
    sources, hypotheses, sentences = lists
    before = torch.get_num_threads()
    list_scores(random_translator(WORDS, WORDS), 1.0, sources, hypotheses, sentences, backward=False)
    assert torch.get_num_threads() == before


def test_a_list_of_nothing_but_no_words():
    module = random_translator(WORDS, WORDS)
    sources, nothing = Phrases.from_lists([[1, 2], []]), Phrases.from_lists([[], []])
    found = list_scores(module, 1.0, sources, nothing, np.array([0, 1]), backward=False)
    assert found == pytest.approx([alone(module, [1, 2], []), alone(module, [0], [])], abs=2e-4)
