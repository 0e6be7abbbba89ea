import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.objectives.margin import margin_loss, unit_vectors
from phrasetool.objectives.syn_margin import SynDifference, SynProjection, difference_negative, orthogonal_negative
from tests.phrasetool.objectives import naive_objectives as naive
from tests.phrasetool.objectives.drawn_vectors import DIMENSIONS, SEEDS, frozen, tensors


def decomposed(seed, dimension, angle):
    """Unit vectors u, p at an angle to u, and any x, each of shape (1, n)."""
    rng = np.random.default_rng(seed)
    u = naive.unit(rng.normal(size=dimension))
    aside = naive.unit(rng.normal(size=dimension))
    aside = naive.unit(aside - (aside @ u) * u)
    p = math.cos(angle) * u + math.sin(angle) * aside
    return (torch.tensor(v)[None] for v in (u, p, naive.unit(rng.normal(size=dimension))))


@given(SEEDS, DIMENSIONS, st.floats(1e-4, math.pi - 1e-4), st.floats(0, 3))
def test_the_loss_of_any_negative_reduces_to_its_parts_along_u_and_u_orth(seed, dimension, angle, margin):
    u, p, x = decomposed(seed, dimension, angle)
    u_orth = orthogonal_negative(p, u)
    l3, l4 = float((x * u).sum()), float((x * u_orth).sum())
    reduced = max(0.0, margin + l4 * float((u_orth * p).sum()) - (1 - l3) * float((u * p).sum()))
    assert float(margin_loss(p, u, x, margin)) == pytest.approx(reduced, abs=1e-9)


@given(SEEDS, DIMENSIONS, st.floats(1e-4, math.pi - 1e-4), st.floats(0, 3))
def test_projection_sets_l3_to_0_and_l4_to_1(seed, dimension, angle, margin):
    u, p, _ = decomposed(seed, dimension, angle)
    u_orth = orthogonal_negative(p, u)
    assert float((u_orth * u).sum()) == pytest.approx(0, abs=1e-12)
    assert float((u_orth * u_orth).sum()) == pytest.approx(1)
    stated = max(0.0, margin + math.sin(angle) - math.cos(angle))
    assert float(SynProjection(margin).frozen_losses(p, frozen(u))) == pytest.approx(stated, abs=1e-9)


@given(SEEDS, DIMENSIONS, st.floats(1e-4, math.pi - 1e-4), st.floats(0, 3))
def test_difference_sets_them_by_half_the_angle(seed, dimension, angle, margin):
    u, p, _ = decomposed(seed, dimension, angle)
    x, u_orth = difference_negative(p, u), orthogonal_negative(p, u)
    l3, l4 = -math.sin(angle / 2), math.cos(angle / 2)
    assert float((x * u).sum()) == pytest.approx(l3, abs=1e-9)
    assert float((x * u_orth).sum()) == pytest.approx(l4, abs=1e-9)
    stated = max(0.0, margin + l4 * math.sin(angle) - (1 - l3) * math.cos(angle))
    assert float(SynDifference(margin).frozen_losses(p, frozen(u))) == pytest.approx(stated, abs=1e-9)


@given(SEEDS, DIMENSIONS, st.sampled_from([torch.float32, torch.float64]))
def test_syn_margin_equals_the_obvious_version(seed, dimension, dtype):
    predicted, positive, _ = tensors(seed, dimension)
    for loss, negative in ((SynProjection(0.7), naive.projection), (SynDifference(0.7), naive.difference)):
        found = loss.frozen_losses(predicted.to(dtype), frozen(positive.to(dtype)))
        assert found.dtype == dtype
        assert found.shape == (len(predicted),)
        stated = [
            naive.margin_loss(naive.unit(p), naive.unit(u), negative(p, u), 0.7)
            for p, u in zip(predicted.numpy(), positive.numpy(), strict=True)
        ]
        np.testing.assert_allclose(found, stated, atol=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("make", [orthogonal_negative, difference_negative])
def test_synthetic_negatives_are_constants_to_the_gradient(make):
    predicted, positive, _ = tensors(4, 6)
    loss = SynProjection(2.0) if make is orthogonal_negative else SynDifference(2.0)
    negative = make(unit_vectors(predicted), unit_vectors(positive))

    def held(p):
        return margin_loss(unit_vectors(p), unit_vectors(positive), negative, 2.0)

    predicted.requires_grad_()
    assert torch.autograd.gradcheck(held, (predicted,))
    wanted = torch.autograd.grad(held(predicted).sum(), predicted)[0]
    found = torch.autograd.grad(loss.frozen_losses(predicted, frozen(positive)).sum(), predicted)[0]
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("dimension", [2, 3, 50, 512])
@pytest.mark.parametrize("exponent", range(-9, 0))
def test_a_small_angle_in_single_precision_is_harmless(dimension, exponent):
    rng = np.random.default_rng(dimension)
    u = np.array([naive.unit(vector) for vector in rng.normal(size=(100, dimension))])
    p = torch.tensor(u + 10.0**exponent * rng.normal(size=u.shape) / math.sqrt(dimension), dtype=torch.float32)
    u = torch.tensor(u, dtype=torch.float32)
    p, u = unit_vectors(p).requires_grad_(), unit_vectors(u)
    u_orth = orthogonal_negative(p.detach(), u)
    lengths = u_orth.norm(dim=1)
    assert ((lengths == 0) | ((lengths - 1).abs() < 1e-5)).all()
    assert (u_orth * u).sum(1).abs().max() < 2e-3
    true = (p.detach() - u).norm(dim=1)
    assert ((u_orth * p.detach()).sum(1) <= true * (1 + 2e-3) + 1e-6).all()
    # A difference of 1e-6 has a tenth of rounding along u; it may cost a tenth of its length, one, but no more.
    noise = {"syn-projection": 1e-6, "syn-difference": 3e-7 / true.clamp_min(1e-6)}
    for loss in (SynProjection(1.0), SynDifference(1.0)):
        losses = loss.frozen_losses(p, frozen(u))
        (gradient,) = torch.autograd.grad(losses.sum(), p)
        assert (losses.detach() <= 1.5 * true + noise[loss.name]).all()
        assert gradient.norm(dim=1).max() <= 3
