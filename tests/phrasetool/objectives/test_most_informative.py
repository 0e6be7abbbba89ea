import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.objectives.margin import unit_vectors
from phrasetool.objectives.most_informative import MostInformative, most_informative
from tests.phrasetool.objectives import naive_objectives as naive
from tests.phrasetool.objectives.drawn_vectors import SEEDS, frozen, tensors


@given(SEEDS, st.integers(1, 12), st.integers(1, 40))
def test_most_informative_equals_the_obvious_search(seed, dimension, size):
    predicted, positive, pool = tensors(seed, dimension, pool=size)
    p, u = unit_vectors(predicted), unit_vectors(positive)
    found = most_informative(p, u, pool)
    for row in range(len(p)):
        best = naive.most_informative(predicted[row].numpy(), positive[row].numpy(), pool.numpy())
        stated = np.zeros(dimension) if best is None else pool[best].numpy()
        wanted = (p - u)[row].numpy()
        assert found[row].numpy() @ wanted == pytest.approx(stated @ wanted, abs=1e-12)
        assert found[row].numpy() @ u[row].numpy() < 1 - 1e-6


def test_most_informative_searches_a_large_pool_to_its_end():
    rng = np.random.default_rng(1)
    pool = np.array([naive.unit(vector) for vector in rng.normal(size=(9000, 3))])
    predicted, positive = (unit_vectors(torch.tensor(rng.normal(size=(200, 3)))) for _ in range(2))
    found = most_informative(predicted, positive, torch.tensor(pool)).numpy()
    best = ((predicted - positive).numpy() @ pool.T).argmax(1)
    assert best.max() > 8192
    np.testing.assert_array_equal(found, pool[best])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_partner_is_not_its_own_negative(dtype):
    rng = np.random.default_rng(2)
    positive = unit_vectors(torch.tensor(rng.normal(size=(4, 50)), dtype=dtype))
    # p - u points along u only where p is longer than one can be; a pool of partners alone leaves no other choice.
    pool = torch.cat([positive[:1], positive[:1] * (1 - 1e-7)])
    found = most_informative(2 * positive, positive, pool)
    assert not found[0].any()
    assert (found[1:].norm(dim=1) > 0.9).all()
    aside = unit_vectors(positive[:1] + 0.1 * positive[1:2])
    found = most_informative(2 * positive[:1], positive[:1], torch.cat([pool, -aside, aside]))
    assert torch.equal(found, aside)


def test_a_sample_of_the_pool_is_searched():
    predicted, positive, pool = tensors(8, 10, pool=200)
    found = MostInformative(0.5, pool_size=20).frozen_losses(predicted, frozen(positive, pool, 6))
    drawn = np.random.default_rng(6).choice(len(pool), 20, replace=False, shuffle=False)
    assert len(set(drawn.tolist())) == 20
    stated = MostInformative(0.5, pool_size=0).frozen_losses(predicted, frozen(positive, pool[drawn]))
    assert torch.equal(found, stated)
    every = MostInformative(0.5, pool_size=0).frozen_losses(predicted, frozen(positive, pool))
    assert not torch.equal(found, every)
    assert torch.equal(MostInformative(0.5).frozen_losses(predicted, frozen(positive, pool)), every)
