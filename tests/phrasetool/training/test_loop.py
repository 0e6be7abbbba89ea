from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from phrasetool.nn.device import flushes_subnormals
from phrasetool.training.loop import ADAM, EpochTrainer, LearntParameters, train_epochs
from phrasetool.training.run import StartError, TrainingRun

STEPS = 4


@dataclass(frozen=True)
class Report:
    epoch: int
    loss: float
    development_loss: float | None
    updates: int


class Toy(EpochTrainer[Report]):
    """Trainer that moves a point towards noise around the origin; the losses of its development set are given."""

    def __init__(self, development=None, epochs=5, patience=None, seed=3):
        self.point = nn.Parameter(torch.full((3,), 4.0))
        self.development, self.shares, self.took_zero = development, [], []
        adam = torch.optim.Adam([self.point], lr=0.1)
        super().__init__(LearntParameters({"point": self.point}, {ADAM: adam}), (seed, 1), epochs, STEPS, patience)

    def _pass(self, rng, tick):
        self.took_zero.append(flushes_subnormals())
        losses = []
        for number in range(STEPS):
            self.shares.append(self.share(number))
            loss = (self.point - torch.from_numpy(rng.standard_normal(3, np.float32))).square().mean()
            self.learnt.step(loss)
            losses.append(float(loss.detach()))
            tick(1)
        return float(np.mean(losses))

    def _report(self, loss):
        result = self.development[self.epoch - 1] if self.development else None
        return Report(self.epoch, loss, result, self.updates_done)

    def _goodness(self, report):
        return None if report["development_loss"] is None else -report["development_loss"]

    def start_errors(self):
        return {"train": StartError.of(16.0)}


def test_epochs_and_updates_are_counted_and_reported():
    toy, ticks = Toy(), []
    reports = list(toy.run(ticks.append))
    assert [(report.epoch, report.updates) for report in reports] == [
        (number, number * STEPS) for number in range(1, 6)
    ]
    assert ticks == [1] * 5 * STEPS
    assert toy.shares == pytest.approx([number / (5 * STEPS) for number in range(5 * STEPS)])
    assert reports[-1].loss < reports[0].loss
    assert toy.took_zero == [True] * 5
    assert not flushes_subnormals()
    assert toy.best is None
    last = toy.point.detach().clone()
    toy.learnt.take_best()
    assert torch.equal(toy.point, last)


@pytest.mark.parametrize(
    ("losses", "best", "patience", "epochs"),
    [
        ([3.0, 2.0, 4.0, 5.0, 1.0], 5, None, 5),
        ([3.0, 2.0, 4.0, 5.0, 1.0], 2, 2, 4),
        ([3.0, 2.0, 4.0, 1.0, 5.0], 4, 2, 5),
        ([2.0, 2.0, 2.0, 2.0, 2.0], 1, 3, 4),
        ([0.0, 1.0, 1.0, 1.0, 1.0], 1, 9, 5),
    ],
)
def test_the_best_epoch_is_kept_and_patience_ends_training(losses, best, patience, epochs):
    toy, points = Toy(losses, patience=patience), []
    for _ in toy.run():
        points.append(toy.point.detach().clone())
    assert (len(points), toy.epoch, toy.best["epoch"]) == (epochs, epochs, best)
    toy.learnt.take_best()
    assert torch.equal(toy.point, points[best - 1])


@pytest.mark.parametrize("stop", [1, 3])
@pytest.mark.parametrize("losses", [None, [3.0, 2.0, 4.0, 5.0, 1.0], [1.0, 2.0, 4.0, 5.0, 3.0]])
def test_interrupted_training_resumes_bit_for_bit(tmp_path, losses, stop):
    class Stop(Exception):
        pass

    def stop_there(report):
        if report.epoch == stop:
            raise Stop

    def train(name, **options):
        start = lambda: Toy(losses)  # noqa: E731
        identity = {"texts": "x", "settings": {"learning_rate": 0.1}}
        return train_epochs(TrainingRun(tmp_path / name, **options), identity, start)

    whole = train("whole")
    with pytest.raises(Stop):
        train("part", on_report=stop_there)
    part = train("part", resume=True)
    assert part.best == whole.best
    for name, value in whole.tensors().items():
        assert torch.equal(value, part.tensors()[name]), name
    logs = [(tmp_path / name / "training.jsonl").read_bytes() for name in ("whole", "part")]
    assert logs[0] == logs[1]


def test_losses_depend_on_the_seed():
    losses = [[report.loss for report in Toy(seed=seed).run()] for seed in (3, 3, 4)]
    assert losses[0] == losses[1] != losses[2]


def random_parameters(seed=1):
    """Return learnt parameters, their table with sparse gradients and their matrix with dense ones."""
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
    learnt, table, turned = random_parameters()
    _, other_table, other_turned = random_parameters()
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
    learnt, table, turned = random_parameters()
    learnt.step(1000 * loss(table, turned, [1, 2]), 0.5)
    assert float(turned.grad.norm()) == pytest.approx(0.5, rel=1e-4)
    assert table.grad.is_sparse


def test_step_sizes_are_scaled_from_full_ones_even_after_a_checkpoint():
    learnt, *_ = random_parameters()
    restored, *_ = random_parameters(2)
    learnt.scale_rates(0.5)
    restored.restore(learnt.tensors())
    for share in (0.5, 0.25):
        for parameters in (learnt, restored):
            parameters.scale_rates(share)
            rates = [parameters.optimizers[name].param_groups[0]["lr"] for name in ("table.", ADAM)]
            assert rates == pytest.approx([0.1 * share, 0.01 * share])


@pytest.mark.parametrize("kept_after", [None, 1, 3])
def test_training_resumes_from_a_checkpoint_bit_for_bit(kept_after):
    learnt, table, turned = random_parameters()
    restored, restored_table, restored_turned = random_parameters(2)
    for step in range(1, 5):
        learn(learnt, table, turned, 1)
        if step == kept_after:
            learnt.keep()
    restored.restore({name: value.clone() for name, value in learnt.tensors().items()})
    for model in ((learnt, table, turned), (restored, restored_table, restored_turned)):
        learn(*model, 3)
        model[0].take_best()
    for name, value in learnt.tensors().items():
        assert torch.equal(value, restored.tensors()[name]), name


def test_the_best_parameters_are_restored():
    learnt, table, turned = random_parameters()
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
    learnt, *_ = random_parameters()
    learnt.keep()
    tensors = learnt.tensors()
    if damage == "missing":
        del tensors["words"]
    elif damage == "best":
        del tensors["best.turned"]
    else:
        tensors["turned"] = torch.from_numpy(np.ones((3, 3), np.float32))
    with pytest.raises((KeyError, RuntimeError)):
        random_parameters(2)[0].restore(tensors)
