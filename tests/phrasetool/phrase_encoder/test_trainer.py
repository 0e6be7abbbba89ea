import numpy as np
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.trainer import PhraseTrainer, train_model
from phrasetool.training.run import TrainingRun
from tests.phrasetool.phrase_encoder.toy_language import (
    LOSSES,
    WORDS,
    combinations,
    scorer_of,
    settings,
    some_of,
    start,
    start_of,
)


@pytest.mark.parametrize("loss", ["in-batch", "sampled", "most-informative", "syn-projection", "syn-difference", "vmf"])
def test_mean_max_learns_with_fixed_layers(pairs, loss):
    """With trained layers, co-training would make all phrase vectors alike within one iteration."""
    held_out = np.arange(0, len(pairs), 5)
    training_rows = np.setdiff1d(np.arange(len(pairs)), held_out)
    chosen = TrainingSettings.for_loss(loss, "mean-max", dimension=48, word_units=24, batch_size=32)
    rng = np.random.default_rng(3)
    shape = WORDS + 1, 24
    initial = [
        chosen.kind.initial(rng.normal(0, chosen.vector_scale, shape).astype(np.float32), 48, "normal", rng)
        for _ in range(2)
    ]
    trainer = PhraseTrainer(some_of(pairs, training_rows), chosen, *initial)
    list(trainer.run())
    for before, after in zip(initial, trainer.parameters(), strict=True):
        for name, array in before.arrays().items():
            learns = name in ("word_vectors", "end", "transform", "transform_bias")
            assert np.array_equal(array, after.arrays()[name]) is not learns, name
    quality = evaluate_pairs(
        scorer_of(trainer), pairs.sources.select(held_out), pairs.targets.select(held_out), WORDS + 1, candidates=100
    )
    assert quality.accuracy_at_1 > 0.3
    assert quality.auc_other_targets > 0.9


def test_pretraining_lowers_the_reconstruction_error_only(pairs):
    trainer = PhraseTrainer(pairs, settings("in-batch", pretrain_iterations=5, iterations=0), *start())
    transform = start()[0].transform
    reports = list(trainer.run())
    assert [report.phase for report in reports] == ["pretrain"] * 5
    assert reports[-1].reconstruction_error < reports[0].reconstruction_error
    assert reports[0].semantic_error is None
    np.testing.assert_array_equal(trainer.parameters()[0].transform, transform)


@combinations
def test_a_seed_fixes_everything(pairs, loss, encoder):
    pairs, runs = some_of(pairs, np.arange(150)), []
    for seed in (1, 1, 2):
        chosen = settings(loss, encoder, seed=seed, iterations=2)
        trainer = PhraseTrainer(pairs, chosen, *start_of(chosen))
        reports = list(trainer.run())
        runs.append((reports, trainer.parameters()[1].transform))
    assert runs[0][0] == runs[1][0]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert (runs[0][1] != runs[2][1]).any()


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns_the_toy_language(pairs, loss):
    changes = {"learning_rate": 0.01, "iterations": 20, "optimizer": "adam", "schedule": "linear", "batch_size": 32}
    off = dict.fromkeys(("lambda_words", "lambda_rec", "lambda_sem"), 0.0)
    chosen = settings(loss, pretrain_iterations=0, alpha=0.1, **changes, **off)
    rng = np.random.default_rng(3)
    vectors = [rng.normal(0, 0.3, (WORDS + 1, 16)).astype(np.float32) for _ in range(2)]
    trainer = PhraseTrainer(pairs, chosen, *(chosen.kind.initial(side, 16, "averaging", rng) for side in vectors))
    before = evaluate_pairs(scorer_of(trainer), pairs.sources, pairs.targets, WORDS + 1, candidates=100)
    for _ in trainer.run():
        pass
    after = evaluate_pairs(scorer_of(trainer), pairs.sources, pairs.targets, WORDS + 1, candidates=100)
    assert before.accuracy_at_1 < 0.1
    assert after.accuracy_at_1 > 0.3


def test_the_mean_max_encoder_learns_the_toy_language(pairs):
    chosen = settings("in-batch", "mean-max", dimension=32, iterations=25, dropout=0.0, vector_scale=0.3)
    trainer = PhraseTrainer(pairs, chosen, *start_of(chosen))
    reports = list(trainer.run())
    assert reports[-1].semantic_error < reports[0].semantic_error / 1.5
    quality = evaluate_pairs(scorer_of(trainer), pairs.sources, pairs.targets, WORDS + 1, candidates=100)
    assert quality.accuracy_at_1 > 0.3


@pytest.mark.parametrize("encoder", list(ENCODERS))
@pytest.mark.parametrize("loss", ["in-batch", "max-margin", "sampled"])
def test_frozen_encoders_do_not_change(pairs, loss, encoder):
    pairs = some_of(pairs, np.arange(150))
    # A mean, whose word vectors are fixed, has nothing to freeze.
    chosen = settings(loss, encoder, freeze_encoders=encoder != "mean", learning_rate=0.02)
    before = start_of(chosen)
    trainer = PhraseTrainer(pairs, chosen, *before)
    reports = list(trainer.run())
    assert reports[-1].joint_error < reports[0].joint_error
    for old, new in zip(before, trainer.parameters(), strict=True):
        for name, array in old.arrays().items():
            assert (new.arrays()[name] != array).any() == name.startswith("transform"), name


@combinations
def test_one_iteration_of_every_loss_and_encoder_can_be_stored_and_scores(pairs, loss, encoder, tmp_path):
    pairs = some_of(pairs, np.arange(100))
    chosen = settings(loss, encoder, iterations=1)
    before = start_of(chosen)
    trained = train_model(pairs, chosen, lambda: before, TrainingRun(tmp_path))
    loaded = load_saved_model(tmp_path)
    assert loaded.identity == trained.identity
    assert loaded.kind == chosen.kind
    learning = set(before[0].arrays())
    if chosen.encoder_options.get("layers") == "fixed":
        learning = {"word_vectors", "end", "transform", "transform_bias"}
    if getattr(chosen.kind, "fixed_words", False):
        learning -= {"word_vectors"}
    for name in learning:
        assert (trained.source.arrays()[name] != before[0].arrays()[name]).any(), name
    scores = loaded.scorer().score_pairs(pairs.sources, pairs.targets)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 1


def test_divergence_is_reported(pairs, tmp_path):
    chosen = settings("in-batch", learning_rate=1e30, optimizer="sgd", pretrain_iterations=0)
    with pytest.raises(
        PhraseToolError,
        match=r"diverged in iteration 1: .* is nan; nothing was saved; .*smaller learning rate than 1e\+30",
    ):
        train_model(pairs, chosen, start, TrainingRun(tmp_path))
