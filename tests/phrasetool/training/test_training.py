import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from phrasetool.encoders import ENCODERS
from phrasetool.encoders.rae.parameters import RaeParameters
from phrasetool.errors import DeviceError, ModelError, PhraseToolError
from phrasetool.models.storage import load_model
from phrasetool.objectives import OBJECTIVES
from phrasetool.phrases import Phrases
from phrasetool.retrieval import evaluate_pairs
from phrasetool.scoring.scorer import BilingualScorer
from phrasetool.training.device import choose_device
from phrasetool.training.pairs import PhrasePairs
from phrasetool.training.run import train_model
from phrasetool.training.settings import TrainingSettings, batch_size_for
from phrasetool.training.trainer import Trainer
from phrasetool.vocabulary import Vocabulary

WORDS = 30
LOSSES = tuple(OBJECTIVES)
COMBINATIONS = [(loss, encoder) for encoder in ENCODERS for loss in LOSSES]
combinations = pytest.mark.parametrize(("loss", "encoder"), COMBINATIONS)


def vocabulary(prefix):
    words = [b"<unk>"] + [b"%s%d" % (prefix, i) for i in range(WORDS)]
    return Vocabulary(words, [0] + [5] * (WORDS - 2) + [1, 1])


@pytest.fixture(scope="module")
def pairs():
    """A toy language pair: word i translates word i, and the word order is reversed."""
    rng = np.random.default_rng(0)
    sources = {tuple((1 + rng.integers(0, WORDS, length)).tolist()) for length in rng.integers(1, 5, 700)}
    sources = sorted(sources)
    return PhrasePairs(
        Phrases.from_lists(sources),
        Phrases.from_lists([phrase[::-1] for phrase in sources]),
        np.ones(len(sources), np.int64),
        vocabulary(b"f"),
        vocabulary(b"e"),
    )


def settings(loss, encoder="rae", **changes):
    base = {"dimension": 16, "iterations": 4, "batch_size": 32, "vector_scale": 0.1}
    more = {"pretrain_iterations": 2} if encoder == "rae" else {"word_units": 10, "heads": 2}
    if changes.get("freeze_encoders"):
        more.pop("pretrain_iterations", None)
    return TrainingSettings.for_loss(loss, encoder, **{**base, **more, **changes})


def start(n=16):
    rng = np.random.default_rng(3)
    return tuple(RaeParameters.random(rng.normal(0, 0.1, (WORDS + 1, n)).astype(np.float32), rng) for _ in range(2))


def start_of(chosen):
    """Parameters to start from, of the encoder that was chosen."""
    rng = np.random.default_rng(3)
    shape = WORDS + 1, chosen.kind.word_dimension(chosen.dimension)
    vectors = [rng.normal(0, 0.1, shape).astype(np.float32) for _ in range(2)]
    return tuple(chosen.kind.initial(side, chosen.dimension, "normal", rng) for side in vectors)


def some_of(pairs, index):
    return PhrasePairs(
        pairs.sources.select(index), pairs.targets.select(index), pairs.counts[index],
        pairs.source_vocabulary, pairs.target_vocabulary,
    )  # fmt: skip


def scorer_of(trainer):
    return BilingualScorer(*map(trainer.settings.kind.pack, trainer.parameters()))


def test_in_batch_learns_the_toy_language(pairs):
    held_out = np.arange(0, len(pairs), 5)
    seen = np.setdiff1d(np.arange(len(pairs)), held_out)
    chosen = settings("in-batch", iterations=25, pretrain_iterations=0, temperature=0.2)
    trainer = Trainer(some_of(pairs, seen), chosen, *start())
    reports = list(trainer.run())
    assert len(reports) == 25
    assert reports[-1].joint_error < reports[0].joint_error / 2
    quality = evaluate_pairs(
        scorer_of(trainer), pairs.sources.select(held_out), pairs.targets.select(held_out), WORDS + 1, candidates=100
    )
    assert quality.accuracy_at_1 > 0.5
    assert quality.auc_random_words > 0.9
    assert quality.auc_other_targets > 0.9


@pytest.mark.parametrize("loss", ["in-batch", "sampled", "most-informative", "syn-projection", "syn-difference", "vmf"])
def test_losses_teach_mean_max(pairs, loss):
    """With layers that learn, where the other language is frozen all phrases are alike after an iteration."""
    held_out = np.arange(0, len(pairs), 5)
    seen = np.setdiff1d(np.arange(len(pairs)), held_out)
    chosen = TrainingSettings.for_loss(loss, "mean-max", dimension=48, word_units=24, batch_size=32)
    rng = np.random.default_rng(3)
    shape = WORDS + 1, 24
    initial = [
        chosen.kind.initial(rng.normal(0, chosen.vector_scale, shape).astype(np.float32), 48, "normal", rng)
        for _ in range(2)
    ]
    trainer = Trainer(some_of(pairs, seen), chosen, *initial)
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


def test_layers_of_mean_max_that_learn_can_be_asked_for():
    chosen = TrainingSettings.for_loss("in-batch", "mean-max")
    assert (chosen.encoder_options["layers"], chosen.learning_rate, chosen.vectors) == ("fixed", 0.01, "centred")
    chosen = TrainingSettings.for_loss("in-batch", "mean-max", layers="trained", learning_rate=0.001)
    assert (chosen.encoder_options["layers"], chosen.learning_rate) == ("trained", 0.001)
    with pytest.raises(ValueError, match="layers is 'frozen', expected one of fixed, trained"):
        TrainingSettings.for_loss("in-batch", "mean-max", layers="frozen")


def test_max_margin_lowers_the_joint_error_and_stops_at_its_minimum(pairs):
    chosen = settings("max-margin", iterations=40, learning_rate=0.5, lambda_words=0, lambda_rec=0, lambda_sem=0)
    trainer = Trainer(pairs, chosen, *start())
    reports = [report for report in trainer.run() if report.phase == "train"]
    errors = [report.joint_error for report in reports]
    assert errors[1] < errors[0]
    if len(errors) < 40:
        assert errors[-1] > errors[-2]
        assert errors[:-1] == sorted(errors[:-1], reverse=True)


def test_pretraining_lowers_the_reconstruction_error_only(pairs):
    trainer = Trainer(pairs, settings("in-batch", pretrain_iterations=5, iterations=0), *start())
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
        trainer = Trainer(pairs, chosen, *start_of(chosen))
        reports = list(trainer.run())
        runs.append((reports, trainer.parameters()[1].word_vectors))
    assert runs[0][0] == runs[1][0]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert (runs[0][1] != runs[2][1]).any()


@combinations
@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_resuming_gives_the_same_model_as_never_stopping(pairs, loss, encoder, stop_after, tmp_path):
    class StopHere(Exception):
        pass

    pairs = some_of(pairs, np.arange(150))
    chosen = settings(loss, encoder, learning_rate=0.02, iterations=3)
    whole = train_model(pairs, chosen, lambda: start_of(chosen), tmp_path / "whole")
    done = []

    def stop(report):
        done.append(report)
        if len(done) == stop_after:
            raise StopHere

    with pytest.raises(StopHere):
        train_model(pairs, chosen, lambda: start_of(chosen), tmp_path / "parts", on_report=stop)
    assert (tmp_path / "parts" / "checkpoint.safetensors").is_file()
    resumed = train_model(pairs, chosen, lambda: pytest.fail("must not start anew"), tmp_path / "parts", resume=True)
    assert resumed.identity == whole.identity
    assert (tmp_path / "parts" / "training.jsonl").read_bytes() == (tmp_path / "whole" / "training.jsonl").read_bytes()
    assert not (tmp_path / "parts" / "checkpoint.safetensors").exists()
    assert load_model(tmp_path / "parts").identity == whole.identity


def test_resuming_after_a_local_minimum_keeps_the_parameters_that_reached_it(pairs, tmp_path):
    chosen = settings("max-margin", iterations=40, learning_rate=2.0, pretrain_iterations=0, lambda_words=0)
    history = []
    whole = train_model(pairs, chosen, start, tmp_path / "whole", on_report=history.append)
    assert len(history) < 40
    assert history[-1].joint_error > history[-2].joint_error
    done = []

    def stop(report):
        done.append(report)
        if len(done) == len(history):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_model(pairs, chosen, start, tmp_path / "parts", on_report=stop)
    resumed = train_model(pairs, chosen, lambda: pytest.fail("must not start anew"), tmp_path / "parts", resume=True)
    assert resumed.identity == whole.identity
    best = train_model(pairs, replace(chosen, iterations=len(history) - 1), start, tmp_path / "best")
    assert best.identity == whole.identity


@combinations
def test_one_iteration_of_every_loss_and_encoder_can_be_stored_and_scores(pairs, loss, encoder, tmp_path):
    pairs = some_of(pairs, np.arange(100))
    chosen = settings(loss, encoder, iterations=1)
    before = start_of(chosen)
    trained = train_model(pairs, chosen, lambda: before, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.identity == trained.identity
    assert loaded.kind == chosen.kind
    learning = set(before[0].arrays())
    if chosen.encoder_options.get("layers") == "fixed":
        learning = {"word_vectors", "end", "transform", "transform_bias"}
    for name in learning:
        assert (trained.source.arrays()[name] != before[0].arrays()[name]).any(), name
    scores = loaded.scorer().score_pairs(pairs.sources, pairs.targets)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 1


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns_the_toy_language(pairs, loss):
    changes = {"learning_rate": 0.01, "iterations": 20, "optimizer": "adam", "schedule": "linear", "batch_size": 32}
    off = dict.fromkeys(("lambda_words", "lambda_rec", "lambda_sem"), 0.0)
    chosen = settings(loss, pretrain_iterations=0, alpha=0.1, **changes, **off)
    rng = np.random.default_rng(3)
    vectors = [rng.normal(0, 0.3, (WORDS + 1, 16)).astype(np.float32) for _ in range(2)]
    trainer = Trainer(pairs, chosen, *(chosen.kind.initial(side, 16, "averaging", rng) for side in vectors))
    before = evaluate_pairs(scorer_of(trainer), pairs.sources, pairs.targets, WORDS + 1, candidates=100)
    for _ in trainer.run():
        pass
    after = evaluate_pairs(scorer_of(trainer), pairs.sources, pairs.targets, WORDS + 1, candidates=100)
    assert before.accuracy_at_1 < 0.1
    assert after.accuracy_at_1 > 0.3


def test_the_mean_max_encoder_learns_the_toy_language(pairs):
    chosen = settings("in-batch", "mean-max", dimension=32, iterations=25, dropout=0.0, vector_scale=0.3)
    trainer = Trainer(pairs, chosen, *start_of(chosen))
    reports = list(trainer.run())
    assert reports[-1].semantic_error < reports[0].semantic_error / 1.5
    quality = evaluate_pairs(scorer_of(trainer), pairs.sources, pairs.targets, WORDS + 1, candidates=100)
    assert quality.accuracy_at_1 > 0.3


@pytest.mark.parametrize(
    ("encoder", "dimension", "optimizer", "share"),
    [
        ("rae", 20, "adam", 1), ("rae", 50, "adam", 1), ("rae", 80, "adam", 50 / 80), ("rae", 80, "sgd", 1),
        ("mean-max", 512, "adam", 1), ("mean-max", 1024, "adam", 0.5),
    ],
)  # fmt: skip
def test_above_the_default_dimension_matrices_take_smaller_steps_of_adam(encoder, dimension, optimizer, share):
    chosen = TrainingSettings.for_loss("in-batch", encoder, dimension=dimension, optimizer=optimizer)
    assert chosen.matrix_steps == share


@pytest.mark.parametrize("dimension", [50, 100])
def test_words_and_matrices_take_the_steps_that_the_settings_say(pairs, dimension):
    # The first step of Adam moves every weight that has a gradient by the step size.
    pairs = some_of(pairs, np.arange(60))
    chosen = settings("in-batch", dimension=dimension, pretrain_iterations=0, batch_size=60, iterations=2)
    before = start(dimension)
    trainer = Trainer(pairs, chosen, *before)
    next(trainer.run())
    for old, new in zip(before, trainer.parameters(), strict=True):
        moved = {name: np.abs(array - old.arrays()[name]).max() for name, array in new.arrays().items()}
        assert moved["word_vectors"] == pytest.approx(0.006, rel=1e-3)
        for name in ("compose", "compose_bias", "transform", "transform_bias"):
            assert moved[name] == pytest.approx(0.006 * 50 / dimension, rel=1e-3)


@pytest.mark.parametrize("encoder", list(ENCODERS))
@pytest.mark.parametrize("loss", ["in-batch", "max-margin", "sampled"])
def test_frozen_encoders_stay_as_they_are(pairs, loss, encoder):
    pairs = some_of(pairs, np.arange(150))
    chosen = settings(loss, encoder, freeze_encoders=True, learning_rate=0.02)
    before = start_of(chosen)
    trainer = Trainer(pairs, chosen, *before)
    reports = list(trainer.run())
    assert reports[-1].joint_error < reports[0].joint_error
    for old, new in zip(before, trainer.parameters(), strict=True):
        for name, array in old.arrays().items():
            assert (new.arrays()[name] != array).any() == name.startswith("transform"), name


def test_dropout_is_for_updates_only(pairs):
    pairs = some_of(pairs, np.arange(100))
    found = {}
    for dropout in (0.0, 0.6):
        chosen = settings("sampled", "mean-max", dropout=dropout, unknown_rate=0.0, learning_rate=1e-20, iterations=1)
        trainer = Trainer(pairs, chosen, *start_of(chosen))
        found[dropout] = [report.semantic_error for report in trainer.run()]
    # The step is so small that nothing changes; what is measured afterwards is measured without dropout.
    assert found[0.0] == found[0.6]


def test_training_that_diverges_says_so(pairs, tmp_path):
    chosen = settings("in-batch", learning_rate=1e30, optimizer="sgd", pretrain_iterations=0)
    with pytest.raises(PhraseToolError, match=r"diverged in iteration 1 .*smaller learning rate than 1e\+30"):
        train_model(pairs, chosen, start, tmp_path)


def test_the_log_has_a_line_an_iteration(pairs, tmp_path):
    train_model(pairs, settings("max-margin"), start, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in lines[:3]] == ["pretrain", "pretrain", "train"]
    assert {"phase", "iteration", "reconstruction_error", "semantic_error", "joint_error"} == set(lines[0])


def test_a_checkpoint_of_other_settings_or_pairs_is_refused(pairs, tmp_path):
    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_model(pairs, settings("in-batch"), start, tmp_path, on_report=stop)
    with pytest.raises(ModelError, match="other settings"):
        train_model(pairs, settings("in-batch", seed=9), start, tmp_path, resume=True)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(ModelError, match="damaged"):
        train_model(pairs, settings("in-batch"), start, tmp_path, resume=True)
    with pytest.raises(ModelError, match="no checkpoint"):
        train_model(pairs, settings("in-batch"), start, tmp_path / "nowhere", resume=True)


def test_torch_and_kernels_train_alike(pairs):
    ends = []
    for force_torch in (False, True):
        trainer = Trainer(pairs, settings("in-batch", iterations=1, pretrain_iterations=0), *start())
        for side in trainer._sides:
            side.module.force_torch = force_torch
        ends.append([report.joint_error for report in trainer.run()])
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)


def test_unknown_devices_and_absent_ones_are_errors():
    with pytest.raises(DeviceError, match="expected cpu, cuda or auto"):
        choose_device("quantum")
    assert choose_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        assert choose_device("auto").type == "cpu"
        with pytest.raises(DeviceError, match="no usable GPU"):
            choose_device("cuda")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "hinge"),
        ("encoder", "bag"),
        ("alpha", 1.5),
        ("batch_size", 0),
        ("learning_rate", -1),
        ("schedule", "cosine"),
        ("dimension", "50"),
        ("iterations", 2.5),
        ("alpha", float("nan")),
        ("seed", -1),
    ],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        TrainingSettings(**{name: value})


def test_the_papers_values_are_the_defaults_of_max_margin():
    s = TrainingSettings.for_loss("max-margin")
    assert (s.alpha, s.learning_rate, s.iterations, s.loss_options) == (0.15, 0.01, 25, {"margin": 1.0})
    assert (s.lambda_words, s.lambda_rec, s.lambda_sem, s.optimizer) == (1e-2, 1e-3, 1e-3, "sgd")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"margin": 1.0}, "margin belongs to the losses max-margin, sampled, .*; the loss in-batch takes temperature"),
        ({"heads": 2}, "heads belongs to the encoder mean-max; .*the encoder rae takes no options"),
        ({"width": 2}, "unknown setting width"),
        ({"temperature": "hot"}, "temperature is 'hot', expected a finite number"),
        ({"encoder": "mean-max", "dimension": 31}, "even dimension"),
        ({"encoder": "mean-max", "dimension": 32, "heads": 3}, "3 heads cannot share 16 .*heads can be 1, 2, 4, 8, 16"),
        ({"encoder": "mean-max", "alpha": 0.1}, "alpha is 0.1, expected 0: the encoder mean-max does not reconstruct"),
        ({"encoder": "mean-max", "pretrain_iterations": 1}, "pretrain_iterations is 1, expected 0"),
        ({"freeze_encoders": True, "alpha": 0.1}, "frozen encoders do not learn to reconstruct"),
    ],
)
def test_combinations_that_do_not_work_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings.for_loss("in-batch", **changes)


def test_own_defaults_yield_to_those_of_loss_and_encoder_and_all_to_what_is_given():
    s = TrainingSettings.for_loss("max-margin", "mean-max", heads=2, margin=0.5, batch_size=8)
    assert (s.optimizer, s.schedule, s.alpha, s.pretrain_iterations) == ("adam", "constant", 0.0, 0)
    assert (s.dimension, s.batch_size, s.lambda_words) == (512, 8, 0.01)
    assert s.loss_options == {"margin": 0.5}
    own = {"word_units": 128, "heads": 2, "feed_forward": 0, "dropout": 0.0, "layers": "fixed"}
    assert s.encoder_options == own
    assert TrainingSettings.for_loss("max-margin", freeze_encoders=True).alpha == 0


def test_settings_are_one_flat_table():
    table = TrainingSettings.for_loss("sampled", "mean-max", negatives=3).as_dict()
    assert (table["loss"], table["encoder"], table["negatives"], table["heads"]) == ("sampled", "mean-max", 3, 4)
    assert not {"loss_options", "encoder_options"} & set(table)
    json.dumps(table)


def test_batches_of_small_sets_are_small():
    assert [batch_size_for(n) for n in (10, 2000, 3000, 8000, 16384, 10**6)] == [32, 32, 64, 128, 512, 512]


def test_merging_adds_counts_and_keeps_the_order():
    sources, targets = [[1], [1, 2], [1], [3]], [[2, 3], [3], [2, 3], [2, 3]]
    pairs = Phrases.from_lists(sources), Phrases.from_lists(targets)
    merged = PhrasePairs(*pairs, np.array([1, 2, 4, 8]), vocabulary(b"f"), vocabulary(b"e")).merged()
    assert [phrase.tolist() for phrase in merged.sources] == [[1], [1, 2], [3]]
    assert merged.counts.tolist() == [5, 2, 8]
