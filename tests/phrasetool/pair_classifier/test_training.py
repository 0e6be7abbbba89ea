import json

import numpy as np
import pytest

from phrasetool.disk import writable
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.pair_classifier import training as module
from phrasetool.pair_classifier.classifier_trainer import ParallelTrainer
from phrasetool.pair_classifier.fresh_classifier import fresh_classifier
from phrasetool.pair_classifier.labelled_pairs import random_pairs
from phrasetool.pair_classifier.model import ParallelModel
from phrasetool.pair_classifier.pair_quality import best_quality
from phrasetool.pair_classifier.search_trainer import SearchReport
from phrasetool.pair_classifier.settings import ParallelSettings
from phrasetool.pair_classifier.training import distinct_targets, train_parallel
from phrasetool.train.checks import DivergedError
from phrasetool.train.loop import ADAM
from phrasetool.train.run import CHECKPOINT, TrainingRun
from tests.parallel_models import FAST, WORDS, bert_folder, toy_pairs

PAIRS, DEVELOPMENT = toy_pairs(300), toy_pairs(50, 2)


class _StopError(Exception):
    pass


def settings(encoder="words", tuned=False, **options):
    return ParallelSettings.from_options({**FAST, **options}, encoder=encoder, tuned=tuned)


def lines(texts, side):
    return [b" ".join(WORDS[side][i] for i in text) for text in texts]


def test_what_is_saved(tmp_path):
    model = train_parallel(PAIRS, DEVELOPMENT, settings(), TrainingRun(tmp_path, record={"escaped": False}))
    assert not (tmp_path / CHECKPOINT).exists()
    log = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in log] == [1, 2, 3]
    again = ParallelModel.load(tmp_path)
    assert again.identity == model.identity
    training = again.training
    assert (training["escaped"], training["pairs"], training["epochs_done"]) == (False, 300, 3)
    best = max(log, key=lambda line: line["best_f1"])
    assert training["best_epoch"] == best["epoch"]
    # The threshold is of calibrated probabilities, and the best of the development set.
    labelled = random_pairs(DEVELOPMENT, 5, 1)
    sources, targets = lines(DEVELOPMENT.sources, 0), lines(DEVELOPMENT.targets, 1)
    found = again.probabilities([sources[i] for i in labelled.rows], [targets[i] for i in labelled.columns])
    quality = best_quality(found, labelled.parallel)
    assert quality.f1 == pytest.approx(best["best_f1"], abs=1e-6)
    assert again.thresholds["best"] == pytest.approx(quality.threshold, abs=1e-6)
    assert again.thresholds["half"] == 0.5
    assert 0 <= training["development"]["calibration_error"] < 0.5
    assert again.search_dimension == 16
    vectors = model.search_vectors(sources, "source")
    np.testing.assert_array_equal(again.search_vectors(sources, "source"), vectors)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_without_vectors_to_search_by_those_of_sentences_serve(tmp_path):
    model = train_parallel(PAIRS, DEVELOPMENT, settings(epochs=1, search_units=0), TrainingRun(tmp_path))
    assert (model.search, model.search_dimension) == (None, model.dimension)
    sources = lines(DEVELOPMENT.sources, 0)
    np.testing.assert_array_equal(model.search_vectors(sources, "source"), model.encode(sources, "source"))


@pytest.mark.parametrize("given", ["words", "static", "contextual"])
def test_an_interrupted_training_goes_on_bit_for_bit(tmp_path, given):
    encoder = "words" if given == "words" else f"hf:{bert_folder(tmp_path / 'bert')}"
    chosen = settings(encoder, given != "words", **({} if given == "words" else {"layer": given}))

    def stop(report):
        if report.epoch == 2:
            raise _StopError

    def stop_searching(report):
        if isinstance(report, SearchReport):
            raise _StopError

    whole = train_parallel(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "whole"))
    with pytest.raises(_StopError):
        train_parallel(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part", on_report=stop))
    with pytest.raises(ModelError, match="unfinished training"):
        train_parallel(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part"))
    with pytest.raises(_StopError):
        train_parallel(
            PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part", resume=True, on_report=stop_searching)
        )
    part = train_parallel(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part", resume=True))
    assert not (tmp_path / "part/search").exists()
    assert part.identity == whole.identity
    names = ["weights.safetensors", "training.jsonl", "config.json"]
    for file in names + ([] if given == "words" else ["encoder/model.safetensors"]):
        assert (tmp_path / "part" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_layers_of_a_tuned_encoder_take_steps_of_their_own(tmp_path):
    """A step that is right for a fresh network ruins one that was trained before."""
    folder = bert_folder(tmp_path / "bert")
    rates = {}
    for layer in ("contextual", "static"):
        chosen = settings(f"hf:{folder}", True, layer=layer, learning_rate=0.01, layers_learning_rate=0.0002)
        trainer = ParallelTrainer(PAIRS, DEVELOPMENT, fresh_classifier(PAIRS, chosen).classifier, chosen)
        groups = trainer.learnt.optimizers[ADAM].param_groups
        rates[layer] = [(group["lr"], len(group["params"])) for group in groups]
        learnt = sum(parameter.requires_grad for parameter in trainer.module.parameters())
        assert sum(count for _, count in rates[layer]) == learnt
        next(iter(trainer.run()))
        # The schedule keeps their ratio.
        now = [group["lr"] / full for group, (full, _) in zip(groups, rates[layer], strict=True)]
        assert now == pytest.approx([now[0]] * len(now))
    assert [rate for rate, _ in rates["contextual"]] == [0.01, 0.0002]
    assert [rate for rate, _ in rates["static"]] == [0.01]


def test_a_tuned_encoder_changes_and_a_frozen_one_does_not(tmp_path):
    folder = bert_folder(tmp_path / "bert")
    weights = (folder / "model.safetensors").read_bytes()
    for tuned in (True, False):
        train_parallel(
            PAIRS, DEVELOPMENT, settings(f"hf:{folder}", tuned, epochs=1), TrainingRun(tmp_path / "m", overwrite=True)
        )
        saved = (tmp_path / "m/encoder/model.safetensors").read_bytes()
        assert (saved != weights) == tuned


def test_a_checkpoint_of_other_texts_settings_or_encoders(tmp_path):
    def stop(report):
        raise _StopError

    folder = bert_folder(tmp_path / "bert")
    chosen = settings(f"hf:{folder}")
    with pytest.raises(_StopError):
        train_parallel(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "m", on_report=stop))

    def resume(pairs=PAIRS, chosen=chosen):
        train_parallel(pairs, DEVELOPMENT, chosen, TrainingRun(tmp_path / "m", resume=True))

    with pytest.raises(ModelError, match="the texts are other ones"):
        resume(toy_pairs(300, 3))
    with pytest.raises(ModelError, match="units was 24, not 16"):
        resume(chosen=settings(f"hf:{folder}", units=16))
    bert_folder(folder, intermediate_size=40)
    with pytest.raises(ModelError, match="the encoder's weights are other ones"):
        resume()


def test_what_cannot_be_trained(tmp_path, monkeypatch):
    one = PAIRS.select(np.array([0, 0, 0]))
    assert distinct_targets(one) == 1
    with pytest.raises(ValueError, match="1 distinct pair to learn from, expected two"):
        train_parallel(one, DEVELOPMENT, settings(), TrainingRun(tmp_path))
    with pytest.raises(ValueError, match="1 distinct pair in the development set"):
        train_parallel(PAIRS, one, settings(), TrainingRun(tmp_path))
    with pytest.raises(DivergedError, match="smaller learning rate"):
        train_parallel(PAIRS, DEVELOPMENT, settings(learning_rate=1e30), TrainingRun(tmp_path))
    monkeypatch.setattr(writable.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(PhraseToolError, match="make room"):
        train_parallel(PAIRS, DEVELOPMENT, settings(), TrainingRun(tmp_path / "full"))


def test_one_no_better_than_guessing_is_not_saved_silently(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CHANCE", 1.1)
    with pytest.raises(DivergedError, match="no better than chance: the area under its curve") as caught:
        train_parallel(PAIRS, DEVELOPMENT, settings(epochs=1), TrainingRun(tmp_path))
    assert caught.value.remedy == "keep a poor model"
    assert not (tmp_path / "config.json").exists()
    warnings = []
    train_parallel(
        PAIRS, DEVELOPMENT, settings(epochs=1), TrainingRun(tmp_path, resume=True, force=True, warn=warnings.append)
    )
    assert "no better than chance" in warnings[0]
    assert ParallelModel.load(tmp_path).training["epochs_done"] == 1
