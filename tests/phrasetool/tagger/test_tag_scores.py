import numpy as np
import pytest
import torch

from phrasetool.phrases import Phrases
from phrasetool.tagger.network import TaggerNetwork
from phrasetool.tagger.tag_scores import tag_scores
from phrasetool.tagger.tagger_shape import TaggerShape


def setting(layers, lengths, seed=1):
    rng = np.random.default_rng(seed)
    shape = TaggerShape(60, 6, 5, layers, 4)
    network = TaggerNetwork(shape, seed)
    with torch.no_grad():
        network.features.weight[1:].normal_(generator=torch.Generator().manual_seed(seed))
    rows = rng.integers(0, 60, (20, 3)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return shape, network, rows, Phrases(offsets, rng.integers(0, 20, int(offsets[-1])).astype(np.int32))


@pytest.mark.parametrize("layers", [1, 2])
def test_scores_are_those_of_torch_for_each_sentence_alone(layers):
    shape, network, rows, sentences = setting(layers, [3, 1, 0, 9, 9, 2])
    found = tag_scores(network.arrays(), shape, sentences, rows)
    assert found.dtype == np.float32
    assert found.shape == (24, 4)
    for number in range(len(sentences)):
        words = sentences[number]
        if len(words):
            with torch.no_grad():
                alone = network(torch.from_numpy(rows[words].astype(np.int64)), np.array([len(words)]))
            part = found[sentences.offsets[number] : sentences.offsets[number + 1]]
            np.testing.assert_allclose(part, alone.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_no_words_have_no_scores(lengths):
    shape, network, rows, sentences = setting(1, lengths)
    assert tag_scores(network.arrays(), shape, sentences, rows[:0]).shape == (0, 4)


def test_padding_and_neighbours_change_next_to_nothing():
    shape, network, rows, sentences = setting(1, [4, 30, 1, 8])
    whole = tag_scores(network.arrays(), shape, sentences, rows)
    for number in range(4):
        alone = Phrases(np.array([0, len(sentences[number])]), sentences[number])
        part = whole[sentences.offsets[number] : sentences.offsets[number + 1]]
        np.testing.assert_allclose(tag_scores(network.arrays(), shape, alone, rows), part, atol=1e-6)
