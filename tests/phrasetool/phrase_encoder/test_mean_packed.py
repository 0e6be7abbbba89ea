"""The mean of word vectors, for scoring and for training, compared with its definition."""

import numpy as np
import pytest
import torch

from phrasetool.phrase_encoder.kinds import Mean
from phrasetool.phrase_encoder.parameters import MeanParameters
from phrasetool.phrases import Phrases

PHRASES = [[1, 2, 3], [4], [], [0], [0, 2], [5, 5, 1, 2, 3, 4, 1], [0, 0]]


def parameters(n, words=6, seed=1):
    rng = np.random.default_rng(seed)
    arrays = rng.normal(size=(words, n)), rng.normal(size=(n, n)), rng.normal(size=n)
    return MeanParameters(*(array.astype(np.float32) for array in arrays))


def naive(given, phrase, carried):
    """Return the vector of a phrase and its transformation, in double precision."""
    known = [given.word_vectors[word].astype(np.float64) for word in phrase if word]
    if not known:
        return np.zeros(given.dimension), np.zeros(given.dimension)
    mean = sum(known) / len(known)
    return mean, given.transform.astype(np.float64) @ mean + given.transform_bias if carried else mean


@pytest.mark.parametrize("n", [1, 3, 16, 50])
@pytest.mark.parametrize("kind", [Mean(), Mean("identity")])
def test_vectors_equal_the_definition(kind, n):
    inputs = parameters(n)
    encoder = kind.pack(inputs).encoder(0)
    expected = [naive(inputs, phrase, kind.learns) for phrase in PHRASES]
    for vectors, expected_vectors in zip(
        encoder.encode(Phrases.from_lists(PHRASES), unit=False), zip(*expected, strict=True), strict=True
    ):
        np.testing.assert_allclose(vectors, np.array(expected_vectors), atol=1e-5)
    for vectors, expected_vectors in zip(
        encoder.encode(Phrases.from_lists(PHRASES)), zip(*expected, strict=True), strict=True
    ):
        lengths = np.linalg.norm(expected_vectors, axis=1, keepdims=True)
        np.testing.assert_allclose(vectors, np.array(expected_vectors) / np.where(lengths > 0, lengths, 1), atol=1e-5)


@pytest.mark.parametrize("kind", [Mean(), Mean("identity")])
def test_a_phrase_does_not_depend_on_its_neighbours(kind):
    encoder = kind.pack(parameters(30)).encoder(0)
    together = encoder.encode(Phrases.from_lists(PHRASES))
    for i, phrase in enumerate(PHRASES):
        for whole, alone in zip(together, encoder.encode(Phrases.from_lists([phrase])), strict=True):
            np.testing.assert_array_equal(whole[i], alone[0])


def test_training_module_equals_the_definition():
    inputs = parameters(9)
    module = Mean().module(inputs)
    vectors, errors = module(Phrases.from_lists(PHRASES))
    expected = np.array([naive(inputs, phrase, True)[0] for phrase in PHRASES])
    np.testing.assert_allclose(vectors.detach().numpy(), expected, atol=1e-6)
    assert not errors.any()
    transformed = module.transformed(torch.from_numpy(expected[:2].astype(np.float32))).detach().numpy()
    np.testing.assert_allclose(transformed, [naive(inputs, phrase, True)[1] for phrase in PHRASES[:2]], atol=1e-5)


def test_only_the_transformation_is_trained():
    module = Mean().module(parameters(9))
    assert {name for name, _ in module.named_parameters()} == {"transform", "transform_bias"}
    assert [len(group) for group in module.groups().values()] == [0, 0, 2]
    vectors, _ = module(Phrases.from_lists(PHRASES))
    assert not vectors.requires_grad
    for name, array in module.numpy().arrays().items():
        np.testing.assert_array_equal(array, parameters(9).arrays()[name])


def test_the_initial_transformation_is_the_identity():
    kind, vectors = Mean(), np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    start = kind.initial(vectors, 4, "normal", np.random.default_rng(1))
    np.testing.assert_array_equal(start.word_vectors[1:], vectors[1:])
    assert not start.word_vectors[0].any()
    encoded, carried = kind.pack(start).encoder(0).encode(Phrases.from_lists(PHRASES))
    np.testing.assert_allclose(encoded, carried, atol=1e-6)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="transformation is 'tanh', expected one of learnt, identity"):
        Mean("tanh")
    with pytest.raises(ValueError, match="transform is float32"):
        MeanParameters(np.zeros((3, 4), np.float32), np.eye(3, dtype=np.float32), np.zeros(4, np.float32))
    with pytest.raises(KeyError):
        Mean().parameters({"word_vectors": np.zeros((3, 4), np.float32)})
