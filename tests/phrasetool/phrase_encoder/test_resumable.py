import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from phrasetool.errors import ModelError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.trainer import PhraseTrainer, train_model
from phrasetool.training import loop
from phrasetool.training.data import held_out_rare_pairs
from phrasetool.training.run import CHECKPOINT, TrainingRun
from tests.phrasetool.phrase_encoder.toy_language import (
    COMBINATIONS,
    WORDS,
    settings,
    some_of,
    start,
    start_of,
)

# A recursive autoencoder is pre-trained for two iterations with any loss, and then trained for three.
STOPS = [
    *((loss, encoder, 3 if encoder == "rae" else 2) for loss, encoder in COMBINATIONS),
    ("in-batch", "rae", 1),
    ("in-batch", "rae", 2),
    ("in-batch", "mean-max", 1),
    ("in-batch", "mean-max", 3),
]


@pytest.mark.parametrize(("loss", "encoder", "stop_after"), STOPS)
def test_resuming_gives_the_same_model_as_never_stopping(pairs, loss, encoder, stop_after, tmp_path):
    class StopHere(Exception):
        pass

    pairs = some_of(pairs, np.arange(150))
    chosen = settings(loss, encoder, learning_rate=0.02, iterations=3)
    whole = train_model(pairs, chosen, lambda: start_of(chosen), TrainingRun(tmp_path / "whole"))
    recorded = []

    def stop(report):
        recorded.append(report)
        if len(recorded) == stop_after:
            raise StopHere

    with pytest.raises(StopHere):
        train_model(pairs, chosen, lambda: start_of(chosen), TrainingRun(tmp_path / "parts", on_report=stop))
    assert (tmp_path / "parts" / "checkpoint.safetensors").is_file()
    resumed = train_model(
        pairs, chosen, lambda: pytest.fail("must not start anew"), TrainingRun(tmp_path / "parts", resume=True)
    )
    assert resumed.identity == whole.identity
    assert (tmp_path / "parts" / "training.jsonl").read_bytes() == (tmp_path / "whole" / "training.jsonl").read_bytes()
    assert not (tmp_path / "parts" / "checkpoint.safetensors").exists()
    assert load_saved_model(tmp_path / "parts").identity == whole.identity


@pytest.mark.parametrize(("patience", "left"), [(1, 0), (3, 0), (3, 1)])
def test_resuming_after_a_local_minimum_keeps_the_parameters_that_reached_it(
    pairs, patience, left, tmp_path, monkeypatch
):  # fmt: skip
    swinging = [9, 5, 4, 4.5, 3, 3.5, 3.2, 3.1, 2]
    monkeypatch.setattr(PhraseTrainer, "_joint", lambda self, reconstruction, semantic: swinging[self.iteration])
    chosen = settings("max-margin", iterations=25, patience=patience, pretrain_iterations=0)
    history = []
    whole = train_model(pairs, chosen, start, TrainingRun(tmp_path / "whole", on_report=history.append))
    errors = [report.joint_error for report in history]
    assert len(history) < 8
    assert errors.index(min(errors)) == len(errors) - 1 - patience
    recorded = []

    def stop(report):
        recorded.append(report)
        if len(recorded) == len(history) - left:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_model(pairs, chosen, start, TrainingRun(tmp_path / "parts", on_report=stop))
    resumed = train_model(
        pairs, chosen, lambda: pytest.fail("must not start anew"), TrainingRun(tmp_path / "parts", resume=True)
    )
    assert resumed.identity == whole.identity
    best = train_model(
        pairs, replace(chosen, iterations=len(history) - patience), start, TrainingRun(tmp_path / "best")
    )
    assert best.identity == whole.identity


def test_the_log_has_one_line_per_iteration(pairs, tmp_path):
    train_model(pairs, settings("max-margin"), start, TrainingRun(tmp_path))
    lines = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in lines[:3]] == ["pretrain", "pretrain", "train"]
    names = {"phase", "iteration", "reconstruction_error", "semantic_error", "joint_error", "accuracy_at_1", "auc"}
    assert names == set(lines[0])
    assert lines[-1]["auc"] is None


@pytest.mark.parametrize("loss", ["in-batch", "max-margin"])
def test_the_logged_quality_is_that_of_held_out_pairs(pairs, loss, tmp_path):
    chosen = settings(loss, held_out=0.2)
    is_held_out = held_out_rare_pairs(pairs, 0.2, chosen.seed)
    assert is_held_out.sum() >= 50
    model = train_model(pairs, chosen, start, TrainingRun(tmp_path / "held"))
    rest = pairs.select(np.flatnonzero(~is_held_out))
    without = train_model(rest, settings(loss, held_out=0), start, TrainingRun(tmp_path / "rest"))
    assert model.identity == without.identity
    assert model.training["pairs"] == len(rest)
    lines = [json.loads(line) for line in (tmp_path / "held" / "training.jsonl").read_text().splitlines()]
    assert [line["auc"] is None for line in lines] == [line["phase"] == "pretrain" for line in lines]
    unseen = pairs.select(np.flatnonzero(is_held_out))
    quality = evaluate_pairs(model.scorer(), unseen.sources, unseen.targets, WORDS + 1, seed=chosen.seed)
    trained = [line for line in lines if line["phase"] == "train"]
    best = min(trained, key=lambda line: line["joint_error"]) if loss == "max-margin" else lines[-1]
    assert (best["accuracy_at_1"], best["auc"]) == (quality.accuracy_at_1, quality.auc_other_targets)


def test_a_checkpoint_of_other_settings_or_pairs_is_refused(pairs, tmp_path):
    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_model(pairs, settings("in-batch"), start, TrainingRun(tmp_path, on_report=stop))
    with pytest.raises(ModelError, match=r"cannot resume: seed was 1, not 9, learning_rate was 0\.006, not 0\.1; use"):
        train_model(pairs, settings("in-batch", seed=9, learning_rate=0.1), start, TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="cannot resume: the pairs differ; use"):
        train_model(some_of(pairs, np.arange(9)), settings("in-batch"), start, TrainingRun(tmp_path, resume=True))
    (tmp_path / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(ModelError, match="damaged"):
        train_model(pairs, settings("in-batch"), start, TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="no checkpoint"):
        train_model(pairs, settings("in-batch"), start, TrainingRun(tmp_path / "nowhere", resume=True))


def test_files_of_a_killed_save_are_removed(tmp_path, monkeypatch):
    """Safetensors first writes to a file with another name in the same folder."""
    dead = tmp_path / ".checkpoint-abcd1234"
    dead.mkdir()
    (dead / ".tmpXGda6C").touch()
    folders = []

    def spied(tensors, path, metadata):
        folders.append(path.parent)
        save_file(tensors, path, metadata)

    monkeypatch.setattr(loop, "save_file", spied)
    loop.save_checkpoint(tmp_path, {"a": torch.zeros(2)}, {})
    assert folders[0].parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]
    assert torch.equal(loop.load_checkpoint(tmp_path)[0]["a"], torch.zeros(2))
