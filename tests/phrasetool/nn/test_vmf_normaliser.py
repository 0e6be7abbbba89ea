"""log C_d(k) against mpmath, scipy and closed forms."""

import math

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.nn.losses import log_vmf_normaliser
from phrasetool.phrase_encoder.losses import VonMisesFisher
from tests.phrasetool.phrase_encoder import naive_objectives as naive
from tests.phrasetool.phrase_encoder.drawn_vectors import frozen

KAPPAS = np.concatenate([[0.0], np.logspace(-3, 4, 29), [1e5, 1e6]])


def value_and_gradient(kappas, dimension, dtype=torch.float64):
    kappa = torch.tensor(kappas, dtype=dtype, requires_grad=True)
    value = log_vmf_normaliser(kappa, dimension)
    assert value.dtype == dtype
    value.sum().backward()
    return value.detach().double().numpy(), kappa.grad.double().numpy()


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 9, 33, 34, 35, 50, 51, 100, 256, 300, 512, 777, 1024, 2048])
def test_value_and_gradient_against_mpmath(dimension):
    stated = np.array([naive.log_normaliser(kappa, dimension) for kappa in KAPPAS])
    value, gradient = value_and_gradient(KAPPAS, dimension)
    np.testing.assert_allclose(value, stated[:, 0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gradient, stated[:, 1], rtol=1e-8)
    # Against what single precision makes of the same concentrations.
    single = KAPPAS.astype(np.float32)
    stated = np.array([naive.log_normaliser(kappa, dimension) for kappa in single])
    value, gradient = value_and_gradient(single, dimension, torch.float32)
    np.testing.assert_allclose(value, stated[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gradient, stated[:, 1], rtol=1e-6)


@pytest.mark.parametrize("dimension", [2, 3, 10, 50, 64, 100])
def test_against_scipy_where_it_neither_underflows_nor_overflows(dimension):
    order = dimension / 2 - 1
    scaled = scipy.special.ive(order, KAPPAS[1:])
    fine = scaled > 1e-280
    assert fine.sum() > 15
    kappas = KAPPAS[1:][fine]
    stated = order * np.log(kappas) - dimension / 2 * math.log(2 * math.pi) - np.log(scaled[fine]) - kappas
    value, gradient = value_and_gradient(kappas, dimension)
    np.testing.assert_allclose(value, stated, rtol=1e-6, atol=1e-6)
    ratio = scipy.special.ive(order + 1, kappas) / scaled[fine]
    np.testing.assert_allclose(gradient, -ratio, rtol=1e-6)


def test_closed_forms():
    kappas = np.logspace(-3, 2, 20)
    for dimension, stated in (
        (1, -np.log(2 * np.cosh(kappas))),
        (3, np.log(kappas / (4 * np.pi * np.sinh(kappas)))),
    ):
        np.testing.assert_allclose(value_and_gradient(kappas, dimension)[0], stated, rtol=1e-8)
    # Without concentration, the density is one over the surface of the sphere.
    for dimension, surface in ((1, 2), (2, 2 * math.pi), (3, 4 * math.pi), (4, 2 * math.pi**2)):
        value, gradient = value_and_gradient([0.0], dimension)
        assert value[0] == pytest.approx(-math.log(surface), abs=1e-8)
        assert gradient[0] == 0


@given(st.integers(1, 3000), st.floats(-4, 7))
def test_the_mean_length_obeys_its_bounds(dimension, exponent):
    """Amos (1974, Eq. 9, 11): k / (v + 1 + sqrt(k^2 + (v + 1)^2)) < I_{v+1} / I_v < k / (v + sqrt(k^2 + (v + 2)^2))."""
    kappa, order = 10.0**exponent, dimension / 2 - 1
    ratio = -value_and_gradient([kappa], dimension)[1][0]
    lower = kappa / (order + 1 + math.hypot(kappa, order + 1))
    upper = kappa / (order + math.hypot(kappa, order + 2))
    assert lower * (1 - 1e-8) <= ratio <= min(1.0, upper) * (1 + 1e-8)


def test_any_shape_and_no_shape():
    kappas = torch.tensor(KAPPAS[:24]).reshape(2, 3, 4)
    assert torch.equal(log_vmf_normaliser(kappas, 50), log_vmf_normaliser(kappas.flatten(), 50).reshape(2, 3, 4))
    assert log_vmf_normaliser(torch.tensor(2.0), 50).shape == ()
    assert log_vmf_normaliser(torch.zeros(0), 3).shape == (0,)


def test_gradients_against_finite_differences():
    kappa = torch.tensor([0.1, 1.0, 30.0, 400.0], dtype=torch.float64, requires_grad=True)
    for dimension in (2, 50, 1024):
        assert torch.autograd.gradcheck(lambda k, d=dimension: log_vmf_normaliser(k, d), (kappa,))
    predicted, positive = torch.tensor(np.tanh(np.random.default_rng(1).normal(size=(2, 5, 8))))
    predicted.requires_grad_()
    assert torch.autograd.gradcheck(lambda p: VonMisesFisher().frozen_losses(p, frozen(positive)), (predicted,))


def test_a_dimension_below_one_is_refused():
    with pytest.raises(ValueError, match="dimension is 0"):
        log_vmf_normaliser(torch.ones(1), 0)
