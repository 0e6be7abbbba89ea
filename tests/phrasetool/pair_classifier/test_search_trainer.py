import numpy as np
import pytest

from phrasetool.pair_classifier.search_trainer import SearchTrainer
from phrasetool.pair_classifier.search_vectors import SearchVectors
from phrasetool.pair_classifier.settings import ParallelSettings
from phrasetool.phrases import Phrases
from phrasetool.train.text_pairs import TextPairs
from tests.parallel_models import WORDS, toy_pairs

SETTINGS = ParallelSettings(search_units=32, search_epochs=20)


def accuracy(trainer, texts):
    vectors = SearchVectors(trainer.vectors())
    sides = (texts.sources, texts.source_words), (texts.targets, texts.target_words)
    sources, targets = (vectors.encode(*side) for side in sides)
    nearest = np.argmax(sources @ targets.T, 1)
    return np.mean([sorted(texts.targets[i]) == sorted(texts.targets[j]) for i, j in enumerate(nearest)])


def test_translations_come_near_each_other():
    trainer, held_out = SearchTrainer(toy_pairs(400), SETTINGS), toy_pairs(50, 2)
    before = accuracy(trainer, held_out)
    losses = [report.loss for report in trainer.run()]
    assert losses[-1] < losses[0] / 2
    assert before < 0.2
    assert accuracy(trainer, held_out) > 0.9


def test_a_seed_fixes_all_and_another_changes_it():
    made = []
    for seed in (1, 1, 2):
        trainer = SearchTrainer(toy_pairs(40), ParallelSettings(search_units=4, search_epochs=1, seed=seed))
        assert [report.epoch for report in trainer.run()] == [1]
        made.append(trainer.vectors())
    np.testing.assert_array_equal(made[0], made[1])
    assert (made[0] != made[2]).any()


def test_repeated_pairs_are_no_wrong_ones():
    texts = Phrases.from_lists([[0, 1]] * 8)
    first, *_ = SearchTrainer(TextPairs(texts, texts, *WORDS), SETTINGS).run()
    assert first.loss == pytest.approx(0.0, abs=1e-6)
