"""The objectives with a margin over cosines: what they have in common."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from phrasetool.objectives.margin import unit_vectors
from phrasetool.objectives.most_informative import MostInformative
from phrasetool.objectives.sampled import Sampled
from phrasetool.objectives.syn_margin import SynDifference, SynProjection
from tests.phrasetool.objectives.drawn_vectors import frozen, tensors


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
    stated = 0.5 + 0.4 / math.sqrt(0.8) - 0.6
    assert float(SynDifference(0.5).frozen_losses(predicted, frozen(true))) == pytest.approx(stated)
    for negative, loss in ((up, 0.7), (down, 0.0), (same, 0.5)):
        found = Sampled(0.5, 5).frozen_losses(predicted, frozen(true, [negative]))
        assert float(found) == pytest.approx(loss)
    # u'.(p - u) is 0.8, -0.8, 0.4, -0.4
    found = MostInformative(0.5).frozen_losses(predicted, frozen(true, [same, down, back, up]))
    assert float(found) == pytest.approx(0.7)
    found = MostInformative(0.5).frozen_losses(predicted, frozen(true, [same, down, back]))
    assert float(found) == pytest.approx(0.0)


def test_draws_depend_on_the_source_of_randomness_only():
    predicted, positive, pool = tensors(5, 8)
    for loss in (Sampled(), MostInformative(pool_size=9)):
        one, other, later = frozen(positive, pool, 3), frozen(positive, pool, 3), frozen(positive, pool, 4)
        first = loss.frozen_losses(predicted, one)
        assert torch.equal(loss.frozen_losses(predicted, other), first)
        assert not torch.equal(loss.frozen_losses(predicted, later), first)
        # What was drawn does not depend on the vectors.
        other = frozen(-positive, pool, 3)
        loss.frozen_losses(predicted.square(), other)
        assert other.rng.bit_generator.state == one.rng.bit_generator.state


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
