import json

import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders.transformer_encoder import SentenceEncoder, TransformerEncoder
from tests.text_encoder_folders import letters_tokenizer, sentence_folder, transformer_folder

TEXTS = ["abc", "a", "some words of a phrase", "abc def"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return transformer_folder(tmp_path_factory.mktemp("encoder") / "plain")


def test_vectors_are_means_over_the_tokens(folder):
    import torch
    from transformers import BertModel

    encoder = TransformerEncoder(folder)
    assert encoder.dimension == 16
    model, tokenizer = BertModel.from_pretrained(folder).eval(), letters_tokenizer()
    # One text at a time, nothing is padded.
    with torch.no_grad():
        expected = [model(input_ids=torch.tensor([tokenizer.encode(t).ids]))[0][0].mean(0).numpy() for t in TEXTS]
    np.testing.assert_allclose(encoder.encode(TEXTS, "source"), np.array(expected), atol=1e-6)


def test_long_texts_are_cut_and_counted(folder):
    encoder = TransformerEncoder(folder)
    # 30 positions: 28 letters between the two tokens that stand around a text.
    texts = ["a " * 28, "a " * 29, "b"]
    assert encoder.over_long(texts) == 1
    vectors = encoder.encode(texts, "source")
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_one_thread_computes_a_batch(folder):
    import torch

    encoder = TransformerEncoder(folder)
    before = torch.get_num_threads()
    with encoder.at_work():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (
            lambda f: (f / "config.json").write_text('{"model_type": "nothing"}'),
            "not a model that transformers can read",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 50), "not a model that transformers can read"),
    ],
)
def test_damaged_folders_are_refused(damage, message, tmp_path):
    folder = transformer_folder(tmp_path / "plain")
    damage(folder)
    with pytest.raises(ModelError) as error:
        TransformerEncoder(folder)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_tokenizer_of_another_model_is_refused(tmp_path):
    folder = transformer_folder(tmp_path / "plain")
    tokenizer = letters_tokenizer()
    tokenizer.add_tokens(["more"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(ModelError, match="not of one model"):
        TransformerEncoder(folder)


@pytest.fixture
def sentence_encoder(tmp_path):
    return sentence_folder(tmp_path / "sentence", transformer_folder(tmp_path / "plain"))


def test_vectors_are_those_of_sentence_transformers(sentence_encoder):
    from sentence_transformers import SentenceTransformer

    encoder = SentenceEncoder(sentence_encoder)
    assert encoder.dimension == 8
    expected = SentenceTransformer(str(sentence_encoder), device="cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(TEXTS, "source"), expected, atol=1e-6)


def test_the_prompt_of_the_folder_is_used(sentence_encoder):
    from sentence_transformers import SentenceTransformer

    plain = SentenceEncoder(sentence_encoder).encode(TEXTS, "source")
    file = sentence_encoder / "config_sentence_transformers.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "prompts": {"q": "query "}, "default_prompt_name": "q"}))
    found = SentenceEncoder(sentence_encoder).encode(TEXTS, "source")
    expected = SentenceTransformer(str(sentence_encoder), device="cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(found - plain).max() > 1e-3


def test_long_texts_of_sentence_transformers_are_counted(sentence_encoder):
    assert SentenceEncoder(sentence_encoder).over_long(["a " * 30, "a " * 31, "b"]) == 1


def test_an_old_library_is_refused(sentence_encoder, monkeypatch):
    import sentence_transformers

    monkeypatch.setattr(sentence_transformers, "__version__", "5.6.1")
    with pytest.raises(ModelError, match=r"5\.6\.1 may run code from a folder; 6 or newer is needed"):
        SentenceEncoder(sentence_encoder)


def test_damaged_sentence_encoders_are_refused(sentence_encoder):
    pooling = sentence_encoder / "1_Pooling" / "config.json"
    pooling.write_text('{"embedding_dimension": "x", "pooling_mode": "no such"}')
    with pytest.raises(ModelError, match="not a model that sentence-transformers can read") as error:
        SentenceEncoder(sentence_encoder)
    assert "\n" not in str(error.value)


def test_a_missing_tokenizer_of_sentence_transformers_is_named(sentence_encoder):
    (sentence_encoder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        SentenceEncoder(sentence_encoder)
