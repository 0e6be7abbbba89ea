"""Encoders in folders (static models, transformers, sentence-transformers), and encoders of other packages."""

import json

import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders import encoders
from phrasetool.text_encoders.encoders import SentenceEncoder, StaticEncoder, TransformerEncoder, find_text_encoder
from tests.text_encoder_folders import WORDS, letters_tokenizer, sentence_folder, static_folder, transformer_folder

TEXTS = ["abc", "a", "some words of a phrase", "abc def"]


def naive(table, text, weights=None):
    """Return the mean of the vectors of the known words, multiplied by their weights."""
    numbers = [WORDS.index(word) + 1 for word in text.split() if word in WORDS]
    if not numbers:
        return np.zeros(table.shape[1])
    factors = [1.0 if weights is None else weights[i] for i in numbers]
    return np.mean([factor * table[i].astype(np.float64) for factor, i in zip(factors, numbers, strict=True)], axis=0)


GERMAN = ["haus", "ein haus", "not a house", "haus unbekannt", "unbekannt", "", "dog dog dog"]


@pytest.mark.parametrize("unit", [False, True])
def test_vectors_are_means_of_known_words(unit, tmp_path):
    vectors = np.random.default_rng(1).normal(size=(len(WORDS), 5))
    folder = static_folder(tmp_path / "e", vectors=vectors, config={"normalize": unit})
    encoder = StaticEncoder(folder)
    assert encoder.dimension == 5
    expected = np.array([naive(np.vstack([np.ones(5), vectors]), text) for text in GERMAN])
    if unit:
        lengths = np.linalg.norm(expected, axis=1, keepdims=True)
        expected = np.divide(expected, lengths, out=np.zeros_like(expected), where=lengths > 0)
    np.testing.assert_allclose(encoder.encode(GERMAN, "source"), expected, atol=1e-6)
    assert not encoder.encode(["unbekannt", ""], "target").any()


def test_weights_and_mapping_of_tokens(tmp_path):
    rng = np.random.default_rng(1)
    vectors, weights = rng.normal(size=(len(WORDS), 5)), rng.random(len(WORDS) + 1).astype(np.float32)
    mapping = rng.permutation(len(WORDS) + 1)
    folder = static_folder(
        tmp_path / "e", vectors=vectors, extra={"weights": weights, "mapping": mapping}, config={"normalize": False}
    )
    table = np.vstack([np.ones(5), vectors])[mapping]
    expected = np.array([naive(table, text, weights) for text in GERMAN])
    np.testing.assert_allclose(StaticEncoder(folder).encode(GERMAN, "source"), expected, atol=1e-6)


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
def test_damaged_static_folders_are_refused(damage, message, tmp_path):
    folder = static_folder(tmp_path / "e")
    damage(folder)
    with pytest.raises(ModelError) as error:
        StaticEncoder(folder)
    assert message in str(error.value)
    assert str(error.value).startswith(str(folder))


def test_tokenizer_and_weights_of_two_models_are_refused(tmp_path):
    folder, larger_folder = static_folder(tmp_path / "e"), static_folder(tmp_path / "f", [*WORDS, "more"], np.eye(15))
    (folder / "tokenizer.json").write_bytes((larger_folder / "tokenizer.json").read_bytes())
    with pytest.raises(ModelError, match="not of one model"):
        StaticEncoder(folder)


def test_values_that_are_not_finite_are_refused(tmp_path):
    folder = static_folder(tmp_path / "e", vectors=np.full((len(WORDS), 3), np.nan))
    with pytest.raises(ModelError, match="not finite"):
        StaticEncoder(folder)


def test_the_unknown_token_of_a_unigram_model_is_ignored(tmp_path):
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return transformer_folder(tmp_path_factory.mktemp("encoder") / "plain")


def test_vectors_are_means_over_the_tokens(folder):
    import torch
    from transformers import BertModel

    encoder = TransformerEncoder(folder)
    assert encoder.dimension == 16
    model, tokenizer = BertModel.from_pretrained(folder).eval(), letters_tokenizer()
    # One text at a time, so that nothing is padded.
    with torch.no_grad():
        expected = [model(input_ids=torch.tensor([tokenizer.encode(t).ids]))[0][0].mean(0).numpy() for t in TEXTS]
    np.testing.assert_allclose(encoder.encode(TEXTS, "source"), np.array(expected), atol=1e-6)


def test_long_texts_are_cut_and_counted(folder):
    encoder = TransformerEncoder(folder)
    # 30 positions: 28 letters, and the two special tokens around a text.
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
    result = SentenceEncoder(sentence_encoder).encode(TEXTS, "source")
    expected = SentenceTransformer(str(sentence_encoder), device="cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(result, expected, atol=1e-6)
    assert np.abs(result - plain).max() > 1e-3


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


def test_the_files_in_a_folder_determine_the_kind_of_encoder(tmp_path):
    plain = transformer_folder(tmp_path / "plain")
    folders = {
        StaticEncoder: static_folder(tmp_path / "static"),
        SentenceEncoder: sentence_folder(tmp_path / "sentence", plain),
        TransformerEncoder: plain,
    }
    for kind, folder in folders.items():
        result = find_text_encoder(folder)
        encoder = result.load()
        assert type(encoder) is kind
        assert result.identity == encoder.identity
        assert encoder.encode(["a"], "source").shape == (1, encoder.dimension)
    assert len({find_text_encoder(folder).identity for folder in folders.values()}) == 3


def test_a_static_model_saved_by_sentence_transformers_is_a_static_encoder(tmp_path):
    folder = static_folder(tmp_path / "static")
    package = "sentence_transformers.models"
    (folder / "modules.json").write_text(
        f'[{{"idx": 0, "name": "0", "path": ".", "type": "{package}.StaticEmbedding"}},'
        f' {{"idx": 1, "name": "1", "path": "1_Normalize", "type": "{package}.Normalize"}}]'
    )
    assert type(find_text_encoder(folder).load()) is StaticEncoder


def test_a_folder_without_safetensors_is_refused(tmp_path):
    folder = transformer_folder(tmp_path / "plain")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="holds no weights in safetensors"):
        find_text_encoder(folder)


def test_a_folder_without_settings_is_refused(tmp_path):
    folder = transformer_folder(tmp_path / "plain")
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match="not an encoder; expected"):
        find_text_encoder(folder)


class Lengths:
    """An encoder of another package."""

    dimension = 2
    identity = "lengths-1"

    def __init__(self, path):
        self.path = path

    def encode(self, texts, side):
        return np.array([[len(text), side == "source"] for text in texts], np.float32)


class _Entry:
    def __init__(self, name, factory):
        self.name, self.factory = name, factory

    def load(self):
        return self.factory


@pytest.fixture
def registered(monkeypatch):
    def entries(group):
        assert group == "phrasetool.text_encoders"
        return [_Entry("lengths", Lengths), _Entry("broken", lambda path: object())]

    monkeypatch.setattr(encoders, "entry_points", entries)


def test_encoders_of_other_packages(registered, tmp_path):
    result = find_text_encoder(f"lengths:{tmp_path}")
    assert result.identity == "lengths-lengths-1"
    encoder = result.load()
    assert encoder.path == str(tmp_path)
    assert encoder.encode(["abc"], "target").tolist() == [[3, 0]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody:{}", "no installed package brings text encoders called nobody"),
        ("lengths:{}/none", "is not a folder; an encoder is a folder on this machine"),
        ("broken:{}", "the encoder has no dimension"),
    ],
)
def test_invalid_encoders_of_other_packages_are_refused(name, message, registered, tmp_path):
    with pytest.raises(ModelError) as error:
        find_text_encoder(name.format(tmp_path))
    assert message in str(error.value)
