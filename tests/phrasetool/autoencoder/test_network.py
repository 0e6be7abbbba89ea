import numpy as np
import pytest
import torch

from phrasetool.autoencoder.network import Autoencoder, max_output_lengths
from phrasetool.autoencoder.settings import ARCHITECTURES
from phrasetool.phrases import Phrases
from tests import naive
from tests.phrasetool.autoencoder.small_autoencoders import (
    V,
    architecture,
    arrays_of,
    every_architecture,
    some_texts,
)


@every_architecture
def test_arrays_are_those_of_the_module(name):
    arrays = arrays_of(name)
    module = Autoencoder(architecture(name), arrays)
    assert {key: tuple(value.shape) for key, value in module.named_parameters()} == architecture(name).shapes(V)
    exported = module.numpy()
    assert list(exported) == list(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(exported[key], array)


@every_architecture
def test_vectors_equal_the_oracle(name):
    arrays, lists = arrays_of(name), some_texts()
    oracle = naive.TextAutoencoder(architecture(name), arrays)
    vectors = Autoencoder(architecture(name), arrays).encode(Phrases.from_lists(lists))
    assert vectors.shape == (len(lists), architecture(name).dimension)
    for text, vector in zip(lists, vectors.detach().numpy(), strict=True):
        np.testing.assert_allclose(vector, oracle.encode(text), atol=3e-5)


@every_architecture
def test_the_loss_equals_the_oracle(name):
    arrays, lists = arrays_of(name), some_texts()
    oracle = naive.TextAutoencoder(architecture(name), arrays)
    loss, count = Autoencoder(architecture(name), arrays).loss(Phrases.from_lists(lists))
    assert count == sum(len(text) + 1 for text in lists)
    assert loss.item() == pytest.approx(sum(oracle.loss(text) for text in lists), rel=1e-5)


@every_architecture
def test_greedy_texts_equal_those_of_the_oracle(name):
    arrays, lists = arrays_of(name), some_texts(20)
    oracle = naive.TextAutoencoder(architecture(name), arrays)
    module, texts = Autoencoder(architecture(name), arrays), Phrases.from_lists(lists)
    reconstructed = module.reconstruct(module.encode(texts).detach(), max_output_lengths(texts.lengths))
    expected = [oracle.reconstruct(text, len(text) * 3 // 2) for text in lists]
    assert [text.tolist() for text in reconstructed] == expected
    assert len({tuple(text) for text in expected}) > 2


@every_architecture
def test_gradients_equal_finite_differences(name):
    module = Autoencoder(architecture(name), arrays_of(name)).double()
    texts = Phrases.from_lists(some_texts(5))
    module.loss(texts)[0].backward()
    rng = np.random.default_rng(5)
    for key, parameter in module.named_parameters():
        flat = parameter.data.view(-1)
        for i in rng.integers(0, len(flat), 2).tolist():
            original, losses = flat[i].item(), []
            for step in (1e-6, -1e-6):
                flat[i] = original + step
                losses.append(module.loss(texts)[0].item())
            flat[i] = original
            expected = (losses[0] - losses[1]) / 2e-6
            assert parameter.grad.view(-1)[i].item() == pytest.approx(expected, rel=1e-4, abs=1e-5), key


@every_architecture
def test_texts_without_words(name):
    module = Autoencoder(architecture(name), arrays_of(name))
    texts = Phrases.from_lists([[], [3, 4], []])
    vectors = module.encode(texts).detach()
    assert vectors.isfinite().all()
    reconstructed = module.reconstruct(vectors, max_output_lengths(texts.lengths))
    assert [len(text) for text in reconstructed][::2] == [0, 0]
    assert len(module.reconstruct(vectors[:1], np.zeros(1, np.int64))) == 1


@every_architecture
def test_texts_have_a_maximum_length_and_no_end_symbol(name):
    arrays = arrays_of(name)
    arrays["output_bias"][-1] = -100  # the end is never predicted
    module, texts = Autoencoder(architecture(name), arrays), Phrases.from_lists(some_texts())
    reconstructed = module.reconstruct(module.encode(texts).detach(), max_output_lengths(texts.lengths))
    assert reconstructed.lengths.tolist() == (texts.lengths * 3 // 2).tolist()
    arrays["output_bias"][-1] = 100  # the end is predicted at once
    module = Autoencoder(architecture(name), arrays)
    reconstructed = module.reconstruct(module.encode(texts).detach(), max_output_lengths(texts.lengths))
    assert reconstructed.lengths.sum() == 0
    assert len(reconstructed) == len(texts)


def test_dropout_depends_on_the_seed_alone():
    texts = Phrases.from_lists(some_texts())
    for name in ARCHITECTURES:
        losses = []
        for seed in (3, 3, 4):
            module = Autoencoder(architecture(name), arrays_of(name), dropout=0.3)
            module.seed_dropout(seed)
            losses.append(module.loss(texts)[0].item())
        assert losses[0] == losses[1] != losses[2]
        without_dropout = module.eval().loss(texts)[0].item()
        assert without_dropout == Autoencoder(architecture(name), arrays_of(name)).loss(texts)[0].item() != losses[0]


def test_bfloat16_products_are_near():
    texts = Phrases.from_lists(some_texts())
    gradients, losses = [], []
    for precision in ("float32", "bfloat16"):
        module = Autoencoder(architecture("mean-max"), arrays_of("mean-max"), precision=precision)
        loss, _ = module.loss(texts)
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in module.parameters()]))
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert losses[0] != losses[1]
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.999
