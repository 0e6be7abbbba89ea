import numpy as np
import pytest
import torch

from phrasetool.objectives.in_batch_cross_entropy import cosines, in_batch_cross_entropy
from tests.phrasetool.objectives.naive_objectives import in_batch


def test_cosines_of_every_pair():
    a, b = np.random.default_rng(2).normal(size=(2, 6, 4))
    naive = [[x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in b] for x in a]
    np.testing.assert_allclose(cosines(torch.tensor(a), torch.tensor(b)).numpy(), naive, rtol=1e-12)
    assert cosines(torch.zeros(2, 4), torch.ones(2, 4)).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_in_batch_equals_the_obvious_formula_and_so_does_its_gradient(smoothing):
    similarities = torch.tensor(np.random.default_rng(2).uniform(-1, 1, (6, 6)), requires_grad=True)
    found = in_batch_cross_entropy(similarities, 0.2, smoothing)
    np.testing.assert_allclose(
        found.detach().numpy(), in_batch(similarities.detach().numpy(), 0.2, smoothing), rtol=1e-9
    )
    assert torch.autograd.gradcheck(lambda s: in_batch_cross_entropy(s, 0.2, smoothing), (similarities,))


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
