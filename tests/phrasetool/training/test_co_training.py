import numpy as np

from phrasetool.training.trainer import Trainer
from tests.phrasetool.training.toy_language import settings, some_of, start, start_of


def test_max_margin_lowers_the_joint_error_and_stops_at_its_minimum(pairs):
    chosen = settings("max-margin", iterations=40, learning_rate=0.5, lambda_words=0, lambda_rec=0, lambda_sem=0)
    trainer = Trainer(pairs, chosen, *start())
    reports = [report for report in trainer.run() if report.phase == "train"]
    errors = [report.joint_error for report in reports]
    assert errors[1] < errors[0]
    if len(errors) < 40:
        assert errors[-1] > errors[-2]
        assert errors[:-1] == sorted(errors[:-1], reverse=True)


def test_dropout_is_for_updates_only(pairs):
    pairs = some_of(pairs, np.arange(100))
    found = {}
    for dropout in (0.0, 0.6):
        chosen = settings("sampled", "mean-max", dropout=dropout, unknown_rate=0.0, learning_rate=1e-20, iterations=1)
        trainer = Trainer(pairs, chosen, *start_of(chosen))
        found[dropout] = [report.semantic_error for report in trainer.run()]
    # The step is so small that nothing changes; what is measured afterwards is measured without dropout.
    assert found[0.0] == found[0.6]
