import hashlib
import json
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.disk.folders import staged
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.models.saved_model import load_saved_model, model_identity
from phrasetool.phrase_encoder.kinds import MeanMax, Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.vocabulary import Vocabulary
from tests.conftest import random_encoder


@pytest.fixture
def copy(model_folder, tmp_path):
    """Copy a model without its checksums, like old models, so that errors must be detected in the files themselves."""
    folder = shutil.copytree(model_folder, tmp_path / "copy")
    edit_config(folder, sha256={})
    return folder


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_weights(folder, change):
    path = folder / "weights.safetensors"
    weights = load_file(path)
    change(weights)
    save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, path)


def refused(folder, *names):
    with pytest.raises(ModelError) as error:
        load_saved_model(folder)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(str(folder))
    for name in names:
        assert name in message
    return message


def test_round_trip(any_model, any_model_folder):
    model, loaded = any_model, load_saved_model(str(any_model_folder))
    assert loaded.weights().keys() == model.weights().keys()
    for name, array in model.weights().items():
        np.testing.assert_array_equal(loaded.weights()[name], array)
    assert loaded.source_vocabulary.words == model.source_vocabulary.words
    assert loaded.source_vocabulary.counts.tolist() == model.source_vocabulary.counts.tolist()
    assert loaded.target_vocabulary.words == model.target_vocabulary.words
    assert loaded.training == {"loss": "none"}
    assert loaded.signature == model.signature
    assert loaded.kind == model.kind
    label = model.kind.name.replace("-", "_")
    assert loaded.columns == (f"{label}_st", f"{label}_ts")


def test_files_of_a_folder(model_folder):
    assert sorted(os.listdir(model_folder)) == ["config.json", "source.vocab", "target.vocab", "weights.safetensors"]
    config = json.loads((model_folder / "config.json").read_text())
    assert config["format_version"] == 1
    assert config["model"] == "brae"
    assert config["dimension"] == 10
    assert config["columns"] == ["rae_st", "rae_ts"]
    assert config["encoder"] == "rae"
    assert "encoder_options" not in config


def test_options_of_the_encoder_are_stored(any_model, any_model_folder):
    config = json.loads((any_model_folder / "config.json").read_text())
    assert config["encoder"] == any_model.kind.name
    expected = {
        "mean-max": {"word_units": 6, "heads": 2, "feed_forward": 7, "dropout": 0.0, "layers": "fixed"},
        "mean": {"transformation": "learnt"},
    }
    assert config.get("encoder_options") == expected.get(any_model.kind.name)


def test_same_model_same_bytes(any_model, any_model_folder, tmp_path):
    any_model.save(tmp_path / "again")
    for name in os.listdir(any_model_folder):
        assert (tmp_path / "again" / name).read_bytes() == (any_model_folder / name).read_bytes()


def test_saving_over_a_model_keeps_other_files(model, copy):
    (copy / "training.jsonl").write_text("{}\n")
    (copy / "weights.safetensors").write_bytes(b"broken")
    model.save(copy)
    assert (copy / "training.jsonl").read_text() == "{}\n"
    assert load_saved_model(copy).identity == model.identity


def test_missing_folder(tmp_path):
    assert "no such model folder" in refused(tmp_path / "none")


def test_file_instead_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file")


@pytest.mark.parametrize("name", ["config.json", "source.vocab", "target.vocab", "weights.safetensors"])
def test_missing_file(copy, name):
    (copy / name).unlink()
    refused(copy, name)


@pytest.mark.parametrize("name", ["config.json", "source.vocab", "target.vocab", "weights.safetensors"])
@pytest.mark.parametrize("share", [0, 0.3, 0.95])
def test_truncated_file(copy, name, share):
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data[: int(len(data) * share)])
    refused(copy)


@pytest.mark.parametrize("name", ["config.json", "source.vocab", "target.vocab", "weights.safetensors"])
@pytest.mark.parametrize("data", [b"\xff\xfe\x00rubbish", b"\x80\x04\x95pickle.", b"[]"])
def test_rubbish(copy, name, data):
    (copy / name).write_bytes(data)
    refused(copy, name)


@pytest.mark.parametrize("version", [0, 2, "1", None, [1]])
def test_other_format_version(copy, version):
    edit_config(copy, format_version=version)
    message = refused(copy, "config.json")
    assert f"{version!r}" in message
    assert "reads version 1" in message


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "siamese"},
        {"model": None},
        {"model": ["brae"]},
        {"encoder": "transformer"},
        {"encoder": None},
        {"encoder": ["rae"]},
        {"encoder_options": {"heads": 4}},
        {"encoder_options": [4]},
        {"dimension": 11},
        {"dimension": "10"},
        {"training": 5},
    ],
    ids=str,
)
def test_invalid_configs(copy, changes):
    edit_config(copy, **changes)
    refused(copy, "config.json")


def transpose(name):
    return lambda weights: weights.update({name: weights[name].T})


@pytest.mark.parametrize(
    "change",
    [
        transpose("source.compose"),
        transpose("target.reconstruct"),
        transpose("source.word_vectors"),
        lambda weights: weights.pop("target.transform_bias"),
        lambda weights: weights.update({"source.compose": weights["source.reconstruct"]}),
        lambda weights: weights.update({"source.compose": weights["source.compose"].astype(np.float64)}),
        lambda weights: weights.update({"source.compose": weights["source.compose"].astype(np.float16)}),
        lambda weights: weights.update({"source.transform": weights["source.transform"] * np.float32(np.nan)}),
        lambda weights: weights.update({"source.word_vectors": weights["source.word_vectors"][:-1]}),
        lambda weights: weights.update({"source.word_vectors": np.zeros((0, 10), np.float32)}),
    ],
    ids=["W1", "W2", "L", "missing", "swapped", "float64", "float16", "NaN", "short", "none"],
)
def test_invalid_weights(copy, change):
    edit_weights(copy, change)
    refused(copy)


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def shuffle_lines(path):
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, *reversed(rest)]))


def zero_a_matrix(path):
    edit_weights(path.parent, lambda weights: weights["source.compose"].fill(0))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("weights.safetensors", flip_a_bit), ("weights.safetensors", zero_a_matrix), ("target.vocab", flip_a_bit),
        ("source.vocab", shuffle_lines),
    ],
)  # fmt: skip
def test_a_file_that_was_not_saved_with_the_others(model_folder, tmp_path, name, damage):
    folder = shutil.copytree(model_folder, tmp_path / "copy")
    damage(folder / name)
    assert f"{name}: is not the file that was saved with config.json" in refused(folder)


@pytest.mark.parametrize("sums", [[], {"../config.json": "0"}, {"/dev/zero": "0"}, {"gone": "0"}])
def test_invalid_checksums(copy, sums):
    edit_config(copy, sha256=sums)
    refused(copy, "copy")


def test_a_deeply_nested_config(copy):
    (copy / "config.json").write_text("[" * 100_000)
    assert "not valid JSON" in refused(copy)


def test_vocabulary_of_another_size(copy):
    with (copy / "target.vocab").open("ab") as file:
        file.write(b"more\t1\n")
    message = refused(copy)
    assert "14 target word vectors for 15 words" in message


def test_sides_swapped(copy):
    (copy / "source.vocab").write_bytes(b"<unk>\t0\na\t1\n")
    refused(copy)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"encoder": "transformer"}, ["unknown encoder 'transformer'", "rae, mean-max"]),
        ({"encoder_options": {"width": 3}}, ["no option width", "word_units, heads, feed_forward, dropout"]),
        ({"encoder_options": {"heads": "2"}}, ["heads is '2'", "a whole number"]),
        ({"encoder_options": {"heads": 5}}, ["5 heads cannot share 6 hidden units"]),
    ],
    ids=str,
)
def test_unknown_encoders_and_invalid_options(tmp_path, changes, names):
    vocabulary, kind = Vocabulary([b"<unk>", b"a"]), MeanMax(word_units=6, heads=2)
    sides = [random_encoder(kind, 2, 12, seed) for seed in (1, 2)]
    BilingualModel(vocabulary, vocabulary, *sides, kind).save(tmp_path / "m")
    edit_config(tmp_path / "m", **changes)
    refused(tmp_path / "m", *names)


def test_autoencoders_and_models_of_pairs_are_not_interchangeable(model_folder, copy):
    assert BilingualModel.load(model_folder).kind == Rae()
    with pytest.raises(ModelError, match=r"a model of phrase pairs; this needs an autoencoder of one language$"):
        AutoencoderModel.load(model_folder)
    edit_config(copy, model="autoencoder")
    with pytest.raises(ModelError, match=r"an autoencoder of one language; this needs a model of phrase pairs"):
        BilingualModel.load(copy)


def test_a_folder_that_cannot_be_created(model, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(PhraseToolError, match="file"):
        model.save(tmp_path / "file")
    with pytest.raises(PhraseToolError, match="file"):
        model.save(tmp_path / "file" / "model")


def test_a_save_that_dies_leaves_the_old_model(model, copy):
    with pytest.raises(KeyboardInterrupt), staged(copy) as stage:  # noqa: PT012
        (stage / "weights.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt
    assert sorted(os.listdir(copy)) == ["config.json", "source.vocab", "target.vocab", "weights.safetensors"]
    assert load_saved_model(copy).identity == model.identity


def test_a_first_save_that_dies_leaves_no_model(model, tmp_path):
    with pytest.raises(KeyboardInterrupt), staged(tmp_path / "new") as stage:  # noqa: PT012
        model.save_files(stage)
        raise KeyboardInterrupt
    assert not list((tmp_path / "new").iterdir())


ARRAYS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.zeros(2, np.float32)}
WORDS = Vocabulary([b"<unk>", b"x"], [1, 1])


def test_the_identity_covers_all_parts_of_a_model_in_order():
    expected = hashlib.sha256(b"head" + b"a" + bytes(8) + b"b" + ARRAYS["b"].tobytes() + b"<unk>\nx" * 2 + b"tail")
    assert model_identity("head", ARRAYS, (WORDS, WORDS), "tail") == expected.hexdigest()[:8]


def test_the_identity_does_not_depend_on_the_memory_layout():
    transposed = {**ARRAYS, "b": np.ascontiguousarray(ARRAYS["b"].T).T}
    assert model_identity("", transposed, (WORDS,)) == model_identity("", ARRAYS, (WORDS,))


def test_every_difference_changes_the_identity():
    other_vocabulary = Vocabulary([b"<unk>", b"y"], [1, 1])
    identities = [
        model_identity("", ARRAYS, (WORDS,)),
        model_identity("h", ARRAYS, (WORDS,)),
        model_identity("", ARRAYS, (WORDS,), "t"),
        model_identity("", ARRAYS, (other_vocabulary,)),
        model_identity("", {**ARRAYS, "a": np.ones(2, np.float32)}, (WORDS,)),
        model_identity("", {"b": ARRAYS["b"], "c": ARRAYS["a"]}, (WORDS,)),
    ]
    assert len(set(identities)) == len(identities)
