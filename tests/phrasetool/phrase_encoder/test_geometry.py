"""Directional losses as functions of the angle between prediction and target."""

import math

import numpy as np
import pytest
import torch

from phrasetool.phrase_encoder.losses import SynDifference, SynProjection
from tests.phrasetool.phrase_encoder.drawn_vectors import frozen

ANGLES = np.radians(np.arange(1, 180, 2.0))


def losses(loss, angles, dimension=5):
    """Return the losses of predictions at the given angles to the target, and their derivatives by the angle."""
    angle = torch.tensor(angles, requires_grad=True)
    rest = torch.zeros(len(angles), dimension - 2, dtype=torch.float64)
    predicted = torch.cat([angle.cos()[:, None], angle.sin()[:, None], rest], 1)
    target = torch.zeros(len(angles), dimension, dtype=torch.float64)
    target[:, 0] = 1
    result = loss.frozen_losses(predicted, frozen(target))
    result.sum().backward()
    return result.detach().numpy(), angle.grad.numpy()


def test_syn_projection_pushes_away_from_the_target_beyond_135_degrees():
    result, slope = losses(SynProjection(3.0), ANGLES)
    np.testing.assert_allclose(result, 3 + np.sin(ANGLES) - np.cos(ANGLES), atol=1e-6)
    np.testing.assert_allclose(slope, np.cos(ANGLES) + np.sin(ANGLES), atol=1e-6)
    beyond = np.radians(135) < ANGLES
    assert (slope[beyond] < 0).all()
    assert (slope[~beyond] >= -1e-6).all()


def test_syn_difference_never_pushes_away_from_the_target():
    result, slope = losses(SynDifference(3.0), ANGLES)
    np.testing.assert_allclose(result, 3 + np.sin(ANGLES / 2) - np.cos(ANGLES), atol=1e-6)
    # The negative is a constant in the derivative: it does not turn with the prediction.
    np.testing.assert_allclose(slope, np.cos(ANGLES / 2) + np.sin(ANGLES), atol=1e-6)
    assert (slope >= 0).all()


@pytest.mark.parametrize(("loss", "degrees"), [(SynProjection(0.5), 24.3), (SynDifference(0.5), 36.0)])
def test_angles_at_which_the_losses_vanish(loss, degrees):
    inside, outside = losses(loss, np.radians([degrees - 0.2, degrees + 0.2]))[0]
    assert inside == 0
    assert 0 < outside < 0.02
    assert math.isclose(losses(loss, np.radians([degrees + 0.05]))[0][0], 0, abs_tol=0.01)
