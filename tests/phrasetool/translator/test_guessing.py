import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from phrasetool.phrases import Phrases
from phrasetool.translator.guessing import _worth, fault_of_guessing
from phrasetool.translator.likelihood import pair_scores
from phrasetool.translator.training import NeuralTrainer
from tests.phrasetool.translator.small_pairs import prepared


@pytest.fixture(params=["syn-projection", "cross-entropy"])
def trainer(request):
    return NeuralTrainer(*prepared(300, 600, loss=request.param, epochs=2))


def test_a_translator_that_learnt_is_better_than_guessing(trainer):
    before = trainer.module.eval()
    assert fault_of_guessing(before, trainer.development, 1).startswith("it tells sentences from others")
    list(trainer.run())
    assert fault_of_guessing(trainer.kept(), trainer.development, 1) is None


def test_one_that_reads_nothing_is_not(trainer):
    list(trainer.run())
    with torch.no_grad():
        trainer.module.words.zero_()
    pairs = trainer.development
    # A length is something to be known by.
    same = np.flatnonzero(pairs.sources.lengths == 4)
    pairs = replace(pairs, sources=pairs.sources.select(same), targets=pairs.targets.select(same))
    fault = fault_of_guessing(trainer.module.eval(), pairs, 1)
    assert fault.endswith(", that of guessing is 0.5")
    auc = float(fault.split("AUC ")[1].split(",")[0])
    assert auc < 0.55


def test_few_pairs_say_nothing(trainer):
    assert fault_of_guessing(trainer.module.eval(), prepared(50, 40)[1], 1) is None


def test_worth_is_that_of_a_word(trainer):
    module = trainer.module.eval()
    pairs = trainer.development
    sources, targets = pairs.sources.part(0, 70), pairs.targets.part(0, 70)
    continuous = module.architecture.continuous
    expected = []
    for i in range(70):
        one = Phrases.from_lists([sources[i].tolist()]), Phrases.from_lists([targets[i].tolist()])
        # At temperature 1 a density is a cosine less one.
        reading = "density" if continuous else "normalised"
        (score,) = pair_scores(module, *one, np.zeros(1, np.int64), reading, 1.0)
        expected.append(score / (len(targets[i]) + 1) + continuous)
    found = _worth(module, sources, targets)
    assert found == pytest.approx(expected, abs=1e-5)
    assert all(map(math.isfinite, found))
