import json
import re

import numpy as np
import pytest
import torch

from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.errors import ModelError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.phrases import Phrases
from phrasetool.translator.decoding import translate
from phrasetool.translator.model import TranslatorModel, new_target_vectors
from phrasetool.translator.network import target_table
from phrasetool.translator.settings import TranslatorArchitecture
from phrasetool.vocabulary import Vocabulary
from tests.phrasetool.translator.small_translators import KINDS, small

SOURCE = Vocabulary([b"<unk>", *(b"s%d" % i for i in range(7))])
TARGET = Vocabulary([b"<unk>", *(b"t%d" % i for i in range(5))])


def neural_model(kind="gru", **training):
    module = small(kind)
    return TranslatorModel(SOURCE, TARGET, module.architecture, module.arrays(), 0.3, training)


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind):
    model = neural_model(kind, loss="cosine")
    model.save(tmp_path)
    loaded = TranslatorModel.load(tmp_path)
    assert isinstance(load_saved_model(tmp_path), TranslatorModel)
    assert (loaded.identity, loaded.signature, loaded.temperature) == (model.identity, model.signature, 0.3)
    assert loaded.signature.startswith(f"model:continuous-{model.identity}|loss:cosine|cell:")
    sources = Phrases.from_lists([[1, 2], [3]])
    assert translate(loaded.network, sources, 0.3) == translate(model.network, sources, 0.3)
    with pytest.raises(ModelError, match="a translator; this needs an autoencoder"):
        AutoencoderModel.load(tmp_path)


def test_identities_are_those_of_models_saved_before():
    vocabulary = Vocabulary([b"<unk>", b"a"])
    architecture = TranslatorArchitecture("gru", 2, 2, 1, False, 1, 2, 3)
    arrays = {"words": np.zeros((2, 2), np.float32), "targets": np.zeros((3, 3), np.float32)}
    assert TranslatorModel(vocabulary, vocabulary, architecture, arrays, 0.5).identity == "5dbfb9bd"


def test_incompatible_parts_are_refused(tmp_path):
    model = neural_model()
    arrays = {**model.arrays, "targets": model.arrays["targets"][1:]}
    with pytest.raises(ValueError, match=re.escape("targets has shape (6, 7), expected (7, 7)")):
        TranslatorModel(SOURCE, TARGET, model.architecture, arrays, 0.3)
    short = {name: array for name, array in model.arrays.items() if name != "compare.weight"}
    with pytest.raises(ModelError, match="do not fit the architecture"):
        _ = TranslatorModel(SOURCE, TARGET, model.architecture, short, 0.3).network
    model.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    changes = (
        {"cell": "rnn"}, {"layers": 2.5}, {"units": 1e300}, {"units": True}, {"input_feeding": None},
        {"input_feeding": "no"},
    )  # fmt: skip
    architectures = [{"architecture": {**config["architecture"], **change}} for change in changes]
    for broken in ({"temperature": "warm"}, *architectures):
        (tmp_path / "config.json").write_text(json.dumps({**config, **broken}))
        with pytest.raises(ModelError, match="does not describe the architecture"):
            TranslatorModel.load(tmp_path)
    for temperature in (0, -1, float("nan"), float("inf")):
        (tmp_path / "config.json").write_text(json.dumps({**config, "temperature": temperature}))
        with pytest.raises(ModelError, match=r"the temperature is \S+, expected a finite number above 0"):
            TranslatorModel.load(tmp_path)


def test_the_identity_depends_on_weights_words_and_the_temperature():
    model = neural_model()
    arrays = {**model.arrays, "read.bias": model.arrays["read.bias"] + 1}
    words = Vocabulary([*SOURCE.words[:-1], b"other"])
    others = [
        TranslatorModel(SOURCE, TARGET, model.architecture, arrays, 0.3),
        TranslatorModel(words, TARGET, model.architecture, model.arrays, 0.3),
        TranslatorModel(SOURCE, TARGET, model.architecture, model.arrays, 0.2),
    ]
    assert len({model.identity, *(other.identity for other in others)}) == 4


def test_a_new_word_is_generated_where_its_vector_is_nearest():
    model = neural_model()
    sources = Phrases.from_lists([[1, 2, 3]])
    (before,) = translate(model.network, sources, 0.3)
    encoded = model.network.encode(sources)
    predicted, _ = model.network.step(encoded, model.network.begin(encoded, 1), torch.tensor([-1]))
    vector = predicted.detach().numpy()[0]
    larger = model.with_words({b"new": 3 * vector, b"far": -vector})
    assert larger.target_vocabulary.words == [*TARGET.words, b"new", b"far"]
    np.testing.assert_allclose(larger.arrays["targets"][6], vector / np.linalg.norm(vector), rtol=1e-5)
    assert np.array_equal(larger.arrays["targets"][-1], model.arrays["targets"][-1])
    (after,) = translate(larger.network, sources, 0.3)
    assert after.words[0] == 6
    assert before.words[:1] != (6,)
    assert larger.identity != model.identity
    for invalid_vectors in ({b"t1": vector}, {b"x": vector[1:]}, {b"x": 0 * vector}):
        with pytest.raises(ValueError, match="in the vocabulary already, or its vector is zero"):
            model.with_words(invalid_vectors)
    with pytest.raises(ValueError, match="a softmax knows no word"):
        neural_model("softmax").with_words({b"new": vector})


def trained(centring):
    rng = np.random.default_rng(1)
    known = {word: rng.normal(1, 1, 7).astype(np.float32) for word in [*TARGET.words[1:], b"new", b"other"]}
    module = small("gru")
    arrays = {**module.arrays(), "targets": target_table(TARGET, known, centring, "mean", 1)}
    return TranslatorModel(SOURCE, TARGET, module.architecture, arrays, 0.3, {"centring": centring}), known


@pytest.mark.parametrize("centring", ["plain", "centred"])
def test_vectors_of_new_words_are_centred_like_the_targets(centring):
    model, known = trained(centring)
    result = new_target_vectors(model, [b"new", b"t1"], known)
    middle = np.mean([known[word] for word in TARGET.words[1:]], axis=0) if centring == "centred" else 0
    assert set(result) == {b"new"}
    np.testing.assert_allclose(result[b"new"], known[b"new"] - middle, rtol=1e-4, atol=1e-5)
    # As if the word had been in the vocabulary without changing its mean.
    row = model.with_words(result).arrays["targets"][-2]
    expected = known[b"new"] - middle
    np.testing.assert_allclose(row, expected / np.linalg.norm(expected), rtol=1e-4, atol=1e-5)


def test_other_vectors_are_refused():
    model, known = trained("plain")
    reversed_vectors = {word: vector[::-1].copy() for word, vector in known.items()}
    with pytest.raises(ValueError, match="not the vectors that the model was trained with"):
        new_target_vectors(model, [b"new"], reversed_vectors)
    with pytest.raises(ValueError, match="nowhere has no vector"):
        new_target_vectors(model, [b"nowhere"], known)
    with pytest.raises(ValueError, match="t0 has no vector"):
        new_target_vectors(model, [b"new"], {b"new": known[b"new"]})
    with pytest.raises(ValueError, match="the vector of new is not finite"):
        new_target_vectors(model, [b"new"], {**known, b"new": np.full(7, np.nan, np.float32)})
    with pytest.raises(ValueError, match="random vectors"):
        new_target_vectors(trained("random")[0], [b"new"], known)
