import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.objectives.margin import unit_vectors
from phrasetool.objectives.sampled import Sampled
from tests.phrasetool.objectives import naive_objectives as naive
from tests.phrasetool.objectives.drawn_vectors import DIMENSIONS, SEEDS, frozen, tensors


@given(SEEDS, DIMENSIONS, st.integers(1, 6))
def test_sampled_equals_the_obvious_version(seed, dimension, negatives):
    predicted, positive, pool = tensors(seed, dimension)
    found = Sampled(0.4, negatives).frozen_losses(predicted, frozen(positive, pool, seed))
    draws = np.random.default_rng(seed).integers(0, len(pool), (len(predicted), negatives))
    rows = zip(predicted.numpy(), positive.numpy(), draws, strict=True)
    stated = [naive.sampled(p, u, pool.numpy(), draw, 0.4) for p, u, draw in rows]
    np.testing.assert_allclose(found, stated, atol=1e-12)


def test_all_phrases_of_the_pool_are_drawn():
    pool = torch.eye(6, dtype=torch.float64)
    predicted, positive = torch.full((3000, 6), 1.0, dtype=torch.float64), torch.zeros(3000, 6, dtype=torch.float64)
    predicted = (predicted * torch.arange(1, 7)).requires_grad_()
    Sampled(0.5, 1).frozen_losses(unit_vectors(predicted), frozen(positive, pool)).sum().backward()
    assert (predicted.grad != 0).all()
