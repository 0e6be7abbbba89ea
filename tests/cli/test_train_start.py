import json

import numpy as np
import pytest

from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool_cli.progress import TrainingProgress
from tests.cli.test_train import pair_lines
from tests.commands import run_inside, write

SMALL = ("--word-units", "8", "--hidden", "12", "--heads", "3", "--epochs", "6", "--min-count", "1", "-q")
FAST = ("--epochs", "2", "-q")
AUTOENCODER = ("--learning-rate", "0.001", "--source-autoencoder")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pairs, and an autoencoder of each language, trained on every second phrase."""
    folder = tmp_path_factory.mktemp("start")
    pairs = write(folder / "pairs.gz", pair_lines())
    for column, side in enumerate(("source", "target")):
        phrases = [line.split(b" ||| ")[column] for line in pair_lines().splitlines()]
        text = write(folder / f"{side}.txt", b"\n".join(phrases[column::2]) + b"\n")
        outcome = run_inside("train", "autoencoder", text, "-o", folder / side, "--seed", column, *SMALL)
        assert outcome.code == 0, outcome.err
    return folder, pairs


def autoencoder_options(folder):
    return ("--source-autoencoder", folder / "source", "--target-autoencoder", folder / "target")


def test_frozen_autoencoders_are_the_encoders(files, tmp_path):
    folder, pairs = files
    options = ("--freeze-encoders", "--loss", "syn-projection", "--epochs", "2")
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *autoencoder_options(folder), *options)
    assert outcome.code == 0, outcome.err
    assert "encoder mean-max" in outcome.err
    assert "n=24" in outcome.err
    model = BilingualModel.load(tmp_path / "m")
    assert (model.kind.word_units, model.kind.heads, model.dimension) == (8, 3, 24)
    for side in ("source", "target"):
        vocabulary = getattr(model, f"{side}_vocabulary")
        expected = AutoencoderModel.load(folder / side).encoder_arrays(vocabulary.words)
        for name, array in getattr(model, side).arrays().items():
            assert np.array_equal(array, expected[name]) != name.startswith("transform"), name
    training = json.loads((tmp_path / "m" / "config.json").read_text())["training"]
    assert training["source_autoencoder"] == str(folder / "source")
    assert training["freeze_encoders"] is True


@pytest.mark.parametrize("layers", ["fixed", "trained"])
def test_one_autoencoder_and_no_freezing(files, tmp_path, layers):
    folder, pairs = files
    start = ("--source-autoencoder", folder / "source")
    flags = ("--attention-layers", layers, "--learning-rate", "0.001") if layers == "trained" else ()
    # How far vectors move in an iteration depends on the temperature.
    flags = (*flags, "--temperature", "0.1")
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *start, "--epochs", "1", *flags)
    assert outcome.code == 0, outcome.err
    assert "source word vectors:" in outcome.err
    model = BilingualModel.load(tmp_path / "m")
    expected = AutoencoderModel.load(folder / "source").encoder_arrays(model.source_vocabulary.words)
    result = model.source.arrays()
    assert np.array_equal(result["query"], expected["query"]) is (layers == "fixed")
    for name in ("query", "word_vectors"):
        assert np.abs(result[name] - expected[name]).max() < 0.1
    assert not np.array_equal(result["word_vectors"], expected["word_vectors"])
    assert "source_autoencoder" in model.training
    assert "target_autoencoder" not in model.training


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--architecture", "rae"), 2, "architecture is rae, but the autoencoder in"),
        (("--dimension", "48"), 2, "dimension is 48, but the autoencoder in"),
        (("--heads", "2"), 2, "heads is 2, but the autoencoder in"),
        (("--vector-scale", "9"), 2, "--vector-scale is for new word vectors; autoencoders bring theirs"),
        (("--vectors", "centred"), 2, "autoencoders bring word vectors; leave out --vectors"),
        (("--source-text", "mono.gz"), 2, "--source-autoencoder brings word vectors; leave out --source-text"),
        (("--target-vectors", "v.txt"), 2, "--target-autoencoder brings word vectors; leave out --target-vectors"),
    ],
)
def test_options_that_contradict_an_autoencoder_are_refused(files, tmp_path, arguments, code, message):
    folder, pairs = files
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *autoencoder_options(folder), *arguments, "-q")
    assert outcome.code == code
    assert message in outcome.err


def test_models_of_the_other_kind_are_refused(files, tmp_path):
    folder, pairs = files
    assert run_inside("train", pairs, "-o", tmp_path / "m", "--dimension", "6", "--epochs", "1", "-q").code == 0
    outcome = run_inside("train", pairs, "-o", tmp_path / "n", "--source-autoencoder", tmp_path / "m", "-q")
    assert "a model of phrase pairs; this needs an autoencoder of one language" in outcome.message
    for command in (("evaluate-model", pairs), ("annotate", pairs), ("prune", pairs, "-t", "0")):
        outcome = run_inside(*command, "-m", folder / "source")
        assert outcome.code == 1
        assert "an autoencoder of one language; this needs a model of phrase pairs" in outcome.message
    text = run_inside("inspect", folder / "source").out.decode()
    assert "model:autoencoder-" in text
    assert "text words" in text


def test_an_autoencoder_of_another_architecture_cannot_encode_phrases(files, tmp_path):
    folder, pairs = files
    options = ("--architecture", "mean", "-o", tmp_path / "mean", *SMALL)
    assert run_inside("train", "autoencoder", folder / "source.txt", *options).code == 0
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", "--source-autoencoder", tmp_path / "mean", "-q")
    assert outcome.code == 1
    assert f"{tmp_path / 'mean'}: a mean autoencoder has no mean-max encoder" in outcome.message


def test_a_phrase_beyond_the_limit_of_an_encoder_is_refused(tmp_path):
    pairs = write(tmp_path / "pairs.gz", b"".join(b"a%d a ||| b\n" % i for i in range(20)) + b"a " * 600 + b"||| b c\n")
    options = ("--architecture", "mean-max", "--dimension", "8", "--word-units", "4", "--max-length", "700", "-q")
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *options)
    assert outcome.code == 1
    assert "a text of 600 words is longer than the 511 that the model can encode" in outcome.message
    short = ("--max-length", "7", "--epochs", "1")
    assert run_inside("train", pairs, "-o", tmp_path / "m", *options, *short).code == 0
    table = write(tmp_path / "t.gz", b"a " * 600 + b"||| b ||| 0.5\n")
    outcome = run_inside("annotate", table, "-m", tmp_path / "m", "-o", tmp_path / "a.gz", "-q")
    assert outcome.code == 1
    assert "a text of 600 words is longer than the 511 that the model can encode" in outcome.message
    assert not (tmp_path / "a.gz").exists()


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        (
            "--source-vectors",
            b"2 50\n" + b"".join(b"x%d%s\n" % (i, b" 1" * 50) for i in range(2)),
            "has vectors for none of the",
        ),
        ("--target-vectors", b"2 3\nc1 1 2 3\nc2 1 2 3\n", "the vectors have dimension 3, but dimension 50"),
        ("--target-vectors", b"", "the file contains no vectors"),
        ("--source-text", b"other words only\n" * 9, "has no word of the source"),
    ],
)
def test_vectors_and_texts_without_known_words_are_refused(tmp_path, option, content, message):
    # Too few words to recognise another language by the share of known words.
    pairs = write(tmp_path / "pairs", b"".join(b"a%d b ||| c%d d\n" % (i, i) for i in range(30)))
    start = write(tmp_path / "start", content)
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", "--epochs", 1, option, start, "-q")
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {start}: {message}")
    assert not (tmp_path / "m").exists()


def interrupted(pairs, folder, monkeypatch, *options):
    """Interrupt a training after its first iteration."""

    def stop(progress, report):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TrainingProgress, "report", stop)
        outcome = run_inside("train", pairs, "-o", folder, *FAST, *options)
    assert "continue with" in outcome.err


def test_a_training_is_not_resumed_with_other_initial_vectors(files, tmp_path, monkeypatch):
    folder, pairs = files
    text = write(tmp_path / "mono.txt", (folder / "source.txt").read_bytes() * 3)
    changed = write(tmp_path / "other.txt", (folder / "source.txt").read_bytes() * 4)
    refused = "cannot resume: the initial vectors or encoders differ; use the original data and settings"

    def resumed(model, *options):
        return run_inside("train", pairs, "-o", model, *FAST, *options, "--resume")

    interrupted(pairs, tmp_path / "m", monkeypatch, "--source-text", text)
    for options in ((), ("--source-text", changed), ("--target-text", text), ("--source-text", text) * 2):
        assert refused in resumed(tmp_path / "m", *options).err
    # The content counts, not the name.
    renamed = write(tmp_path / "renamed.txt", text.read_bytes())
    assert resumed(tmp_path / "m", "--source-text", renamed).code == 0
    interrupted(pairs, tmp_path / "plain", monkeypatch)
    assert refused in resumed(tmp_path / "plain", "--source-text", text).err
    assert resumed(tmp_path / "plain").code == 0


def test_a_training_is_not_resumed_with_another_autoencoder(files, tmp_path, monkeypatch):
    folder, pairs = files
    interrupted(pairs, tmp_path / "m", monkeypatch, *AUTOENCODER, folder / "source")
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *FAST, *AUTOENCODER, folder / "target", "--resume")
    assert "cannot resume: the initial vectors or encoders differ" in outcome.err
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *FAST, *AUTOENCODER, folder / "source", "--resume")
    assert outcome.code == 0, outcome.err
