import json

import numpy as np
import pytest
import torch

from phrasetool.encoders.rae import RaeParameters
from phrasetool.errors import DeviceError, ModelError
from phrasetool.evaluation import evaluate_pairs
from phrasetool.models.storage import load_model
from phrasetool.phrases import Phrases
from phrasetool.training.pairs import PhrasePairs
from phrasetool.training.run import train_model
from phrasetool.training.settings import LOSSES, TrainingSettings, batch_size_for
from phrasetool.training.trainer import Trainer, choose_device
from phrasetool.vocabulary import Vocabulary

WORDS = 30


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


def settings(loss, **changes):
    base = {"dimension": 16, "iterations": 4, "pretrain_iterations": 2, "batch_size": 32, "vector_scale": 0.1}
    return TrainingSettings.for_loss(loss, **{**base, **changes})


def start(n=16):
    rng = np.random.default_rng(3)
    return tuple(RaeParameters.random(rng.normal(0, 0.1, (WORDS + 1, n)).astype(np.float32), rng) for _ in range(2))


def test_in_batch_learns_the_toy_language(pairs):
    held_out = np.arange(0, len(pairs), 5)
    seen = np.setdiff1d(np.arange(len(pairs)), held_out)
    some = PhrasePairs(
        pairs.sources.select(seen), pairs.targets.select(seen), pairs.counts[seen],
        pairs.source_vocabulary, pairs.target_vocabulary,
    )  # fmt: skip
    trainer = Trainer(some, settings("in-batch", iterations=25, pretrain_iterations=0, temperature=0.2), *start())
    reports = list(trainer.run())
    assert len(reports) == 25
    assert reports[-1].joint_error < reports[0].joint_error / 2
    from phrasetool.scoring.scorer import BilingualScorer

    scorer = BilingualScorer(*trainer.parameters())
    quality = evaluate_pairs(
        scorer, pairs.sources.select(held_out), pairs.targets.select(held_out), WORDS + 1, candidates=100
    )
    assert quality.accuracy_at_1 > 0.5
    assert quality.auc_random_words > 0.9
    assert quality.auc_other_targets > 0.9


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


@pytest.mark.parametrize("loss", LOSSES)
def test_a_seed_fixes_everything(pairs, loss):
    runs = []
    for seed in (1, 1, 2):
        trainer = Trainer(pairs, settings(loss, seed=seed), *start())
        reports = list(trainer.run())
        runs.append((reports, trainer.parameters()[1].word_vectors))
    assert runs[0][0] == runs[1][0]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert (runs[0][1] != runs[2][1]).any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("stop_after", [1, 2, 4])
def test_resuming_gives_the_same_model_as_never_stopping(pairs, loss, stop_after, tmp_path):
    class StopHere(Exception):
        pass

    chosen = settings(loss, learning_rate=0.02)
    whole = train_model(pairs, chosen, start, tmp_path / "whole")
    done = []

    def stop(report):
        done.append(report)
        if len(done) == stop_after:
            raise StopHere

    with pytest.raises(StopHere):
        train_model(pairs, chosen, start, tmp_path / "parts", on_report=stop)
    assert (tmp_path / "parts" / "checkpoint.safetensors").is_file()
    resumed = train_model(pairs, chosen, lambda: pytest.fail("must not start anew"), tmp_path / "parts", resume=True)
    assert resumed.identity == whole.identity
    assert (tmp_path / "parts" / "training.jsonl").read_bytes() == (tmp_path / "whole" / "training.jsonl").read_bytes()
    assert not (tmp_path / "parts" / "checkpoint.safetensors").exists()
    assert load_model(tmp_path / "parts").identity == whole.identity


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
    [("loss", "hinge"), ("alpha", 1.5), ("batch_size", 0), ("learning_rate", -1), ("schedule", "cosine")],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        TrainingSettings(**{name: value})


def test_the_papers_values_are_the_defaults_of_max_margin():
    s = TrainingSettings.for_loss("max-margin")
    assert (s.alpha, s.learning_rate, s.iterations, s.margin) == (0.15, 0.01, 25, 1.0)
    assert (s.lambda_words, s.lambda_rec, s.lambda_sem, s.optimizer) == (1e-2, 1e-3, 1e-3, "sgd")


def test_batches_of_small_sets_are_small():
    assert [batch_size_for(n) for n in (10, 2000, 3000, 8000, 16384, 10**6)] == [32, 32, 64, 128, 512, 512]


def test_merging_adds_counts_and_keeps_the_order():
    sources, targets = [[1], [1, 2], [1], [3]], [[2, 3], [3], [2, 3], [2, 3]]
    pairs = Phrases.from_lists(sources), Phrases.from_lists(targets)
    merged = PhrasePairs(*pairs, np.array([1, 2, 4, 8]), vocabulary(b"f"), vocabulary(b"e")).merged()
    assert [phrase.tolist() for phrase in merged.sources] == [[1], [1, 2], [3]]
    assert merged.counts.tolist() == [5, 2, 8]
