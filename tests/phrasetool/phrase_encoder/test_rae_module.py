import numpy as np
import pytest
import torch

from phrasetool.phrase_encoder.rae_kernels import PackedRae, RaeEncoder
from phrasetool.phrase_encoder.rae_network import RecursiveAutoencoder
from phrasetool.phrases import Phrases
from tests import naive
from tests.phrasetool.phrase_encoder.small_modules import make, objective, random_weights


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


@pytest.mark.requires_cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_equals_cpu():
    parameters, lists = make(n=50)
    phrases = Phrases.from_lists(lists)
    cpu = RecursiveAutoencoder(parameters)(phrases)
    gpu = RecursiveAutoencoder(parameters).cuda()(phrases)
    for a, b in zip(cpu, gpu, strict=True):
        torch.testing.assert_close(a, b.cpu(), atol=1e-4, rtol=1e-4)
