import json
import stat

import numpy as np
import pytest
import torch

from phrasetool.bert.data import TextLines, piece_texts
from phrasetool.disk import folders
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.text_encoders.encoders import find_text_encoder
from phrasetool.training.run import CHECKPOINT, DivergedError, TrainingRun
from tests.cli.small_translator import WORDS, sentences
from tests.phrasetool.bert.small_berts import prepared

pytest.importorskip("transformers", reason="the extra `encoders` is not installed")

from phrasetool.bert.settings import MaskedLmSettings
from phrasetool.bert.training import (
    MaskedLmTrainer,
    checkpoint_bytes,
    new_bert,
    save_bert,
    train_masked_lm,
)

TEXTS = ["der hund sieht", "the dog", "ein altes haus und ein ball", "a"]
SAFELY = {"local_files_only": True, "trust_remote_code": False}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a trained network, its tokenizer, the folder with both, and the result of `save_bert`."""
    data, held, tokenizer, settings = prepared(epochs=1)
    trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings)
    list(trainer.run())
    folder = tmp_path_factory.mktemp("bert") / "bert"
    trained = save_bert(trainer.best_network(), tokenizer, folder, {"seed": 1})
    return trainer.module, tokenizer, folder, trained


def means(model, tokenizer, texts):
    """Return the mean of the last layer for each text, processed separately."""
    with torch.no_grad():
        rows = [model(input_ids=torch.tensor([tokenizer.encode(text).ids]))[0][0].mean(0) for text in texts]
    return torch.stack(rows).numpy()


def test_transformers_loads_the_network_and_the_tokenizer(saved):
    from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

    module, tokenizer, folder, trained = saved
    model = AutoModel.from_pretrained(folder, use_safetensors=True, **SAFELY).eval()
    assert type(model).__name__ == "BertModel"
    np.testing.assert_allclose(means(model, tokenizer, TEXTS), means(module.bert, tokenizer, TEXTS), atol=1e-5)
    masked_lm = AutoModelForMaskedLM.from_pretrained(folder, use_safetensors=True, **SAFELY).eval()
    np.testing.assert_allclose(means(masked_lm, tokenizer, TEXTS), means(module, tokenizer, TEXTS), atol=1e-5)
    loaded_tokenizer = AutoTokenizer.from_pretrained(folder, **SAFELY)
    assert loaded_tokenizer(TEXTS)["input_ids"] == [tokenizer.encode(text).ids for text in TEXTS]
    pair = tokenizer.encode(*TEXTS[:2])
    assert loaded_tokenizer(*TEXTS[:2])["token_type_ids"] == pair.type_ids
    assert loaded_tokenizer.mask_token == "[MASK]"
    assert loaded_tokenizer.model_max_length == 128
    assert trained.signature.startswith("bert-")


def test_vectors_of_the_text_encoder_are_those_of_transformers(saved):
    from transformers import AutoModel

    _, tokenizer, folder, _ = saved
    encoder = find_text_encoder(folder).load()
    model = AutoModel.from_pretrained(folder, use_safetensors=True, **SAFELY).eval()
    assert encoder.dimension == 32
    np.testing.assert_allclose(encoder.encode(TEXTS, "source"), means(model, tokenizer, TEXTS), atol=1e-5)


def test_the_folder_holds_only_these_files_with_equal_permissions(saved):
    folder = saved[2]
    assert {file.name for file in folder.iterdir()} == {
        "config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
        "training.json",
    }  # fmt: skip
    assert json.loads((folder / "training.json").read_text()) == {"seed": 1}
    modes = {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert len(modes) == 1
    assert modes.pop() & 0o400


def test_a_folder_with_code_or_pickles_is_refused(saved, tmp_path):
    module, tokenizer, _, _ = saved
    folder = tmp_path / "bert"
    save_bert(module, tokenizer, folder, {})
    for name, text, message in (
        ("modeling.py", "import os", "may hold code or a pickle"),
        ("pytorch_model.bin", "x", "may hold code or a pickle"),
        ("training.json", '{"auto_map": {"AutoModel": "modeling.Bert"}}', "names code to run"),
    ):
        before = (folder / name).read_text() if (folder / name).exists() else None
        (folder / name).write_text(text)
        with pytest.raises(ModelError, match=message):
            find_text_encoder(folder)
        (folder / name).unlink() if before is None else (folder / name).write_text(before)
    assert find_text_encoder(folder).identity.startswith("transformer-")


def test_an_unwritable_folder(saved, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PhraseToolError, match="cannot write"):
        save_bert(saved[0], saved[1], tmp_path / "file", {})


def test_weights_are_determined_by_the_seed_and_the_global_generator_is_unchanged():
    before = torch.get_rng_state()
    first, repeated, other_seed = (
        new_bert(MaskedLmSettings(preset="tiny", seed=seed), 50).bert.embeddings.word_embeddings.weight
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, repeated)
    assert not torch.equal(first, other_seed)
    assert torch.equal(before, torch.get_rng_state())


def test_a_bert_learns(tmp_path):
    _, _, tokenizer, settings = prepared(epochs=8)
    # Masked words can be predicted from the other words of the text or from its translation.
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


def test_only_masked_positions_are_predicted_with_the_loss_of_transformers():
    data, held, tokenizer, settings = prepared()
    trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings)
    total = count = 0.0
    for batch, masked in trainer._held:
        labels = np.full(batch.ids.shape, -100)
        labels[masked.chosen] = masked.targets
        with torch.no_grad():
            result = trainer.module(
                input_ids=torch.from_numpy(masked.ids), token_type_ids=torch.from_numpy(batch.segments),
                attention_mask=torch.from_numpy(batch.attended.astype(np.int64)), labels=torch.from_numpy(labels),
            )  # fmt: skip
        total, count = total + float(result.loss) * len(masked.targets), count + len(masked.targets)
    assert trainer._development()[0] == pytest.approx(total / count, rel=1e-5)
    assert trainer._development() == trainer._development()


def test_the_precision_affects_only_training():
    losses = []
    for precision in ("float32", "bfloat16"):
        data, held, tokenizer, settings = prepared(epochs=2, precision=precision)
        trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings)
        losses.append((trainer._development(), list(trainer.run())[-1].development_loss))
        assert all(value.dtype == torch.float32 for value in trainer.module.parameters())
    assert losses[0][0] == losses[1][0]
    assert losses[0][1] != losses[1][1]
    assert losses[0][1] == pytest.approx(losses[1][1], rel=0.05)


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
    assert torch.equal(trainer.best_network().bert.embeddings.word_embeddings.weight, best)


class _StopError(Exception):
    pass


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_an_interrupted_training_goes_on_bit_for_bit(tmp_path, dropout):
    inputs = prepared(dropout=dropout)

    def stop(report):
        if report.epoch == 2:
            raise _StopError

    whole = train_masked_lm(*inputs, TrainingRun(tmp_path / "whole"))
    with pytest.raises(_StopError):
        train_masked_lm(*inputs, TrainingRun(tmp_path / "part", on_report=stop))
    with pytest.raises(ModelError, match="unfinished training"):
        train_masked_lm(*inputs, TrainingRun(tmp_path / "part"))
    later = []
    part = train_masked_lm(*inputs, TrainingRun(tmp_path / "part", resume=True, on_report=later.append))
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
    with pytest.raises(ModelError, match="the texts differ"):
        train_masked_lm(held, held, tokenizer, settings, TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="units was 32, not 16"):
        train_masked_lm(data, held, tokenizer, prepared(units=16)[3], TrainingRun(tmp_path, resume=True))
    with pytest.raises(ModelError, match="the pieces of words differ"):
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
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda path: type("Usage", (), {"free": needed - 1}))
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
