import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders import loading
from phrasetool.text_encoders.loading import find_text_encoder
from phrasetool.text_encoders.static_encoder import StaticEncoder
from phrasetool.text_encoders.transformer_encoder import SentenceEncoder, TransformerEncoder
from tests.text_encoder_folders import sentence_folder, static_folder, transformer_folder


def test_kinds_are_told_by_what_folders_hold(tmp_path):
    plain = transformer_folder(tmp_path / "plain")
    folders = {
        StaticEncoder: static_folder(tmp_path / "static"),
        SentenceEncoder: sentence_folder(tmp_path / "sentence", plain),
        TransformerEncoder: plain,
    }
    for kind, folder in folders.items():
        found = find_text_encoder(folder)
        encoder = found.load()
        assert type(encoder) is kind
        assert found.identity == encoder.identity
        assert encoder.encode(["a"], "source").shape == (1, encoder.dimension)
    assert len({find_text_encoder(folder).identity for folder in folders.values()}) == 3


def test_a_static_model_that_sentence_transformers_could_read_is_read_here(tmp_path):
    folder = static_folder(tmp_path / "static")
    rooms = "sentence_transformers.models"
    (folder / "modules.json").write_text(
        f'[{{"idx": 0, "name": "0", "path": ".", "type": "{rooms}.StaticEmbedding"}},'
        f' {{"idx": 1, "name": "1", "path": "1_Normalize", "type": "{rooms}.Normalize"}}]'
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
    with pytest.raises(ModelError, match="no encoder; expected"):
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

    monkeypatch.setattr(loading, "entry_points", entries)


def test_encoders_of_other_packages(registered, tmp_path):
    found = find_text_encoder(f"lengths:{tmp_path}")
    assert found.identity == "lengths-lengths-1"
    encoder = found.load()
    assert encoder.path == str(tmp_path)
    assert encoder.encode(["abc"], "target").tolist() == [[3, 0]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody:{}", "no installed package brings text encoders called nobody"),
        ("lengths:{}/none", "is no folder; an encoder is a folder on this machine"),
        ("broken:{}", "the encoder has no dimension"),
    ],
)
def test_what_packages_cannot_give_is_refused(name, message, registered, tmp_path):
    with pytest.raises(ModelError) as error:
        find_text_encoder(name.format(tmp_path))
    assert message in str(error.value)
