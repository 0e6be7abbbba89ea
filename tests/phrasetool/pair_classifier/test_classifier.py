import numpy as np
import pytest
import torch

from phrasetool.pair_classifier import classifier as module
from phrasetool.pair_classifier.classifier import input_arrays, network_arrays
from phrasetool.phrases import Phrases
from tests.parallel_models import WORDS, random_classifier, toy_pairs

PAIRS = toy_pairs(200)


def test_batches_do_not_matter(monkeypatch):
    made, _ = random_classifier()
    texts = PAIRS.sources
    lexicon = made.inputs.lexicon(0, WORDS[0])
    found = made.sentence_vectors(0, texts, WORDS[0])
    with torch.no_grad():
        alone = np.concatenate([made.encode(0, texts.part(i, i + 1), lexicon).numpy() for i in range(len(texts))])
    assert np.abs(found - alone).max() < 1e-6
    # The order of sentences and the numbers of words do not change a bit.
    order = np.random.default_rng(1).permutation(200)
    assert np.array_equal(made.sentence_vectors(0, texts.select(order), WORDS[0]), found[order])
    renamed = Phrases(texts.offsets, 19 - texts.words)
    assert np.array_equal(made.sentence_vectors(0, renamed, WORDS[0][::-1]), found)
    monkeypatch.setattr(module, "_SENTENCES", 7)
    assert np.abs(made.sentence_vectors(0, texts, WORDS[0]) - found).max() < 1e-6


def test_threads_do_not_change_a_bit():
    made, _ = random_classifier(word_units=40, units=40)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        results.append(made.sentence_vectors(0, PAIRS.sources, WORDS[0]))
        assert torch.get_num_threads() == threads
    assert np.array_equal(*results)


def test_nothing_known_is_zeros_and_never_parallel():
    made, _ = random_classifier()
    texts = Phrases.from_lists([[0, 1], [], [20], [1, 20]])
    vectors = made.sentence_vectors(0, texts, [*WORDS[0], b"?"])
    assert vectors.any(1).tolist() == [True, False, False, True]
    logits = made.pair_logits(vectors, texts.lengths, vectors[[0, 0, 0, 1]], texts.lengths)
    assert np.isinf(logits).tolist() == [False, True, True, True]
    assert (logits[1:] < 0).all()


def test_what_is_too_long_is_cut():
    made, _ = random_classifier(longest=3)
    texts = Phrases.from_lists([[0, 1, 2, 3, 4], [5], [], [0, 1, 2]])
    assert [text.tolist() for text in made.cut(texts)] == [[0, 1, 2], [5], [], [0, 1, 2]]
    vectors = made.sentence_vectors(0, texts, WORDS[0])
    assert np.array_equal(vectors[0], vectors[3])


@pytest.mark.parametrize("size", [3, 4096])
def test_pairs_in_batches(monkeypatch, size):
    made, _ = random_classifier()
    monkeypatch.setattr(module, "_PAIRS", size)
    sources, targets = (made.sentence_vectors(side, PAIRS.sources, WORDS[side])[:10] for side in (0, 1))
    lengths = PAIRS.sources.lengths[:10]
    found = made.pair_logits(sources, lengths, targets, lengths)
    with torch.no_grad():
        given = (torch.from_numpy(array) for array in (sources, lengths, targets, lengths))
        assert np.allclose(found, made.network.logits(*given).numpy(), atol=1e-6)


def test_no_sentence_at_all():
    made, _ = random_classifier()
    texts = Phrases.from_lists([])
    assert made.sentence_vectors(0, texts, []).shape == (0, 12)
    none = np.zeros((0, 12), np.float32)
    assert made.pair_logits(none, texts.lengths, none, texts.lengths).shape == (0,)


def test_arrays_by_what_they_are_of():
    made, _ = random_classifier()
    arrays = made.arrays()
    assert set(input_arrays(arrays)) == {"source.words", "source.parts", "target.words", "target.parts"}
    assert set(network_arrays(arrays)) == set(made.network.state_dict())
    assert len(arrays) == 4 + len(network_arrays(arrays))
