import json

import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders.static_encoder import StaticEncoder
from tests.text_encoder_folders import WORDS, static_folder


def naive(table, text, weights=None):
    """The mean of the vectors of the known words."""
    numbers = [WORDS.index(word) + 1 for word in text.split() if word in WORDS]
    if not numbers:
        return np.zeros(table.shape[1])
    factors = [1.0 if weights is None else weights[i] for i in numbers]
    return np.mean([factor * table[i].astype(np.float64) for factor, i in zip(factors, numbers, strict=True)], axis=0)


TEXTS = ["haus", "ein haus", "not a house", "haus unbekannt", "unbekannt", "", "dog dog dog"]


@pytest.mark.parametrize("unit", [False, True])
def test_vectors_are_means_of_known_words(unit, tmp_path):
    vectors = np.random.default_rng(1).normal(size=(len(WORDS), 5))
    folder = static_folder(tmp_path / "e", vectors=vectors, config={"normalize": unit})
    encoder = StaticEncoder(folder)
    assert encoder.dimension == 5
    expected = np.array([naive(np.vstack([np.ones(5), vectors]), text) for text in TEXTS])
    if unit:
        lengths = np.linalg.norm(expected, axis=1, keepdims=True)
        expected = np.divide(expected, lengths, out=np.zeros_like(expected), where=lengths > 0)
    np.testing.assert_allclose(encoder.encode(TEXTS, "source"), expected, atol=1e-6)
    assert not encoder.encode(["unbekannt", ""], "target").any()


def test_weights_and_mapping_of_tokens(tmp_path):
    rng = np.random.default_rng(1)
    vectors, weights = rng.normal(size=(len(WORDS), 5)), rng.random(len(WORDS) + 1).astype(np.float32)
    mapping = rng.permutation(len(WORDS) + 1)
    folder = static_folder(
        tmp_path / "e", vectors=vectors, extra={"weights": weights, "mapping": mapping}, config={"normalize": False}
    )
    table = np.vstack([np.ones(5), vectors])[mapping]
    expected = np.array([naive(table, text, weights) for text in TEXTS])
    np.testing.assert_allclose(StaticEncoder(folder).encode(TEXTS, "source"), expected, atol=1e-6)


def test_a_text_of_too_many_tokens_is_cut_and_counted(tmp_path):
    encoder = StaticEncoder(static_folder(tmp_path / "e"))
    texts = ["haus " * 512 + "dog", "haus " * 512, "dog"]
    assert encoder.over_long(texts) == 1
    vectors = encoder.encode([*texts, "haus"], "source")
    np.testing.assert_allclose(vectors[0], vectors[3], atol=1e-5)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "not a tokenizer"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 50), "not a file of weights"),
    ],
)
def test_damaged_folders_are_refused(damage, message, tmp_path):
    folder = static_folder(tmp_path / "e")
    damage(folder)
    with pytest.raises(ModelError) as error:
        StaticEncoder(folder)
    assert message in str(error.value)
    assert str(error.value).startswith(str(folder))


def test_tokenizer_and_weights_of_two_models_are_refused(tmp_path):
    one, other = static_folder(tmp_path / "e"), static_folder(tmp_path / "f", [*WORDS, "more"], np.eye(15))
    (one / "tokenizer.json").write_bytes((other / "tokenizer.json").read_bytes())
    with pytest.raises(ModelError, match="not of one model"):
        StaticEncoder(one)


def test_values_that_are_not_finite_are_refused(tmp_path):
    folder = static_folder(tmp_path / "e", vectors=np.full((len(WORDS), 3), np.nan))
    with pytest.raises(ModelError, match="not finite"):
        StaticEncoder(folder)


def test_the_unknown_token_of_a_unigram_model_says_nothing(tmp_path):
    import tokenizers

    folder = static_folder(tmp_path / "e")
    pieces = [("<unk>", 0.0), *((word, -1.0) for word in WORDS)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    assert json.loads(tokenizer.to_str())["model"]["unk_id"] == 0
    vectors = StaticEncoder(folder).encode(["haus", "haus zzz", "zzz"], "source")
    assert vectors[0].any()
    assert not vectors[2].any()
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
