import numpy as np
import pytest
import torch
from torch import nn

from phrasetool.training.epochs.learnt_parameters import ADAM, LearntParameters


def made(seed=1):
    """A table of which some rows learn at a time, and a map; with their parameters."""
    torch.manual_seed(seed)
    table, turned = nn.Parameter(torch.randn(9, 4)), nn.Parameter(torch.randn(4, 4))
    optimizers = {"table.": torch.optim.SparseAdam([table], lr=0.1), ADAM: torch.optim.Adam([turned], lr=0.01)}
    return LearntParameters({"words": table, "turned": turned}, optimizers), table, turned


def loss(table, turned, rows):
    return (nn.functional.embedding(torch.tensor(rows), table, sparse=True) @ turned).square().mean()


def learn(learnt, table, turned, steps, clip=None):
    for step in range(steps):
        learnt.step(loss(table, turned, [step % 9, (step * 4) % 9]), clip)


def test_steps_are_those_of_the_optimisers():
    learnt, table, turned = made()
    _, other_table, other_turned = made()
    optimizers = [torch.optim.SparseAdam([other_table], lr=0.1), torch.optim.Adam([other_turned], lr=0.01)]
    learn(learnt, table, turned, 3)
    for step in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss(other_table, other_turned, [step % 9, (step * 4) % 9]).backward()
        for optimizer in optimizers:
            optimizer.step()
    assert torch.equal(table, other_table)
    assert torch.equal(turned, other_turned)


def test_dense_gradients_are_clipped_together():
    learnt, table, turned = made()
    learnt.step(1000 * loss(table, turned, [1, 2]), 0.5)
    assert float(turned.grad.norm()) == pytest.approx(0.5, rel=1e-4)
    assert table.grad.is_sparse


def test_every_step_size_is_scaled_and_stays_full_after_a_checkpoint():
    learnt, *_ = made()
    other, *_ = made(2)
    learnt.scale_rates(0.5)
    other.restore(learnt.tensors())
    for share in (0.5, 0.25):
        for one in (learnt, other):
            one.scale_rates(share)
            rates = [one.optimizers[name].param_groups[0]["lr"] for name in ("table.", ADAM)]
            assert rates == pytest.approx([0.1 * share, 0.01 * share])


@pytest.mark.parametrize("kept_after", [None, 1, 3])
def test_a_checkpoint_goes_on_bit_for_bit(kept_after):
    learnt, table, turned = made()
    other, other_table, other_turned = made(2)
    for step in range(1, 5):
        learn(learnt, table, turned, 1)
        if step == kept_after:
            learnt.keep()
    other.restore({name: value.clone() for name, value in learnt.tensors().items()})
    for one in ((learnt, table, turned), (other, other_table, other_turned)):
        learn(*one, 3)
        one[0].take_best()
    for name, value in learnt.tensors().items():
        assert torch.equal(value, other.tensors()[name]), name


def test_the_best_comes_back():
    learnt, table, turned = made()
    before = table.detach().clone()
    learnt.take_best()
    assert torch.equal(table, before)
    learnt.keep()
    learn(learnt, table, turned, 5)
    assert not torch.equal(table, before)
    learnt.take_best()
    assert torch.equal(table, before)


@pytest.mark.parametrize("damage", ["missing", "shape", "best"])
def test_tensors_of_other_parameters_are_refused(damage):
    learnt, *_ = made()
    learnt.keep()
    tensors = learnt.tensors()
    if damage == "missing":
        del tensors["words"]
    elif damage == "best":
        del tensors["best.turned"]
    else:
        tensors["turned"] = torch.from_numpy(np.ones((3, 3), np.float32))
    with pytest.raises((KeyError, RuntimeError)):
        made(2)[0].restore(tensors)
