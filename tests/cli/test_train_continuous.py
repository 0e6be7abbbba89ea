import json
import re
import signal
import subprocess
import time

import pytest

from phrasetool.translator.model import TranslatorModel
from phrasetool_cli import progress
from tests.cli.small_translator import FAST, bitext, sentences, vector_file
from tests.commands import COMMAND, clean_environment, run_inside, write


@pytest.fixture
def files(tmp_path):
    return bitext(tmp_path / "text", "train", 80), bitext(tmp_path / "text", "dev", 20, 2)


def train(*arguments):
    return run_inside("train", *FAST, *arguments)


def test_messages_of_training(files, tmp_path):
    (source, target), development = files
    more = write(tmp_path / "mono", b"the dog is new\n" * 5)
    outcome = train(source, target, "--dev", *development, "--target-text", more, "-o", tmp_path / "m", "--json",
                    tmp_path / "j.json", "--max-length", 5)  # fmt: skip
    assert outcome.code == 0, outcome.err
    model = TranslatorModel.load(tmp_path / "m")
    lines = outcome.err.splitlines()
    long = sum(len(line.split()) > 5 for line in sentences(80)[0])
    assert lines[0] == f"phrasetool: {target}: {long} pairs of more than 5 words a side are left out"
    assert f"training target vectors with fastText on {80 - long + 5} lines, n=16" in lines[2]
    assert f"{80 - long} pairs, 12 and 12 words; 0.0% and 0.0% of the text unknown; development set of" in lines[3]
    assert lines[4].endswith(f"preset gru, loss syn-projection, n=16, into {tmp_path / 'm'}")
    assert "epoch 1/2: loss " in lines[5]
    assert " a word, " in lines[6]
    assert lines[7].startswith(f"phrasetool: saved {model.signature} to ")
    assert b"'s" in model.target_vocabulary.words
    assert model.training["escaped"] is True
    assert model.training["source_file"] == str(source)
    document = json.loads((tmp_path / "j.json").read_text())
    assert document["signature"] == model.signature
    assert [line["epoch"] for line in document["log"]] == [1, 2]
    again = train(source, target, "--dev", *development, "-o", tmp_path / "m", "-q")
    assert "the folder already has a finished model" in again.message


def test_duplicate_phrase_pairs_count_once_and_a_share_is_held_out(tmp_path):
    pairs = sorted({f"{s} ||| {t}" for s, t in zip(*sentences(300), strict=True)})
    once = write(tmp_path / "pairs", "".join(f"{pair}\n" for pair in pairs).encode())
    twice = write(
        tmp_path / "twice.gz", "".join(f"{pair} ||| {i + 2}\n" * (1 + i % 2) for i, pair in enumerate(pairs)).encode()
    )
    identities = set()
    for file in (once, twice):
        outcome = train(file, "-o", tmp_path / "m", "--overwrite", "--loss", "cosine")
        assert outcome.code == 0, outcome.err
        assert "pairs are held out as the development set" in outcome.err
        model = TranslatorModel.load(tmp_path / "m")
        identities.add(model.identity)
        assert model.training["pairs_file"] == str(file)
    assert len(identities) == 1


@pytest.mark.parametrize("loss", ["cross-entropy", "cross-entropy-tied", "vmf"])
def test_other_losses_presets_and_options(files, tmp_path, loss):
    outcome = train(*files[0], "--dev", *files[1], "--loss", loss, "--preset", "transformer", "--schedule", "linear",
                    "--dropout", 0.1, "-o", tmp_path / "m", "-q")  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    model = TranslatorModel.load(tmp_path / "m")
    assert model.architecture.cell == "transformer"
    assert model.architecture.continuous == (loss == "vmf")
    assert model.training["schedule"] == "linear"


def test_an_interrupted_training_resumes_to_the_same_model(files, tmp_path, monkeypatch):
    (source, target), development = files
    arguments = [*map(str, FAST), str(source), str(target), "--dev", *map(str, development), "--epochs", "20"]
    assert run_inside("train", *arguments, "-o", tmp_path / "whole", "-q").code == 0
    command = [*COMMAND, "train", *arguments, "-o", str(tmp_path / "part")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=clean_environment(), text=True)
    while not (tmp_path / "part" / "checkpoint.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=60)[1].splitlines()[-1]
    if process.returncode == 0:
        pytest.skip("it was finished before the signal came")
    assert process.returncode == 130
    assert "interrupted; continue with: phrasetool train translator --resume" in message
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    outcome = run_inside("train", *arguments, "-o", tmp_path / "part", "--resume")
    assert outcome.code == 0
    # Progress continues after at least one epoch of 80 pairs.
    shown = re.findall(r"train: ([0-9,]+) of 1,600 pairs", outcome.err)
    assert int(shown[0].replace(",", "")) > 80
    assert shown[-1] == "1,600"
    for name in ("weights.safetensors", "training.jsonl"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_vectors_from_a_file(files, tmp_path):
    vectors = vector_file(tmp_path, dog=None)
    outcome = train(*files[0], "--dev", *files[1], "--target-vectors", vectors, "-o", tmp_path / "m")
    assert outcome.code == 0, outcome.err
    assert f"11 of 12 target words have a vector in {vectors}" in outcome.err
    assert b"dog" not in TranslatorModel.load(tmp_path / "m").target_vocabulary.words


ROW = " ".join(["0.5"] * 16)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dog": " ".join(["0"] * 16)}, "vectors: the vector of the target word dog is zero"),
        ({"dog": " ".join(["nan"] * 16)}, "vectors: the vector of 'dog' has a number that is not finite"),
        ({"dog": ROW, "man": ROW}, "have the same vector"),
    ],
)
def test_invalid_vectors(files, tmp_path, changes, message):
    vectors = vector_file(tmp_path, **changes)
    outcome = train(*files[0], "--dev", *files[1], "--target-vectors", vectors, "-o", tmp_path / "m", "-q")
    assert outcome.code == 1
    assert message in outcome.message
    assert not (tmp_path / "m").exists()


def test_vectors_of_another_dimension_or_of_no_word(files, tmp_path):
    outcome = train(
        *files[0], "--dev", *files[1], "--target-vectors", vector_file(tmp_path, 9), "-o", tmp_path / "m", "-q"
    )
    assert "dimension 9, but dimension 16 was requested" in outcome.message
    unrelated = write(tmp_path / "other", f"nothing {ROW}\n".encode())
    outcome = train(*files[0], "--dev", *files[1], "--target-vectors", unrelated, "-o", tmp_path / "m", "-q", "--force")
    assert outcome.code == 1
    assert "other: has vectors for none of the 12 words that need one" in outcome.err.splitlines()[-1]


def test_one_target_word_is_not_enough(tmp_path):
    source, target = write(tmp_path / "s", b"a b\nc\n" * 20), write(tmp_path / "t", b"x x\nx\n" * 20)
    outcome = train(source, target, "-o", tmp_path / "m", "-q")
    assert outcome.message.endswith("t: x is the only target word with a vector; expected at least two")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, t: (s, write(t, t.read_bytes() + b"one more\n")), "train.de:81: the file ends after 80 lines, but"),
        (lambda s, t: (s, write(t, b"\n" + t.read_bytes())), "train.en:1: the line is empty"),
        (lambda s, t: (s, s), "is also the source file"),
        (lambda s, t: (s, t.with_suffix(".no")), "no such file"),
    ],
)
def test_invalid_bitexts(files, tmp_path, change, message):
    outcome = train(*change(*files[0]), "--dev", *files[1], "-o", tmp_path / "m", "-q")
    assert outcome.code == 1
    assert message.lower() in outcome.message.lower()


def test_a_development_set_of_the_other_side_or_of_another_language(files, tmp_path):
    development = bitext(tmp_path, "large", 150, 4)
    outcome = train(*files[0], "--dev", *development[::-1], "-o", tmp_path / "m", "-q")
    assert "source and target look swapped" in outcome.message
    foreign = [write(tmp_path / f"foreign{i}", b"lorem ipsum dolor sit\n" * 100) for i in range(2)]
    outcome = train(*files[0], "--dev", *foreign, "-o", tmp_path / "m", "-q")
    assert "knows 0.0% of the running words of the source: it is in another language" in outcome.message
    outcome = train(*files[0], "--dev", *foreign, "-o", tmp_path / "m", "-q", "--force")
    assert outcome.code == 0
    assert outcome.err.count("warning") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "b", "c"), "expected the two sides of a bitext, or one file of phrase pairs; 3 files were given"),
        (("a", "b", "--alpha", "1"), "--alpha is for `train phrases`"),
        (("a", "b", "--architecture", "lstm"), "--architecture is for `train phrases or autoencoder`"),
        (("a", "b", "--loss", "max-margin"), "unknown loss 'max-margin' of a translator"),
        (("a", "b", "--loss", "cross-entropy", "--margin", "1"), "cross-entropy has no option margin"),
        (("a", "b", "--preset", "rnn"), "preset is 'rnn', expected one of lstm, gru, transformer"),
        (("a", "b", "--target-vectors", "v", "--target-text", "t"), "leave out --target-text"),
    ],
)
def test_bad_usage(tmp_path, arguments, message):
    outcome = run_inside("train", "translator", *arguments, "-o", tmp_path / "m")
    assert outcome.code == 2
    assert message in outcome.err
    outcome = run_inside("train", "a", "--loss", "cross-entropy", "-o", tmp_path / "m")
    assert "'cross-entropy' is not one of 'in-batch'" in outcome.err
    outcome = run_inside("train", "a", "--dev", "b", "c", "-o", tmp_path / "m")
    assert "--dev is for `train translator or classifier or bert`" in outcome.err
