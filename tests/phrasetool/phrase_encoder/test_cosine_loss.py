import numpy as np
import pytest
import torch
from hypothesis import given

from phrasetool.phrase_encoder.losses import Cosine
from tests.phrasetool.phrase_encoder import naive_objectives as naive
from tests.phrasetool.phrase_encoder.drawn_vectors import DIMENSIONS, SEEDS, frozen, tensors


@given(SEEDS, DIMENSIONS)
def test_equals_the_obvious_version(seed, dimension):
    predicted, positive, _ = tensors(seed, dimension)
    result = Cosine().frozen_losses(predicted, frozen(positive))
    expected = [1 - naive.unit(p) @ naive.unit(u) for p, u in zip(predicted.numpy(), positive.numpy(), strict=True)]
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_by_hand_and_zero():
    predicted = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]])
    result = Cosine().frozen_losses(predicted, frozen([[2.0, 0.0]] * 3))
    assert result.tolist() == pytest.approx([0.4, 1.0, 2.0])
