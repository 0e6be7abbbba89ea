import json

import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders.sentence_encoder import SentenceEncoder
from tests.text_encoder_folders import sentence_folder, transformer_folder

TEXTS = ["abc", "a", "some words of a phrase", "abc def"]


@pytest.fixture
def folder(tmp_path):
    return sentence_folder(tmp_path / "sentence", transformer_folder(tmp_path / "plain"))


def test_vectors_are_those_of_the_library(folder):
    from sentence_transformers import SentenceTransformer

    encoder = SentenceEncoder(folder)
    assert encoder.dimension == 8
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(TEXTS, "source"), expected, atol=1e-6)


def test_the_prompt_of_the_folder_is_used(folder):
    from sentence_transformers import SentenceTransformer

    plain = SentenceEncoder(folder).encode(TEXTS, "source")
    file = folder / "config_sentence_transformers.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "prompts": {"q": "query "}, "default_prompt_name": "q"}))
    found = SentenceEncoder(folder).encode(TEXTS, "source")
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(found - plain).max() > 1e-3


def test_long_texts_are_counted(folder):
    assert SentenceEncoder(folder).over_long(["a " * 30, "a " * 31, "b"]) == 1


def test_an_old_library_is_refused(folder, monkeypatch):
    import sentence_transformers

    monkeypatch.setattr(sentence_transformers, "__version__", "5.6.1")
    with pytest.raises(ModelError, match=r"5\.6\.1 may run code from a folder; 6 or newer is needed"):
        SentenceEncoder(folder)


def test_damaged_folders_are_refused(folder):
    (folder / "1_Pooling" / "config.json").write_text('{"embedding_dimension": "x", "pooling_mode": "no such"}')
    with pytest.raises(ModelError, match="not a model that sentence-transformers can read") as error:
        SentenceEncoder(folder)
    assert "\n" not in str(error.value)


def test_a_missing_tokenizer_is_named(folder):
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        SentenceEncoder(folder)
