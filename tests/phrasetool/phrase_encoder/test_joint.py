import numpy as np

from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.trainer import PhraseTrainer
from tests.phrasetool.phrase_encoder.toy_language import WORDS, scorer_of, settings, some_of, start


def test_in_batch_learns_the_toy_language(pairs):
    held_out = np.arange(0, len(pairs), 5)
    training_rows = np.setdiff1d(np.arange(len(pairs)), held_out)
    chosen = settings("in-batch", iterations=25, pretrain_iterations=0, temperature=0.2)
    trainer = PhraseTrainer(some_of(pairs, training_rows), chosen, *start())
    reports = list(trainer.run())
    assert len(reports) == 25
    assert reports[-1].joint_error < reports[0].joint_error / 2
    quality = evaluate_pairs(
        scorer_of(trainer), pairs.sources.select(held_out), pairs.targets.select(held_out), WORDS + 1, candidates=100
    )
    assert quality.accuracy_at_1 > 0.5
    assert quality.auc_random_words > 0.9
    assert quality.auc_other_targets > 0.9
