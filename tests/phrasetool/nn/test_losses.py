"""Contrastive losses, the softmax over a vocabulary, and the von Mises-Fisher normaliser."""

import math

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.nn.losses import cosines, in_batch_cross_entropy, log_vmf_normaliser, softmax_cross_entropy
from phrasetool.phrase_encoder.losses import VonMisesFisher
from tests.phrasetool.phrase_encoder import naive_objectives as naive
from tests.phrasetool.phrase_encoder.drawn_vectors import frozen
from tests.phrasetool.phrase_encoder.naive_objectives import in_batch

KAPPAS = np.concatenate([[0.0], np.logspace(-3, 4, 29), [1e5, 1e6]])


def test_cosines_of_every_pair():
    a, b = np.random.default_rng(2).normal(size=(2, 6, 4))
    naive = [[x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in b] for x in a]
    np.testing.assert_allclose(cosines(torch.tensor(a), torch.tensor(b)).numpy(), naive, rtol=1e-12)
    assert cosines(torch.zeros(2, 4), torch.ones(2, 4)).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_in_batch_equals_the_obvious_formula_and_so_does_its_gradient(smoothing, corrected):
    rng = np.random.default_rng(2)
    similarities = torch.tensor(rng.uniform(-1, 1, (6, 6)), requires_grad=True)
    shares = rng.uniform(0.01, 1, (2, 6)) if corrected else (None, None)
    logs = tuple(torch.tensor(np.log(side_shares)) for side_shares in shares) if corrected else None
    result = in_batch_cross_entropy(similarities, 0.2, smoothing, logs)
    naive = in_batch(similarities.detach().numpy(), 0.2, smoothing, *shares)
    np.testing.assert_allclose(result.detach().numpy(), naive, rtol=1e-9)
    assert torch.autograd.gradcheck(lambda s: in_batch_cross_entropy(s, 0.2, smoothing, logs), (similarities,))


def fitted_scores(pairs, weights, corrected):
    """Return the score matrix that minimises the weighted loss over all pairs as one batch, without constraints.

    Args:
        pairs: numbers of source and target, int, shape (B, 2); a pair may occur several times.
        weights: weights of the losses of the pairs, shape (B,).
        corrected: whether candidates are corrected for their frequency.
    """
    s, t = torch.tensor(pairs).T
    scores = torch.zeros(int(s.max()) + 1, int(t.max()) + 1, dtype=torch.double, requires_grad=True)
    shares = [torch.bincount(side)[side].double().div(len(side)).log() for side in (s, t)]
    optimizer = torch.optim.LBFGS([scores], lr=1, max_iter=3000, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        result = in_batch_cross_entropy(scores[s][:, t], 1.0, 0.0, tuple(shares) if corrected else None)
        loss = (torch.tensor(weights) * result).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return scores.detach().numpy()


def centred(matrix):
    """Return the matrix minus its mean."""
    return matrix - matrix.mean()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_the_log_probability_and_without_correction_the_pointwise_mutual_information(weighted):
    """Counts of a toy distribution are given by repeated pairs, or by the weights of pairs that occur once."""
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 9, (4, 5)) * np.array([1, 4, 1, 12, 2])
    cells = np.argwhere(counts > 0)
    if weighted:
        pairs, weights = cells, counts[tuple(cells.T)] / counts.mean()
    else:
        pairs = np.repeat(cells, counts[tuple(cells.T)], axis=0)
        weights = np.ones(len(pairs))
    joint = np.log(counts / counts.sum())
    given_source = joint - np.log(counts.sum(1) / counts.sum())[:, None]

    corrected = fitted_scores(pairs, weights, corrected=True)
    np.testing.assert_allclose(centred(corrected), centred(joint), atol=1e-3)
    # These scores are log p(t|s) plus a constant for each source.
    constants = corrected - given_source
    np.testing.assert_allclose(constants, np.repeat(constants[:, :1], 5, axis=1), atol=1e-3)

    if not weighted:
        information = given_source - np.log(counts.sum(0) / counts.sum())
        np.testing.assert_allclose(
            centred(fitted_scores(pairs, weights, corrected=False)), centred(information), atol=1e-3
        )


def test_in_batch_is_finite_for_zero_vectors_and_far_ends():
    a = torch.zeros(3, 4, requires_grad=True)
    loss = in_batch_cross_entropy(cosines(a, torch.ones(3, 4)), temperature=0.03).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(a.grad).all()
    opposite = torch.full((3, 3), -1.0, requires_grad=True)
    loss = in_batch_cross_entropy(opposite, temperature=0.03).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(opposite.grad).all()


def value_and_gradient(kappas, dimension, dtype=torch.float64):
    kappa = torch.tensor(kappas, dtype=dtype, requires_grad=True)
    value = log_vmf_normaliser(kappa, dimension)
    assert value.dtype == dtype
    value.sum().backward()
    return value.detach().double().numpy(), kappa.grad.double().numpy()


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 9, 33, 34, 35, 50, 51, 100, 256, 300, 512, 777, 1024, 2048])
def test_value_and_gradient_against_mpmath(dimension):
    expected = np.array([naive.log_normaliser(kappa, dimension) for kappa in KAPPAS])
    value, gradient = value_and_gradient(KAPPAS, dimension)
    np.testing.assert_allclose(value, expected[:, 0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gradient, expected[:, 1], rtol=1e-8)
    # Concentrations that are rounded to single precision.
    single = KAPPAS.astype(np.float32)
    expected = np.array([naive.log_normaliser(kappa, dimension) for kappa in single])
    value, gradient = value_and_gradient(single, dimension, torch.float32)
    np.testing.assert_allclose(value, expected[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gradient, expected[:, 1], rtol=1e-6)


@pytest.mark.parametrize("dimension", [2, 3, 10, 50, 64, 100])
def test_against_scipy_where_it_neither_underflows_nor_overflows(dimension):
    order = dimension / 2 - 1
    scaled = scipy.special.ive(order, KAPPAS[1:])
    usable = scaled > 1e-280
    assert usable.sum() > 15
    kappas = KAPPAS[1:][usable]
    expected = order * np.log(kappas) - dimension / 2 * math.log(2 * math.pi) - np.log(scaled[usable]) - kappas
    value, gradient = value_and_gradient(kappas, dimension)
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
    ratio = scipy.special.ive(order + 1, kappas) / scaled[usable]
    np.testing.assert_allclose(gradient, -ratio, rtol=1e-6)


def test_closed_forms():
    kappas = np.logspace(-3, 2, 20)
    for dimension, expected in (
        (1, -np.log(2 * np.cosh(kappas))),
        (3, np.log(kappas / (4 * np.pi * np.sinh(kappas)))),
    ):
        np.testing.assert_allclose(value_and_gradient(kappas, dimension)[0], expected, rtol=1e-8)
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


@pytest.mark.parametrize("rows", [1, 256, 300])
def test_the_cross_entropy_equals_torchs(rows):
    torch.manual_seed(rows)
    targets = torch.randint(0, 40, (rows,))
    results = []
    for own in (True, False):
        torch.manual_seed(1)
        hidden, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((rows, 9), (40, 9), (40,)))
        if own:
            loss = softmax_cross_entropy(hidden, weight, bias, targets)
        else:
            scores = torch.nn.functional.linear(hidden, weight, bias)
            loss = torch.nn.functional.cross_entropy(scores, targets, reduction="sum")
        (loss / 7).backward()
        results.append((loss.detach(), hidden.grad, weight.grad, bias.grad))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)


def test_the_cross_entropy_of_far_apart_scores_is_finite():
    hidden = torch.tensor([[1000.0], [-1000.0]], requires_grad=True)
    loss = softmax_cross_entropy(hidden, torch.tensor([[1.0], [-1.0]]), torch.zeros(2), torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == 2000
    assert hidden.grad.flatten().tolist() == [0, -2]
