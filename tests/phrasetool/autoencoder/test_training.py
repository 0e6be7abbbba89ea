import json

import numpy as np
import pytest
import torch

from phrasetool.autoencoder.inference import reconstruct_texts
from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.autoencoder.settings import ARCHITECTURES, AutoencoderSettings
from phrasetool.autoencoder.training import AutoencoderTrainer, train_autoencoder, training_texts
from phrasetool.errors import ModelError
from phrasetool.phrases import Phrases
from phrasetool.training.loop import ADAM
from phrasetool.training.run import DivergedError, TrainingRun
from tests.phrasetool.autoencoder.small_autoencoders import VOCABULARY, WORDS, random_texts, settings

SOME_WORDS = [b"rare", b"usual", b"b"]
TEXTS = Phrases.from_lists([[1, 2], [1, 1, 0], [2, 1, 1, 1, 2]])


def training_settings(**changes):
    return AutoencoderSettings.from_options({"min_count": 1, **changes})


def test_short_texts_and_frequent_words():
    data = training_texts(TEXTS, SOME_WORDS, training_settings(max_length=3, min_count=2))
    assert data.left_out == 1
    assert data.vocabulary.words == [b"<unk>", b"usual"]
    assert data.vocabulary.counts.tolist() == [2, 3]
    assert data.unknown == pytest.approx(2 / 5)
    assert [text.tolist() for text in data.texts] == [[1, 0], [1, 1, 0]]


def test_all_texts_and_all_words():
    data = training_texts(TEXTS, SOME_WORDS, training_settings(max_length=5))
    assert (data.left_out, data.unknown) == (0, 0)
    assert data.vocabulary.words == [b"<unk>", b"usual", b"b", b"rare"]
    assert np.array_equal(data.texts.offsets, TEXTS.offsets)


def test_no_text_is_short_enough():
    with pytest.raises(ValueError, match=r"^no line has 1 words or fewer$"):
        training_texts(TEXTS, SOME_WORDS, training_settings(max_length=1))


@pytest.fixture(scope="module")
def texts():
    return random_texts()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_memorised_texts_are_reconstructed(texts, architecture, tmp_path):
    chosen = settings(
        architecture=architecture, word_units=16, hidden=48, epochs=40, dropout=0, learning_rate=0.02, batch_size=8
    )
    texts = texts.part(0, 30)
    model = train_autoencoder(texts, VOCABULARY, chosen, TrainingRun(tmp_path))
    log = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert log[-1]["cross_entropy"] < 0.1 * log[0]["cross_entropy"]
    reconstructed = reconstruct_texts(model, texts)
    assert np.mean([a.tolist() == b.tolist() for a, b in zip(texts, reconstructed, strict=True)]) > 0.8


def test_training_is_determined_by_the_seed(texts, tmp_path):
    identities = [
        train_autoencoder(texts, VOCABULARY, settings(seed=seed), TrainingRun(tmp_path / str(number))).identity
        for number, seed in enumerate((1, 1, 2))
    ]
    assert identities[0] == identities[1] != identities[2]


@pytest.mark.parametrize("architecture", ["mean-max", "lstm-mean-max"])
@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_resuming_gives_the_same_model_as_never_stopping(texts, architecture, stop_after, tmp_path):
    class StopHere(Exception):
        pass

    def stop(report):
        if report.epoch == stop_after:
            raise StopHere

    chosen = settings(architecture=architecture)
    uninterrupted = train_autoencoder(texts, VOCABULARY, chosen, TrainingRun(tmp_path / "whole"))
    with pytest.raises(StopHere):
        train_autoencoder(texts, VOCABULARY, chosen, TrainingRun(tmp_path / "parts", on_report=stop))
    resumed = train_autoencoder(texts, VOCABULARY, chosen, TrainingRun(tmp_path / "parts", resume=True))
    assert resumed.identity == uninterrupted.identity
    assert (tmp_path / "parts" / "training.jsonl").read_bytes() == (tmp_path / "whole" / "training.jsonl").read_bytes()
    assert not (tmp_path / "parts" / "checkpoint.safetensors").exists()
    assert AutoencoderModel.load(tmp_path / "parts").identity == uninterrupted.identity


def test_a_checkpoint_of_other_texts_or_settings_is_refused(texts, tmp_path):
    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_autoencoder(texts, VOCABULARY, settings(), TrainingRun(tmp_path, on_report=stop))
    for others, changes, expected in (
        (texts, {"seed": 5, "dropout": 0.5}, r"cannot resume: dropout was 0\.\d+, not 0\.5, seed was 1, not 5; use"),
        (texts.part(0, 30), {}, "cannot resume: the texts differ; use"),
    ):
        with pytest.raises(ModelError, match=expected):
            train_autoencoder(others, VOCABULARY, settings(**changes), TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="no checkpoint"):
        train_autoencoder(texts, VOCABULARY, settings(), TrainingRun(tmp_path / "nowhere", resume=True))


def test_every_text_is_ticked_off_and_every_epoch_reported(texts):
    trainer = AutoencoderTrainer(texts, WORDS, settings(epochs=2))
    ticks = []
    reports = list(trainer.run(ticks.append))
    assert sum(ticks) == 2 * len(texts)
    assert [(report.epoch, report.updates) for report in reports] == [(1, 4), (2, 8)]
    assert trainer.learnt.optimizers[ADAM].param_groups[0]["lr"] == pytest.approx(0.002 / 8)


def test_the_gradient_is_clipped(texts, monkeypatch):
    clipped = []
    original = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda p, m: clipped.append(m) or original(p, m))
    list(AutoencoderTrainer(texts, WORDS, settings(epochs=1, clip=0.5)).run())
    assert clipped == [0.5] * 4


@pytest.mark.parametrize("lists", [[], [[1], []], [[1] * 9]])
def test_texts_of_forbidden_lengths_are_refused(lists, tmp_path):
    with pytest.raises(ValueError, match="expected texts of 1 to 8 words"):
        train_autoencoder(Phrases.from_lists(lists), VOCABULARY, settings(max_length=8), TrainingRun(tmp_path))


def test_a_model_that_is_no_better_than_guessing_is_refused_and_can_be_kept(tmp_path):
    rng = np.random.default_rng(0)
    texts = Phrases.from_lists([rng.integers(0, WORDS, n).tolist() for n in rng.integers(1, 8, 100)])
    poor = settings(architecture="lstm", learning_rate=1.0)
    recorded = []
    with pytest.raises(
        DivergedError, match=r"no better than chance: the cross-entropy per word is \d\S*, that of guessing 2\.77"
    ) as caught:
        train_autoencoder(texts, VOCABULARY, poor, TrainingRun(tmp_path, warn=recorded.append))
    assert "smaller learning rate than 1, or with more epochs" in str(caught.value)
    assert caught.value.remedy == "keep a poor model"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.safetensors", "training.jsonl"]
    assert recorded == []
    # Nothing is trained again.
    ticks = []
    kept = train_autoencoder(
        texts, VOCABULARY, poor, TrainingRun(tmp_path, resume=True, force=True, warn=recorded.append, tick=ticks.append)
    )
    assert recorded == [str(caught.value)]
    assert ticks == []
    assert AutoencoderModel.load(tmp_path).identity == kept.identity


def test_no_chance_level_for_a_model_that_learnt_or_had_few_texts(texts):
    rng = np.random.default_rng(0)
    many = Phrases.from_lists([[3] * n for n in rng.integers(1, 8, 100)])
    good = AutoencoderTrainer(many, WORDS, settings())
    list(good.run())
    assert good.chance_level_reason() is None
    few = AutoencoderTrainer(texts, WORDS, settings(architecture="lstm", learning_rate=1.0))
    list(few.run())
    assert few.chance_level_reason() is None
