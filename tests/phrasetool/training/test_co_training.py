import numpy as np
import pytest

from phrasetool.training.trainer import Trainer
from tests.phrasetool.training.toy_language import settings, some_of, start, start_of


@pytest.mark.parametrize("patience", [1, 3])
def test_max_margin_lowers_the_joint_error_and_stops_at_its_minimum(pairs, patience):
    trainer = Trainer(pairs, settings("max-margin", iterations=60, patience=patience), *start())
    errors = []
    for report in trainer.run():
        if report.phase == "train":
            errors.append(report.joint_error)
            if report.joint_error == min(errors):
                best = trainer.parameters()
    assert min(errors) < 0.8 * errors[0]
    assert len(errors) < 60
    assert errors.index(min(errors)) == len(errors) - 1 - patience
    for one, other in zip(best, trainer.parameters(), strict=True):
        np.testing.assert_array_equal(one.word_vectors, other.word_vectors)


def test_the_last_iteration_yields_the_best_parameters_too(pairs):
    chosen = settings("max-margin", iterations=60, patience=1)
    errors = [report.joint_error for report in Trainer(pairs, chosen, *start()).run() if report.phase == "train"]
    ends = []
    for iterations in (len(errors) - 1, len(errors)):
        trainer = Trainer(pairs, settings("max-margin", iterations=iterations, patience=9), *start())
        list(trainer.run())
        ends.append(trainer.parameters()[0].transform)
    np.testing.assert_array_equal(*ends)


def test_dropout_is_for_updates_only(pairs):
    pairs = some_of(pairs, np.arange(100))
    found = {}
    for dropout in (0.0, 0.6):
        chosen = settings("sampled", "mean-max", dropout=dropout, unknown_rate=0.0, learning_rate=1e-20, iterations=1)
        trainer = Trainer(pairs, chosen, *start_of(chosen))
        found[dropout] = [report.semantic_error for report in trainer.run()]
    # The step is so small that nothing changes; what is measured afterwards is measured without dropout.
    assert found[0.0] == found[0.6]
