from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from phrasetool.training.divergence import StartError
from phrasetool.training.epochs.epoch_trainer import EpochTrainer, train_epochs
from phrasetool.training.epochs.learnt_parameters import ADAM, LearntParameters
from phrasetool.training.training_run import TrainingRun

STEPS = 4


@dataclass(frozen=True)
class Report:
    epoch: int
    loss: float
    development_loss: float | None
    updates: int


class Toy(EpochTrainer[Report]):
    """Goes from a point to noise around another; the losses of its development set are given."""

    def __init__(self, development=None, epochs=5, patience=None, seed=3):
        self.point = nn.Parameter(torch.full((3,), 4.0))
        self.development, self.shares = development, []
        adam = torch.optim.Adam([self.point], lr=0.1)
        super().__init__(LearntParameters({"point": self.point}, {ADAM: adam}), (seed, 1), epochs, STEPS, patience)

    def _pass(self, rng, tick):
        losses = []
        for number in range(STEPS):
            self.shares.append(self.share(number))
            loss = (self.point - torch.from_numpy(rng.standard_normal(3, np.float32))).square().mean()
            self.learnt.step(loss)
            losses.append(float(loss.detach()))
            tick(1)
        return float(np.mean(losses))

    def _report(self, loss):
        found = self.development[self.epoch - 1] if self.development else None
        return Report(self.epoch, loss, found, self.updates_done)

    def _goodness(self, report):
        return None if report["development_loss"] is None else -report["development_loss"]

    def start_errors(self):
        return {"train": StartError.of(16.0)}


def test_epochs_and_updates_are_counted_and_reported():
    toy, ticks = Toy(), []
    reports = list(toy.run(ticks.append))
    assert [(one.epoch, one.updates) for one in reports] == [(number, number * STEPS) for number in range(1, 6)]
    assert ticks == [1] * 5 * STEPS
    assert toy.shares == pytest.approx([number / (5 * STEPS) for number in range(5 * STEPS)])
    assert reports[-1].loss < reports[0].loss
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
def test_the_best_epoch_is_kept_and_patience_ends_it(losses, best, patience, epochs):
    toy, points = Toy(losses, patience=patience), []
    for _ in toy.run():
        points.append(toy.point.detach().clone())
    assert (len(points), toy.epoch, toy.best["epoch"]) == (epochs, epochs, best)
    toy.learnt.take_best()
    assert torch.equal(toy.point, points[best - 1])


@pytest.mark.parametrize("stop", [1, 3])
@pytest.mark.parametrize("losses", [None, [3.0, 2.0, 4.0, 5.0, 1.0], [1.0, 2.0, 4.0, 5.0, 3.0]])
def test_what_was_interrupted_goes_on_bit_for_bit(tmp_path, losses, stop):
    class Stop(Exception):
        pass

    def stop_there(report):
        if report.epoch == stop:
            raise Stop

    def train(name, **given):
        start = lambda: Toy(losses)  # noqa: E731
        identity = {"texts": "x", "settings": {"learning_rate": 0.1}}
        return train_epochs(TrainingRun(tmp_path / name, **given), identity, start)

    whole = train("whole")
    with pytest.raises(Stop):
        train("part", on_report=stop_there)
    part = train("part", resume=True)
    assert part.best == whole.best
    for name, value in whole.tensors().items():
        assert torch.equal(value, part.tensors()[name]), name
    logs = [(tmp_path / name / "training.jsonl").read_bytes() for name in ("whole", "part")]
    assert logs[0] == logs[1]


def test_other_seeds_draw_otherwise():
    losses = [[one.loss for one in Toy(seed=seed).run()] for seed in (3, 3, 4)]
    assert losses[0] == losses[1] != losses[2]
