"""The von Mises-Fisher loss, which contains log C_d(k)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrase_encoder.losses import VonMisesFisher
from tests.phrasetool.phrase_encoder import naive_objectives as naive
from tests.phrasetool.phrase_encoder.drawn_vectors import frozen


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([torch.float32, torch.float64]))
def test_the_loss_equals_the_obvious_version(seed, dimension, dtype):
    predicted, positive = np.tanh(np.random.default_rng(seed).normal(size=(2, 3, dimension)))
    loss = VonMisesFisher(concentration=4.0)
    result = loss.frozen_losses(torch.tensor(predicted, dtype=dtype), frozen(torch.tensor(positive, dtype=dtype)))
    assert result.dtype == dtype
    expected = [naive.von_mises_fisher(p, u, 4.0) for p, u in zip(predicted, positive, strict=True)]
    tolerance = 1e-5 if dtype == torch.float32 else 1e-8
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=100 * tolerance)


def test_the_loss_of_a_sphere_by_hand():
    """u.p = k, so L = -log(k / (4 pi sinh k)) - k = log(2 pi (1 - exp(-2 k)) / k)."""
    predicted, positive = torch.tensor([[0.0, 0.5, 0.0]]).double(), torch.tensor([[0.0, 3.0, 0.0]]).double()
    kappa = 2.0 * 0.5 * math.sqrt(3)
    expected = math.log(2 * math.pi * (1 - math.exp(-2 * kappa)) / kappa)
    assert float(VonMisesFisher(concentration=2.0).frozen_losses(predicted, frozen(positive))) == pytest.approx(
        expected
    )


def test_densities_over_the_circle_sum_to_one():
    angles = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    circle = torch.tensor(np.stack([np.cos(angles), np.sin(angles)], 1))
    predicted = torch.tensor([[0.3, -0.8]], dtype=torch.float64).expand(1000, 2)
    density = torch.exp(-VonMisesFisher(concentration=5.0).frozen_losses(predicted, frozen(circle)))
    assert float(density.mean()) * 2 * math.pi == pytest.approx(1, abs=1e-8)


def test_the_best_length_is_where_the_mean_vector_has_the_mean_length():
    """Minimising the loss finds the maximum-likelihood concentration of vectors of mean length r (Sra 2012, Eq. 4)."""
    rng = np.random.default_rng(3)
    around = np.array([naive.unit(v) for v in rng.normal(size=(400, 10)) + 3 * np.eye(10)[0]])
    mean = around.mean(0)
    r = float(np.linalg.norm(mean))
    direction = torch.tensor(mean / r)
    length = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([length], max_iter=100, line_search_fn="strong_wolfe")
    positive = frozen(torch.tensor(around))

    def closure():
        optimizer.zero_grad()
        loss = VonMisesFisher(10.0).frozen_losses((length * direction).expand(400, 10), positive).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    kappa = float(length.detach()) * 10 * math.sqrt(10)
    assert -naive.log_normaliser(kappa, 10)[1] == pytest.approx(r, abs=1e-6)
    assert kappa == pytest.approx(r * (10 - r**2) / (1 - r**2), rel=0.1)
