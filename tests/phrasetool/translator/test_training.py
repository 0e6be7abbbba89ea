import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from phrasetool.disk import folders
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.nn.device import has_instructions
from phrasetool.phrases import Phrases
from phrasetool.training.run import CHECKPOINT, DivergedError, TrainingRun
from phrasetool.translator.decoding import pair_scores, translate
from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.network import padded_targets
from phrasetool.translator.settings import losses
from phrasetool.translator.training import (
    TranslatorTrainer,
    _mean_word_scores,
    check_better_than_chance,
    checkpoint_bytes,
    fitted_temperature,
    train_translator,
)
from tests.phrasetool.translator.small_pairs import prepared


@pytest.mark.parametrize("loss", losses())
@pytest.mark.parametrize("preset", ["gru", "lstm", "transformer"])
def test_every_loss_learns(loss, preset):
    settings = {"preset": preset, "units": 16, "layers": 1, "epochs": 3}
    if preset == "transformer":
        settings["feed_forward"] = 16
    pairs, development, table, settings = prepared(64, 10, loss=loss, **settings)
    trainer = TranslatorTrainer(pairs, development, table, settings)
    reports = list(trainer.run())
    assert reports[-1].updates == 12
    assert reports[-1].loss < reports[0].loss


@pytest.mark.skipif(
    not has_instructions("bfloat16", torch.device("cpu")), reason="the processor has no bfloat16 for products"
)
@pytest.mark.parametrize("loss", ["syn-projection", "cross-entropy"])
@pytest.mark.parametrize("preset", ["gru", "lstm", "transformer"])
def test_the_precision_affects_only_training(loss, preset):
    settings = {"preset": preset, "units": 16, "layers": 1, "epochs": 3, "loss": loss}
    trainers = []
    for precision in ("float32", "bfloat16"):
        pairs, development, table, chosen = prepared(64, 10, precision=precision, **settings)
        trainers.append(TranslatorTrainer(pairs, development, table, chosen))
    fine, coarse = trainers
    assert fine._report(0.0) == coarse._report(0.0)
    ends = [list(trainer.run())[-1] for trainer in trainers]
    assert ends[0].development_loss != ends[1].development_loss
    assert ends[0].development_loss == pytest.approx(ends[1].development_loss, rel=0.05)
    assert all(value.dtype == torch.float32 for value in coarse.module.parameters())


def test_a_translator_learns_to_translate(tmp_path):
    pairs, development, table, settings = prepared(600, epochs=12, units=64)
    model = train_translator(pairs, development, table, settings, TrainingRun(tmp_path))
    result = translate(model.network, development.sources, model.temperature)
    right = [t.words == tuple(target.tolist()) for t, target in zip(result, development.targets, strict=True)]
    assert np.mean(right) > 0.6
    assert 0 < model.temperature < 1
    assert TranslatorModel.load(tmp_path).identity == model.identity
    assert not (tmp_path / CHECKPOINT).exists()
    log = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in log] == list(range(1, 13))
    assert log[-1]["development_loss"] < log[0]["development_loss"]


def test_the_best_epoch_is_kept():
    pairs, development, table, settings = prepared(100, epochs=4)
    trainer = TranslatorTrainer(pairs, development, table, settings)
    kept = []
    for report in trainer.run():
        kept.append((report.development_loss, trainer.module.words.detach().clone()))
    best = min(kept, key=lambda pair: pair[0])[1]
    # Pretend that the last epoch was worse.
    trainer.module.words.data += 1
    assert torch.equal(trainer.kept().words, best)


class _StopError(Exception):
    pass


@pytest.mark.parametrize("options", [{"dropout": 0.2, "schedule": "linear"}, {"loss": "cross-entropy"}])
def test_an_interrupted_training_goes_on_bit_for_bit(tmp_path, options):
    inputs = prepared(80, 10, **options)

    def stop(report):
        if report.epoch == 2:
            raise _StopError

    uninterrupted = train_translator(*inputs, TrainingRun(tmp_path / "whole"))
    with pytest.raises(_StopError):
        train_translator(*inputs, TrainingRun(tmp_path / "part", on_report=stop))
    with pytest.raises(ModelError, match="unfinished training"):
        train_translator(*inputs, TrainingRun(tmp_path / "part"))
    later = []
    part = train_translator(*inputs, TrainingRun(tmp_path / "part", resume=True, on_report=later.append))
    assert [report.epoch for report in later] == [3]
    assert part.identity == uninterrupted.identity
    for file in ("weights.safetensors", "training.jsonl", "config.json"):
        assert (tmp_path / "part" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_checkpoint_of_other_vectors_texts_or_settings(tmp_path):
    pairs, development, table, settings = prepared(40, 10)

    def stop(report):
        raise _StopError

    with pytest.raises(_StopError):
        train_translator(pairs, development, table, settings, TrainingRun(tmp_path, on_report=stop))
    changed_table = table.copy()
    changed_table[1, 0] += 1e-6
    with pytest.raises(ModelError, match="the target vectors differ"):
        train_translator(pairs, development, changed_table, settings, TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="the texts differ"):
        train_translator(pairs, None, table, settings, TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="units was 32, not 16"):
        train_translator(pairs, development, table, prepared(40, units=16)[3], TrainingRun(tmp_path, resume=True))


def test_what_cannot_be_trained(tmp_path, monkeypatch):
    pairs, development, table, settings = prepared(40, 10)
    with pytest.raises(ModelError, match="no checkpoint to resume from"):
        train_translator(pairs, development, table, settings, TrainingRun(tmp_path, resume=True))
    wild = prepared(40, 10, learning_rate=1e30, loss="cross-entropy")
    with pytest.raises(DivergedError, match="smaller learning rate"):
        train_translator(*wild, TrainingRun(tmp_path))
    needed = checkpoint_bytes(settings, len(pairs.source_vocabulary), len(pairs.target_vocabulary))
    trainer = TranslatorTrainer(pairs, development, table, settings)
    numbers = sum(value.numel() for value in trainer.module.parameters())
    assert needed == 32 * numbers
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda path: type("Usage", (), {"free": needed - 1}))
    with pytest.raises(PhraseToolError, match="make room"):
        train_translator(pairs, development, table, settings, TrainingRun(tmp_path / "full"))
    assert not (tmp_path / "full").exists()


@pytest.fixture(params=["syn-projection", "cross-entropy"])
def trainer(request):
    return TranslatorTrainer(*prepared(300, 600, loss=request.param, epochs=2))


def test_a_translator_that_learnt_is_better_than_guessing(trainer):
    before = trainer.module.eval()
    assert check_better_than_chance(before, trainer.development, 1).startswith("it ranks the source of a translation")
    list(trainer.run())
    assert check_better_than_chance(trainer.kept(), trainer.development, 1) is None


def test_a_translator_that_ignores_the_source_is_not_better_than_guessing(trainer):
    list(trainer.run())
    with torch.no_grad():
        trainer.module.words.zero_()
    pairs = trainer.development
    # Different lengths would make pairs recognisable.
    rows = np.flatnonzero(pairs.sources.lengths == 4)
    pairs = replace(pairs, sources=pairs.sources.select(rows), targets=pairs.targets.select(rows))
    message = check_better_than_chance(trainer.module.eval(), pairs, 1)
    assert message.endswith("; chance is 0.5")
    auc = float(message.split("AUC ")[1].split(";")[0])
    assert auc < 0.55


def test_no_finding_with_few_pairs(trainer):
    assert check_better_than_chance(trainer.module.eval(), prepared(50, 40)[1], 1) is None


def test_scores_are_means_per_word(trainer):
    module = trainer.module.eval()
    pairs = trainer.development
    sources, targets = pairs.sources.part(0, 70), pairs.targets.part(0, 70)
    continuous = module.architecture.continuous
    expected = []
    for i in range(70):
        pair = Phrases.from_lists([sources[i].tolist()]), Phrases.from_lists([targets[i].tolist()])
        # At temperature 1, a density is a cosine minus one.
        reading = "density" if continuous else "normalised"
        (score,) = pair_scores(module, *pair, np.zeros(1, np.int64), reading, 1.0)
        expected.append(score / (len(targets[i]) + 1) + continuous)
    result = _mean_word_scores(module, sources, targets)
    assert result == pytest.approx(expected, abs=1e-5)
    assert all(map(math.isfinite, result))


@pytest.mark.parametrize("epochs", [1, 6])
def test_no_temperature_of_a_grid_is_more_likely(epochs):
    pairs, development, table, settings = prepared(200, 60, epochs=epochs)
    trainer = TranslatorTrainer(pairs, development, table, settings)
    list(trainer.run())
    module = trainer.kept()
    result = fitted_temperature(module, development, 1)
    with torch.no_grad():
        targets = padded_targets(development.targets, module.end)
        predicted = functional.normalize(module.predict(module.encode(development.sources), targets), dim=1)
        cosines = (predicted @ module.targets.T).double()
        expected = targets[targets >= 0]

    def likelihood(temperature):
        return float(torch.log_softmax(cosines / temperature, 1).gather(1, expected[:, None]).mean())

    grid = [math.exp(x) for x in np.linspace(-7, 2, 200)]
    assert likelihood(result) >= max(map(likelihood, grid)) - 1e-4
    assert result == pytest.approx(max(grid, key=likelihood), rel=0.06)


def test_a_softmax_has_temperature_one():
    pairs, development, table, settings = prepared(40, 10, loss="cross-entropy-tied", epochs=1)
    module = TranslatorTrainer(pairs, development, table, settings).kept()
    assert fitted_temperature(module, development, 1) == 1.0
