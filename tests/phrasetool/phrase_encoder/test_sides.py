import numpy as np
import pytest

from phrasetool.phrase_encoder.trainer import PhraseTrainer
from tests.phrasetool.phrase_encoder.toy_language import settings, some_of, start


@pytest.mark.parametrize("dimension", [50, 100])
def test_first_steps_of_words_and_matrices_have_the_size_of_the_settings(pairs, dimension):
    # The first step of Adam moves every weight that has a gradient by the step size.
    pairs = some_of(pairs, np.arange(60))
    chosen = settings("in-batch", dimension=dimension, pretrain_iterations=0, batch_size=60, iterations=2)
    before = start(dimension)
    trainer = PhraseTrainer(pairs, chosen, *before)
    next(trainer.run())
    for old, new in zip(before, trainer.parameters(), strict=True):
        moved = {name: np.abs(array - old.arrays()[name]).max() for name, array in new.arrays().items()}
        assert moved["word_vectors"] == pytest.approx(0.006, rel=1e-3)
        for name in ("compose", "compose_bias", "transform", "transform_bias"):
            assert moved[name] == pytest.approx(0.006 * 50 / dimension, rel=1e-3)


def test_torch_and_kernels_train_alike(pairs):
    errors = []
    for force_torch in (False, True):
        trainer = PhraseTrainer(pairs, settings("in-batch", iterations=1, pretrain_iterations=0), *start())
        for side in trainer._sides:
            side.module.force_torch = force_torch
        errors.append([report.joint_error for report in trainer.run()])
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)
