import numpy as np
import pytest
import torch

from phrasetool.encoders.rae.module import RecursiveAutoencoder
from phrasetool.encoders.rae.packed import PackedRae, RaeEncoder
from phrasetool.encoders.rae.parameters import RaeParameters
from phrasetool.phrases import Phrases
from tests import naive


def make(n=9, vocabulary=40, phrases=120, seed=0):
    rng = np.random.default_rng(seed)
    parameters = RaeParameters.random(rng.normal(0, 0.5, (vocabulary, n)).astype(np.float32), rng)
    lists = [rng.integers(0, vocabulary, length).tolist() for length in rng.integers(0, 9, phrases)]
    return parameters, lists


@pytest.mark.parametrize("force_torch", [False, True])
def test_vectors_and_errors_equal_the_oracle(force_torch):
    parameters, lists = make()
    module = RecursiveAutoencoder(parameters)
    module.force_torch = force_torch
    vectors, errors = module(Phrases.from_lists(lists))
    for i, phrase in enumerate(lists):
        vector, error, _ = naive.rae(phrase, parameters)
        np.testing.assert_allclose(vectors[i].detach().numpy(), vector, atol=1e-5)
        assert errors[i].item() == pytest.approx(error, abs=1e-4)


def test_training_and_scoring_encoders_agree():
    parameters, lists = make(n=50, phrases=300, seed=3)
    phrases = Phrases.from_lists(lists)
    module = RecursiveAutoencoder(parameters)
    scored, transformed = RaeEncoder(PackedRae(parameters)).encode(phrases, unit=False)
    vectors, _ = module(phrases)
    some = phrases.lengths > 0
    np.testing.assert_allclose(vectors.detach().numpy(), scored, atol=1e-5)
    np.testing.assert_allclose(module.transformed(vectors).detach().numpy()[some], transformed[some], atol=1e-5)


def objective(module, phrases, weights):
    vectors, errors = module(phrases)
    a, b, c = weights
    return (module.transformed(vectors) * a).sum() + (vectors * b).sum() + (errors * c).sum()


def random_weights(count, n, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randn(count, n, generator=generator, dtype=dtype),
        torch.randn(count, n, generator=generator, dtype=dtype),
        torch.rand(count, generator=generator, dtype=dtype),
    )


def test_gradients_equal_finite_differences():
    parameters, lists = make(n=6, vocabulary=15, phrases=25)
    phrases = Phrases.from_lists(lists)
    module = RecursiveAutoencoder(parameters).double()
    weights = random_weights(len(lists), 6, torch.float64)
    objective(module, phrases, weights).backward()
    rng = np.random.default_rng(5)
    for parameter in module.parameters():
        flat = parameter.data.view(-1)
        for i in rng.integers(0, len(flat), 8).tolist():
            kept = flat[i].item()
            values = []
            for step in (1e-6, -1e-6):
                flat[i] = kept + step
                values.append(objective(module, phrases, weights).item())
            flat[i] = kept
            expected = (values[0] - values[1]) / 2e-6
            assert parameter.grad.view(-1)[i].item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_kernel_gradients_equal_torch_gradients(seed):
    parameters, lists = make(n=10, phrases=200, seed=seed)
    phrases = Phrases.from_lists(lists)
    weights = random_weights(len(lists), 10)
    gradients = []
    for force_torch in (False, True):
        module = RecursiveAutoencoder(parameters)
        module.force_torch = force_torch
        for _ in range(2):  # the second round uses a workspace again
            module.zero_grad()
            objective(module, phrases, weights).backward()
        gradients.append({name: p.grad for name, p in module.named_parameters()})
    for name, gradient in gradients[0].items():
        scale = gradients[1][name].abs().max().item()
        np.testing.assert_allclose(gradient.numpy(), gradients[1][name].numpy(), atol=1e-5 * max(scale, 1))


def test_several_batches_may_be_under_way_at_once():
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


@pytest.mark.requires_cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_equals_cpu():
    parameters, lists = make(n=50)
    phrases = Phrases.from_lists(lists)
    cpu = RecursiveAutoencoder(parameters)(phrases)
    gpu = RecursiveAutoencoder(parameters).cuda()(phrases)
    for a, b in zip(cpu, gpu, strict=True):
        torch.testing.assert_close(a, b.cpu(), atol=1e-4, rtol=1e-4)


def test_the_gradient_of_a_batch_holds_nothing_of_the_one_before():
    parameters, _ = make(n=8)
    module = RecursiveAutoencoder(parameters)
    for lists in ([[1, 2], [3]], [[2, 4, 5]], [[], [6]]):
        module.zero_grad()
        module(Phrases.from_lists(lists))[0].sum().backward()
        touched = set(np.flatnonzero(module.word_vectors.grad.abs().sum(1).numpy()).tolist())
        assert touched == {word for words in lists for word in words}


def test_no_gradient_where_none_is_wanted():
    parameters, lists = make(n=8)
    module = RecursiveAutoencoder(parameters)
    module.word_vectors.requires_grad_(False)
    module(Phrases.from_lists(lists))[0].sum().backward()
    assert module.word_vectors.grad is None
