import json

import numpy as np
import pytest
import torch

from phrasetool.disk import writable
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.train.checks import DivergedError
from phrasetool.train.run import CHECKPOINT, TrainingRun
from phrasetool.training.masked_lm.piece_texts import TextLines, piece_texts
from tests.cli.small_translator import WORDS, sentences
from tests.phrasetool.training.masked_lm.small_berts import prepared

pytest.importorskip("transformers", reason="the extra `encoders` is not installed")

from phrasetool.training.masked_lm.masked_lm_trainer import (
    MaskedLmTrainer,
    checkpoint_bytes,
    train_masked_lm,
)


def test_a_bert_learns(tmp_path):
    _, _, tokenizer, settings = prepared(epochs=8)
    # What is hidden stands beside it, in the text or in its translation.
    drawn = np.random.default_rng(1).choice(list(WORDS), 500).tolist()
    lines = TextLines([f"{word} " * 4 for word in drawn], [f"{WORDS[word]} " * 4 for word in drawn])
    data, held = (piece_texts(lines.select(np.arange(*part)), tokenizer, 64) for part in ((400,), (400, 500)))
    ticks = []
    trained = train_masked_lm(
        data, held, tokenizer, settings, TrainingRun(tmp_path, tick=ticks.append, record={"files": ["x"]})
    )
    log = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in log] == list(range(1, 9))
    assert log[-1]["development_loss"] < 0.5 * log[0]["development_loss"]
    assert log[-1]["development_accuracy"] > 0.5
    assert sum(ticks) == 8 * data.tokens
    assert trained.training["pairs"] == 400
    assert trained.training["texts"] == 800
    assert json.loads((tmp_path / "training.json").read_text())["files"] == ["x"]
    assert not (tmp_path / CHECKPOINT).exists()


def test_only_hidden_places_are_predicted_and_as_transformers_does_it():
    data, held, tokenizer, settings = prepared()
    trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings)
    total = count = 0.0
    for batch, hidden in trainer._held:
        labels = np.full(batch.ids.shape, -100)
        labels[hidden.chosen] = hidden.wanted
        with torch.no_grad():
            found = trainer.module(
                input_ids=torch.from_numpy(hidden.ids), token_type_ids=torch.from_numpy(batch.segments),
                attention_mask=torch.from_numpy(batch.there.astype(np.int64)), labels=torch.from_numpy(labels),
            )  # fmt: skip
        total, count = total + float(found.loss) * len(hidden.wanted), count + len(hidden.wanted)
    assert trainer._development()[0] == pytest.approx(total / count, rel=1e-5)
    assert trainer._development() == trainer._development()


def test_precision_is_that_of_training_alone():
    made = []
    for precision in ("float32", "bfloat16"):
        data, held, tokenizer, settings = prepared(epochs=2, precision=precision)
        trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings)
        made.append((trainer._development(), list(trainer.run())[-1].development_loss))
        assert all(value.dtype == torch.float32 for value in trainer.module.parameters())
    assert made[0][0] == made[1][0]
    assert made[0][1] != made[1][1]
    assert made[0][1] == pytest.approx(made[1][1], rel=0.05)


def test_text_without_translations(tmp_path):
    _, _, tokenizer, settings = prepared()
    parts = [TextLines(sentences(count, seed)[1]) for count, seed in ((60, 1), (10, 2))]
    data, held = (piece_texts(part, tokenizer, settings.positions) for part in parts)
    reports = list(MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings).run())
    assert reports[-1].loss < reports[0].loss


def test_the_best_epoch_is_kept():
    data, held, tokenizer, settings = prepared(epochs=4, learning_rate=0.05)
    trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings)
    weights = trainer.module.bert.embeddings.word_embeddings.weight
    kept = [(report.development_loss, weights.detach().clone()) for report in trainer.run()]
    best = min(kept, key=lambda pair: pair[0])[1]
    # Pretend that the last epoch was worse.
    weights.data += 1
    assert torch.equal(trainer.kept().bert.embeddings.word_embeddings.weight, best)


class _StopError(Exception):
    pass


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_an_interrupted_training_goes_on_bit_for_bit(tmp_path, dropout):
    given = prepared(dropout=dropout)

    def stop(report):
        if report.epoch == 2:
            raise _StopError

    whole = train_masked_lm(*given, TrainingRun(tmp_path / "whole"))
    with pytest.raises(_StopError):
        train_masked_lm(*given, TrainingRun(tmp_path / "part", on_report=stop))
    with pytest.raises(ModelError, match="unfinished training"):
        train_masked_lm(*given, TrainingRun(tmp_path / "part"))
    later = []
    part = train_masked_lm(*given, TrainingRun(tmp_path / "part", resume=True, on_report=later.append))
    assert [report.epoch for report in later] == [3]
    assert part.signature == whole.signature
    for file in (tmp_path / "whole").iterdir():
        assert (tmp_path / "part" / file.name).read_bytes() == file.read_bytes(), file.name


def test_a_checkpoint_of_other_texts_pieces_or_settings(tmp_path):
    data, held, tokenizer, settings = prepared()

    def stop(report):
        raise _StopError

    with pytest.raises(_StopError):
        train_masked_lm(data, held, tokenizer, settings, TrainingRun(tmp_path, on_report=stop))
    with pytest.raises(ModelError, match="the texts are other ones"):
        train_masked_lm(held, held, tokenizer, settings, TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="units was 32, not 16"):
        train_masked_lm(data, held, tokenizer, prepared(units=16)[3], TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="the pieces of words are other ones"):
        train_masked_lm(data, held, prepared(vocabulary_size=50)[2], settings, TrainingRun(tmp_path, resume=True))


def test_what_cannot_be_trained(tmp_path, monkeypatch):
    data, held, tokenizer, settings = prepared()
    with pytest.raises(ModelError, match="no checkpoint to resume from"):
        train_masked_lm(data, held, tokenizer, settings, TrainingRun(tmp_path, resume=True))
    with pytest.raises(DivergedError, match="smaller learning rate"):
        train_masked_lm(*prepared(learning_rate=1e30), TrainingRun(tmp_path))
    nothing = type(data)(data.texts.select(np.zeros(0, np.int64)), data.sources, data.targets, 128, 0)
    with pytest.raises(ValueError, match="expected texts with pieces"):
        train_masked_lm(nothing, held, tokenizer, settings, TrainingRun(tmp_path))
    pieces = tokenizer.get_vocab_size()
    needed = checkpoint_bytes(settings, pieces)
    trainer = MaskedLmTrainer(data, held, pieces, settings)
    assert needed == 32 * sum(value.numel() for value in trainer.module.parameters())
    monkeypatch.setattr(writable.shutil, "disk_usage", lambda path: type("Usage", (), {"free": needed - 1}))
    with pytest.raises(PhraseToolError, match="make room"):
        train_masked_lm(data, held, tokenizer, settings, TrainingRun(tmp_path / "full"))
    assert not (tmp_path / "full").exists()


@pytest.mark.requires_cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_learns_as_a_cpu_does():
    data, held, tokenizer, settings = prepared()
    losses = []
    for device in ("cpu", "cuda"):
        trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings, torch.device(device))
        losses.append([report.development_loss for report in trainer.run()])
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.02)
