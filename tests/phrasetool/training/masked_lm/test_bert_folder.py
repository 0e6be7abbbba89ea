import json
import stat

import numpy as np
import pytest

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.text_encoders.loading import find_text_encoder
from tests.phrasetool.training.masked_lm.small_berts import prepared

pytest.importorskip("transformers", reason="the extra `encoders` is not installed")
TEXTS = ["der hund sieht", "the dog", "ein altes haus und ein ball", "a"]
SAFELY = {"local_files_only": True, "trust_remote_code": False}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A trained network, its tokenizer, and the folder with both."""
    from phrasetool.training.masked_lm.bert_folder import save_bert
    from phrasetool.training.masked_lm.masked_lm_trainer import MaskedLmTrainer

    data, held, tokenizer, settings = prepared(epochs=1)
    trainer = MaskedLmTrainer(data, held, tokenizer.get_vocab_size(), settings)
    list(trainer.run())
    folder = tmp_path_factory.mktemp("bert") / "bert"
    trained = save_bert(trainer.kept(), tokenizer, folder, {"seed": 1})
    return trainer.module, tokenizer, folder, trained


def means(model, tokenizer, texts):
    """The mean of the last layer, one text at a time."""
    import torch

    with torch.no_grad():
        rows = [model(input_ids=torch.tensor([tokenizer.encode(text).ids]))[0][0].mean(0) for text in texts]
    return torch.stack(rows).numpy()


def test_transformers_loads_the_network_and_the_tokenizer(saved):
    from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

    module, tokenizer, folder, trained = saved
    model = AutoModel.from_pretrained(folder, use_safetensors=True, **SAFELY).eval()
    assert type(model).__name__ == "BertModel"
    np.testing.assert_allclose(means(model, tokenizer, TEXTS), means(module.bert, tokenizer, TEXTS), atol=1e-5)
    whole = AutoModelForMaskedLM.from_pretrained(folder, use_safetensors=True, **SAFELY).eval()
    np.testing.assert_allclose(means(whole, tokenizer, TEXTS), means(module, tokenizer, TEXTS), atol=1e-5)
    theirs = AutoTokenizer.from_pretrained(folder, **SAFELY)
    assert theirs(TEXTS)["input_ids"] == [tokenizer.encode(text).ids for text in TEXTS]
    pair = tokenizer.encode(*TEXTS[:2])
    assert theirs(*TEXTS[:2])["token_type_ids"] == pair.type_ids
    assert theirs.mask_token == "[MASK]"
    assert theirs.model_max_length == 128
    assert trained.signature.startswith("bert-")


def test_vectors_of_the_reader_of_folders_are_those_of_transformers(saved):
    from transformers import AutoModel

    _, tokenizer, folder, _ = saved
    encoder = find_text_encoder(folder).load()
    model = AutoModel.from_pretrained(folder, use_safetensors=True, **SAFELY).eval()
    assert encoder.dimension == 32
    np.testing.assert_allclose(encoder.encode(TEXTS, "source"), means(model, tokenizer, TEXTS), atol=1e-5)


def test_the_folder_holds_nothing_else_and_can_be_read_by_others(saved):
    folder = saved[2]
    assert {file.name for file in folder.iterdir()} == {
        "config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
        "training.json",
    }  # fmt: skip
    assert json.loads((folder / "training.json").read_text()) == {"seed": 1}
    modes = {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert len(modes) == 1
    assert modes.pop() & 0o400


def test_a_folder_that_was_made_hostile_is_refused(saved, tmp_path):
    from phrasetool.training.masked_lm.bert_folder import save_bert

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


def test_a_folder_that_cannot_be_written(saved, tmp_path):
    from phrasetool.training.masked_lm.bert_folder import save_bert

    (tmp_path / "file").write_text("")
    with pytest.raises(PhraseToolError, match="cannot write"):
        save_bert(saved[0], saved[1], tmp_path / "file", {})


def test_a_seed_fixes_the_weights_and_leaves_the_state_of_others_alone():
    import torch

    from phrasetool.training.masked_lm.bert_folder import new_bert
    from phrasetool.training.masked_lm.masked_lm_settings import MaskedLmSettings

    before = torch.get_rng_state()
    first, again, other = (
        new_bert(MaskedLmSettings(preset="tiny", seed=seed), 50).bert.embeddings.word_embeddings.weight
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())
