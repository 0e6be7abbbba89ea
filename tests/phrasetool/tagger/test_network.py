import numpy as np
import torch

from phrasetool.tagger.network import TaggerNetwork
from phrasetool.tagger.settings import TaggerShape

SHAPE = TaggerShape(50, 6, 4, 2, 5)


def network(seed=1, dropout=0.0):
    made = TaggerNetwork(SHAPE, seed, dropout)
    with torch.no_grad():
        made.features.weight[1:].normal_(generator=torch.Generator().manual_seed(3))
    return made


def rows(lengths, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 50, (sum(lengths), 3)))


def test_a_batch_gives_what_each_sentence_alone_gives():
    made, lengths = network(), np.array([3, 1, 7])
    features = rows(lengths)
    whole = made(features, lengths)
    first = 0
    for length in lengths.tolist():
        vectors = made.features.weight[features[first : first + length]].sum(1)
        states, _ = made.lstm(vectors[None])
        torch.testing.assert_close(whole[first : first + length], made.output(states[0]), rtol=1e-5, atol=1e-6)
        first += length


def test_what_was_not_seen_says_nothing_at_first():
    assert not TaggerNetwork(SHAPE).features.weight.any()
    assert not TaggerNetwork(SHAPE).features(rows([4])).any()


def test_dropout_is_what_its_seed_says_and_in_training_alone():
    made, lengths = network(dropout=0.5), np.array([200])
    made.seed_dropout(1)
    first = made(rows(lengths), lengths)
    assert not torch.equal(first, made(rows(lengths), lengths))
    made.seed_dropout(1)
    assert torch.equal(first, made(rows(lengths), lengths))
    assert torch.equal(made.eval()(rows(lengths), lengths), network()(rows(lengths), lengths))


def test_a_seed_fixes_the_values():
    assert np.array_equal(network(2).arrays()["output.weight"], network(2).arrays()["output.weight"])
    assert not np.array_equal(network(2).arrays()["output.weight"], network(3).arrays()["output.weight"])
