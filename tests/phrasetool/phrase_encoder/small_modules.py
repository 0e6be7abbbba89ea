"""Parameters, phrases and an objective for tests of the recursive autoencoder."""

import numpy as np
import torch

from phrasetool.phrase_encoder.parameters import RaeParameters


def make(n=9, vocabulary=40, phrases=120, seed=0):
    rng = np.random.default_rng(seed)
    parameters = RaeParameters.random(rng.normal(0, 0.5, (vocabulary, n)).astype(np.float32), rng)
    lists = [rng.integers(0, vocabulary, length).tolist() for length in rng.integers(0, 9, phrases)]
    return parameters, lists


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
