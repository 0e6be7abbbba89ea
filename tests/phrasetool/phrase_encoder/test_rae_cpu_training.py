import numpy as np
import pytest
import torch

from phrasetool.phrase_encoder.rae_network import RecursiveAutoencoder
from phrasetool.phrases import Phrases
from tests.phrasetool.phrase_encoder.small_modules import make, objective, random_weights


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_kernel_gradients_equal_torch_gradients(seed):
    parameters, lists = make(n=10, phrases=200, seed=seed)
    phrases = Phrases.from_lists(lists)
    weights = random_weights(len(lists), 10)
    gradients = []
    for force_torch in (False, True):
        module = RecursiveAutoencoder(parameters)
        module.force_torch = force_torch
        for _ in range(2):  # the second round reuses a workspace
            module.zero_grad()
            objective(module, phrases, weights).backward()
        gradients.append({name: p.grad for name, p in module.named_parameters()})
    for name, gradient in gradients[0].items():
        scale = gradients[1][name].abs().max().item()
        np.testing.assert_allclose(gradient.numpy(), gradients[1][name].numpy(), atol=1e-5 * max(scale, 1))


def test_two_forward_passes_may_precede_a_backward_pass():
    parameters, lists = make(n=8)
    phrases = Phrases.from_lists(lists)
    module = RecursiveAutoencoder(parameters)
    first, _ = module(phrases)
    second, _ = module(phrases.select(np.arange(10)))
    (first.sum() + second.sum()).backward()
    both = module.word_vectors.grad.clone()
    module.zero_grad()
    module(phrases)[0].sum().backward()
    module(phrases.select(np.arange(10)))[0].sum().backward()
    torch.testing.assert_close(both, module.word_vectors.grad)


def test_gradients_do_not_leak_into_the_next_batch():
    parameters, _ = make(n=8)
    module = RecursiveAutoencoder(parameters)
    for lists in ([[1, 2], [3]], [[2, 4, 5]], [[], [6]]):
        module.zero_grad()
        module(Phrases.from_lists(lists))[0].sum().backward()
        touched = set(np.flatnonzero(module.word_vectors.grad.abs().sum(1).numpy()).tolist())
        assert touched == {word for words in lists for word in words}


def test_fixed_word_vectors_get_no_gradient():
    parameters, lists = make(n=8)
    module = RecursiveAutoencoder(parameters)
    module.word_vectors.requires_grad_(False)
    module(Phrases.from_lists(lists))[0].sum().backward()
    assert module.word_vectors.grad is None
