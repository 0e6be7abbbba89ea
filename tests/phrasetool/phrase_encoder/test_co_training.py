import numpy as np
import pytest

from phrasetool.phrase_encoder.trainer import PhraseTrainer
from tests.phrasetool.phrase_encoder.toy_language import settings, some_of, start, start_of

# The joint error before the first iteration and after each iteration.
SWINGING = [9, 5, 4, 4.5, 3, 3.5, 3.2, 3.1, 2]


def test_max_margin_lowers_the_joint_error(pairs):
    trainer = PhraseTrainer(pairs, settings("max-margin", iterations=6), *start())
    errors = [report.joint_error for report in trainer.run() if report.phase == "train"]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(
    ("patience", "iterations", "last", "best"), [(1, 25, 3, 2), (3, 25, 7, 4), (4, 8, 8, 8), (9, 6, 6, 4)]
)
def test_training_stops_at_a_local_minimum_with_its_parameters(
    pairs, patience, iterations, last, best, monkeypatch
):  # fmt: skip
    monkeypatch.setattr(PhraseTrainer, "_joint", lambda self, reconstruction, semantic: SWINGING[self.iteration])
    chosen = settings("max-margin", iterations=iterations, patience=patience, pretrain_iterations=0)
    trainer = PhraseTrainer(some_of(pairs, np.arange(40)), chosen, *start())
    transforms = [trainer.parameters()[0].transform for _ in trainer.run()]
    assert len(transforms) == last
    np.testing.assert_array_equal(trainer.parameters()[0].transform, transforms[best - 1])


def test_dropout_is_for_updates_only(pairs):
    pairs = some_of(pairs, np.arange(100))
    collected = {}
    for dropout in (0.0, 0.6):
        chosen = settings("sampled", "mean-max", dropout=dropout, unknown_rate=0.0, learning_rate=1e-20, iterations=1)
        trainer = PhraseTrainer(pairs, chosen, *start_of(chosen))
        collected[dropout] = [report.semantic_error for report in trainer.run()]
    # The step is so small that nothing changes, and the errors are measured afterwards, without dropout.
    assert collected[0.0] == collected[0.6]
