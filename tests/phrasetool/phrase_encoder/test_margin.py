"""Objectives with a margin between cosines: their common properties, then each objective."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from phrasetool.phrase_encoder.losses import (
    MostInformative,
    Sampled,
    SynDifference,
    SynProjection,
    margin_loss,
    most_informative,
    unit_vectors,
)
from tests.phrasetool.phrase_encoder import naive_objectives as naive
from tests.phrasetool.phrase_encoder.drawn_vectors import DIMENSIONS, SEEDS, frozen, tensors
from tests.variants import for_each


def orthogonal_negative(p, u):
    return SynProjection().negative(p, u, None)


def difference_negative(p, u):
    return SynDifference().negative(p, u, None)


def test_unit_vectors_have_length_one_or_zero_and_no_gradient_there():
    vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-7, 0.0], [-1e-5, 0.0]], requires_grad=True)
    unit = unit_vectors(vectors)
    np.testing.assert_allclose(unit.detach(), [[0.6, 0.8], [0, 0], [0, 0], [-1, 0]], rtol=1e-6)
    unit.sum().backward()
    np.testing.assert_allclose(vectors.grad, [[0.032, -0.024], [0, 0], [0, 0], [0, 1e5]], rtol=1e-4)


def test_losses_by_hand():
    predicted = torch.tensor([[3.0, 4.0]])  # p = (0.6, 0.8)
    true = [[2.0, 0.0]]  # u = (1, 0)
    up, down, back, same = [0.0, 1.0], [0.0, -1.0], [-1.0, 0.0], [1.0, 0.0]
    assert float(SynProjection(0.5).frozen_losses(predicted, frozen(true))) == pytest.approx(0.5 + 0.8 - 0.6)
    # p - u = (-0.4, 0.8), of length sqrt(0.8), so u'.p is 0.4 / sqrt(0.8)
    expected = 0.5 + 0.4 / math.sqrt(0.8) - 0.6
    assert float(SynDifference(0.5).frozen_losses(predicted, frozen(true))) == pytest.approx(expected)
    for negative, loss in ((up, 0.7), (down, 0.0), (same, 0.5)):
        result = Sampled(0.5, 5).frozen_losses(predicted, frozen(true, [negative]))
        assert float(result) == pytest.approx(loss)
    # u'.(p - u) is 0.8, -0.8, 0.4, -0.4
    result = MostInformative(0.5).frozen_losses(predicted, frozen(true, [same, down, back, up]))
    assert float(result) == pytest.approx(0.7)
    result = MostInformative(0.5).frozen_losses(predicted, frozen(true, [same, down, back]))
    assert float(result) == pytest.approx(0.0)


def test_draws_depend_on_the_source_of_randomness_only():
    predicted, positive, pool = tensors(5, 8)
    for loss in (Sampled(), MostInformative(pool_size=9)):
        batch, same_draws, other_draws = frozen(positive, pool, 3), frozen(positive, pool, 3), frozen(positive, pool, 4)
        first = loss.frozen_losses(predicted, batch)
        assert torch.equal(loss.frozen_losses(predicted, same_draws), first)
        assert not torch.equal(loss.frozen_losses(predicted, other_draws), first)
        # The draws do not depend on the vectors.
        same_draws = frozen(-positive, pool, 3)
        loss.frozen_losses(predicted.square(), same_draws)
        assert same_draws.rng.bit_generator.state == batch.rng.bit_generator.state


@pytest.mark.parametrize("loss", [Sampled(2.0), MostInformative(2.0), MostInformative(2.0, pool_size=9)])
def test_gradients_against_finite_differences(loss):
    predicted, positive, pool = tensors(4, 6)
    predicted.requires_grad_()
    assert torch.autograd.gradcheck(lambda p: loss.frozen_losses(p, frozen(positive, pool, 2)), (predicted,))


def test_a_step_down_turns_the_prediction_to_the_partner():
    for loss in (Sampled(), MostInformative(), SynProjection(), SynDifference()):
        predicted, positive, pool = tensors(9, 20, count=50, pool=300)
        predicted.requires_grad_()
        loss.frozen_losses(predicted, frozen(positive, pool)).sum().backward()
        before = cosine_similarity(predicted.detach(), positive)
        after = cosine_similarity(predicted.detach() - 0.1 * predicted.grad, positive)
        assert float((after - before).mean()) > 0.01


@given(SEEDS, DIMENSIONS, st.integers(1, 6))
def test_sampled_equals_the_obvious_version(seed, dimension, negatives):
    predicted, positive, pool = tensors(seed, dimension)
    result = Sampled(0.4, negatives).frozen_losses(predicted, frozen(positive, pool, seed))
    draws = np.random.default_rng(seed).integers(0, len(pool), (len(predicted), negatives))
    rows = zip(predicted.numpy(), positive.numpy(), draws, strict=True)
    expected = [naive.sampled(p, u, pool.numpy(), draw, 0.4) for p, u, draw in rows]
    np.testing.assert_allclose(result, expected, atol=1e-12)


def test_all_phrases_of_the_pool_are_drawn():
    pool = torch.eye(6, dtype=torch.float64)
    predicted, positive = torch.full((3000, 6), 1.0, dtype=torch.float64), torch.zeros(3000, 6, dtype=torch.float64)
    predicted = (predicted * torch.arange(1, 7)).requires_grad_()
    Sampled(0.5, 1).frozen_losses(unit_vectors(predicted), frozen(positive, pool)).sum().backward()
    assert (predicted.grad != 0).all()


@given(SEEDS, st.integers(1, 12), st.integers(1, 40))
def test_most_informative_equals_the_obvious_search(seed, dimension, size):
    predicted, positive, pool = tensors(seed, dimension, pool=size)
    p, u = unit_vectors(predicted), unit_vectors(positive)
    result = most_informative(p, u, pool)
    for row in range(len(p)):
        best = naive.most_informative(predicted[row].numpy(), positive[row].numpy(), pool.numpy())
        nearest = np.zeros(dimension) if best is None else pool[best].numpy()
        direction = (p - u)[row].numpy()
        assert result[row].numpy() @ direction == pytest.approx(nearest @ direction, abs=1e-12)
        assert result[row].numpy() @ u[row].numpy() < 1 - 1e-6


def test_most_informative_searches_a_large_pool_to_its_end():
    rng = np.random.default_rng(1)
    pool = np.array([naive.unit(vector) for vector in rng.normal(size=(9000, 3))])
    predicted, positive = (unit_vectors(torch.tensor(rng.normal(size=(200, 3)))) for _ in range(2))
    result = most_informative(predicted, positive, torch.tensor(pool)).numpy()
    best = ((predicted - positive).numpy() @ pool.T).argmax(1)
    assert best.max() > 8192
    np.testing.assert_array_equal(result, pool[best])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_partner_is_not_its_own_negative(dtype):
    rng = np.random.default_rng(2)
    positive = unit_vectors(torch.tensor(rng.normal(size=(4, 50)), dtype=dtype))
    # p - u points along u only if p is longer than a unit vector; this pool contains only the partner of row 0.
    pool = torch.cat([positive[:1], positive[:1] * (1 - 1e-7)])
    result = most_informative(2 * positive, positive, pool)
    assert not result[0].any()
    assert (result[1:].norm(dim=1) > 0.9).all()
    aside = unit_vectors(positive[:1] + 0.1 * positive[1:2])
    result = most_informative(2 * positive[:1], positive[:1], torch.cat([pool, -aside, aside]))
    assert torch.equal(result, aside)


def test_a_sample_of_the_pool_is_searched():
    predicted, positive, pool = tensors(8, 10, pool=200)
    result = MostInformative(0.5, pool_size=20).frozen_losses(predicted, frozen(positive, pool, 6))
    drawn = np.random.default_rng(6).choice(len(pool), 20, replace=False, shuffle=False)
    assert len(set(drawn.tolist())) == 20
    expected = MostInformative(0.5, pool_size=0).frozen_losses(predicted, frozen(positive, pool[drawn]))
    assert torch.equal(result, expected)
    every = MostInformative(0.5, pool_size=0).frozen_losses(predicted, frozen(positive, pool))
    assert not torch.equal(result, every)
    assert torch.equal(MostInformative(0.5).frozen_losses(predicted, frozen(positive, pool)), every)


def decomposed(seed, dimension, angle):
    """Return unit vectors: u, p at the given angle to u, and a random x, each of shape (1, n)."""
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
    expected = max(0.0, margin + math.sin(angle) - math.cos(angle))
    assert float(SynProjection(margin).frozen_losses(p, frozen(u))) == pytest.approx(expected, abs=1e-9)


@given(SEEDS, DIMENSIONS, st.floats(1e-4, math.pi - 1e-4), st.floats(0, 3))
def test_difference_sets_l3_and_l4_by_half_the_angle(seed, dimension, angle, margin):
    u, p, _ = decomposed(seed, dimension, angle)
    x, u_orth = difference_negative(p, u), orthogonal_negative(p, u)
    l3, l4 = -math.sin(angle / 2), math.cos(angle / 2)
    assert float((x * u).sum()) == pytest.approx(l3, abs=1e-9)
    assert float((x * u_orth).sum()) == pytest.approx(l4, abs=1e-9)
    expected = max(0.0, margin + l4 * math.sin(angle) - (1 - l3) * math.cos(angle))
    assert float(SynDifference(margin).frozen_losses(p, frozen(u))) == pytest.approx(expected, abs=1e-9)


@given(SEEDS, DIMENSIONS, st.sampled_from([torch.float32, torch.float64]))
def test_syn_margin_equals_the_obvious_version(seed, dimension, dtype):
    predicted, positive, _ = tensors(seed, dimension)
    for loss, negative in ((SynProjection(0.7), naive.projection), (SynDifference(0.7), naive.difference)):
        result = loss.frozen_losses(predicted.to(dtype), frozen(positive.to(dtype)))
        assert result.dtype == dtype
        assert result.shape == (len(predicted),)
        expected = [
            naive.margin_loss(naive.unit(p), naive.unit(u), negative(p, u), 0.7)
            for p, u in zip(predicted.numpy(), positive.numpy(), strict=True)
        ]
        np.testing.assert_allclose(result, expected, atol=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("make", [orthogonal_negative, difference_negative])
def test_synthetic_negatives_are_constants_to_the_gradient(make):
    predicted, positive, _ = tensors(4, 6)
    loss = SynProjection(2.0) if make is orthogonal_negative else SynDifference(2.0)
    negative = make(unit_vectors(predicted), unit_vectors(positive))

    def held(p):
        return margin_loss(unit_vectors(p), unit_vectors(positive), negative, 2.0)

    predicted.requires_grad_()
    assert torch.autograd.gradcheck(held, (predicted,))
    expected = torch.autograd.grad(held(predicted).sum(), predicted)[0]
    result = torch.autograd.grad(loss.frozen_losses(predicted, frozen(positive)).sum(), predicted)[0]
    torch.testing.assert_close(result, expected)


@for_each("dimension", [2, 3, 50, 512])
@for_each("exponent", range(-9, 0))
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
    # If p - u has length 1e-6, about a tenth of it is rounding error along u.  Scaled to length one, this error may add
    # about a tenth to the loss, but no more.
    noise = {"syn-projection": 1e-6, "syn-difference": 3e-7 / true.clamp_min(1e-6)}
    for loss in (SynProjection(1.0), SynDifference(1.0)):
        losses = loss.frozen_losses(p, frozen(u))
        (gradient,) = torch.autograd.grad(losses.sum(), p)
        assert (losses.detach() <= 1.5 * true + noise[loss.name]).all()
        assert gradient.norm(dim=1).max() <= 3
