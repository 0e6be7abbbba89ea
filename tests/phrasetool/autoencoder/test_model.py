import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from phrasetool.autoencoder.inference import encode_texts
from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.autoencoder.settings import ARCHITECTURES, TextArchitecture
from phrasetool.errors import ModelError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.phrase_encoder.encoder import encoder_kind
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import Vocabulary

WORDS = [b"<unk>", b"a", b"b", b"'s", b"c"]


def make(name="mean-max", seed=0):
    architecture = TextArchitecture(name, 4, 8, 2, 6)
    arrays = architecture.initial(len(WORDS), np.random.default_rng(seed))
    return AutoencoderModel(Vocabulary(WORDS, [9, 5, 4, 3, 2]), architecture, arrays, {"epochs": 3})


@pytest.fixture
def folder(tmp_path):
    make().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_round_trip(name, tmp_path):
    model = make(name)
    model.save(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "text.vocab", "weights.safetensors"]
    for loaded in (load_saved_model(tmp_path), AutoencoderModel.load(tmp_path)):
        assert loaded.signature == model.signature
        assert loaded.architecture == model.architecture
        assert loaded.vocabulary.counts.tolist() == [9, 5, 4, 3, 2]
        assert loaded.training == {"epochs": 3}
        for key, array in model.weights().items():
            np.testing.assert_array_equal(loaded.weights()[key], array)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model"] == "autoencoder"
    assert config["dimension"] == model.dimension
    assert config["architecture"]["name"] == name


def test_different_models_have_different_identities():
    model = make()
    words = Vocabulary([*WORDS[:-1], b"d"])
    other_words = AutoencoderModel(words, model.architecture, model.arrays)
    other_heads = AutoencoderModel(model.vocabulary, TextArchitecture("mean-max", 4, 8, 4, 6), model.arrays)
    assert len({model.identity, make(seed=1).identity, other_words.identity, other_heads.identity}) == 4
    assert make().identity == model.identity
    assert model.signature == f"model:autoencoder-{model.identity}|architecture:mean-max|n:16"


def test_the_encoder_of_phrases_gives_the_vectors_of_the_texts():
    from phrasetool.phrase_encoder.networks import MeanMaxEncoder

    model = make()
    parameters = encoder_kind("mean-max", {"word_units": 4, "heads": 2, "feed_forward": 6}).parameters(
        model.encoder_arrays([b"<unk>", b"c", b"zebra", b"a"])
    )
    vectors, _ = MeanMaxEncoder(parameters, 2, 0.0)(Phrases.from_lists([[1, 3, 1], [2, 3]]))
    expected = encode_texts(model, Phrases.from_lists([[4, 1, 4], [0, 1]]))
    np.testing.assert_allclose(vectors.detach().numpy(), expected, atol=1e-5)
    np.testing.assert_array_equal(parameters.transform, np.eye(16))


@pytest.mark.parametrize("name", ARCHITECTURES[1:])
def test_other_architectures_have_no_phrase_encoder(name):
    with pytest.raises(ModelError, match=f"a {name} autoencoder has no mean-max encoder; .* mean-max"):
        make(name).encoder_arrays(WORDS)


def spoil_config(config):
    config["architecture"] = {"name": "mean-max"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda weights: weights.pop("gated_gain"), "the weights lack 'gated_gain'"),
        (lambda weights: weights.update(words=weights["words"][:-1]), r"words is float32 \(6, 4\), expected"),
        (lambda weights: weights["output"].fill(np.nan), "output holds values that are not finite"),
    ],
)
def test_damaged_weights_are_refused(folder, spoil, message):
    weights = load_file(folder / "weights.safetensors")
    spoil(weights)
    save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, folder / "weights.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "sha256": {}}))
    with pytest.raises(ModelError, match=message):
        load_saved_model(folder)


@pytest.mark.parametrize("architecture", [None, {}, {"name": "mean-max"}, "mean-max", {"depth": 4}])
def test_a_damaged_description_is_refused(folder, architecture):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architecture": architecture}))
    with pytest.raises(ModelError, match=r"config.json does not describe the architecture"):
        load_saved_model(folder)
