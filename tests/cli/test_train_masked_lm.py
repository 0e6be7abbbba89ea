import json
import signal
import subprocess
import time

import numpy as np
import pytest

from tests.cli.small_translator import bitext, sentences
from tests.commands import COMMAND, clean_environment, read, run_inside, run_outside, write

pytest.importorskip("transformers", reason="the extra `encoders` is not installed")
TINY = (
    "bert", "--preset", "tiny", "--epochs", 2, "--vocabulary-size", 60, "--batch-tokens", 256,
    "--learning-rate", 0.01, "--threads", 1,
)  # fmt: skip


@pytest.fixture
def files(tmp_path):
    return bitext(tmp_path / "text", "train", 100)


def train(*arguments):
    return run_inside("train", *TINY, *arguments)


def test_from_a_bitext_to_a_column_of_a_table(files, tmp_path):
    """A model is trained and a table is annotated, in separate processes."""
    more = write(tmp_path / "mono.gz", b"the old dog\n\na woman &apos;s ball\n" * 4)
    outcome = run_outside("train", *TINY, *files, "--monolingual", more, "-o", tmp_path / "bert", "--json",
                          tmp_path / "j.json")  # fmt: skip
    assert outcome.code == 0, outcome.err
    lines = outcome.err.splitlines()
    assert lines[0] == "phrasetool: 5 lines are held out as the development set"
    assert lines[1].startswith("phrasetool: 198 texts and 95 joined pairs, ")
    assert lines[1].endswith(" tokens; development set of 10 texts")
    assert "training on cpu, preset tiny, n=32, 60 pieces, into " in lines[2]
    assert "epoch 1/2: loss " in lines[3]
    assert "epoch 2/2: loss " in lines[4]
    assert " are predicted" in lines[4]
    document = json.loads((tmp_path / "j.json").read_text())
    assert lines[5].startswith(f"phrasetool: saved {document['signature']} to ")
    assert document["training"]["monolingual_files"] == [str(more)]
    assert [line["epoch"] for line in document["log"]] == [1, 2]
    assert "&apos;" not in (tmp_path / "bert" / "tokenizer.json").read_text()
    pairs = sorted(set(zip(*sentences(60), strict=True)))
    table = write(tmp_path / "t.gz", "".join(f"{s} ||| {t} ||| 0.5 ||| 0-0 ||| 1 1 1\n" for s, t in pairs).encode())
    outcome = run_outside("annotate", table, "--encoder", tmp_path / "bert", "-o", tmp_path / "out.gz", "--threads", 1)
    assert outcome.code == 0, outcome.err
    wrong = run_inside("annotate", table, "-m", tmp_path / "bert", "-o", tmp_path / "wrong.gz")
    expected = "this is a Hugging Face encoder, not a phrasetool model; `annotate` and `prune` take it with --encoder"
    assert wrong.message == f"phrasetool: {tmp_path / 'bert'}: {expected}"
    scores = [line.split(b" ||| ")[2].split() for line in read(tmp_path / "out.gz").splitlines()]
    assert len(scores) == len(pairs)
    assert all(len(row) > 1 and all(np.isfinite(float(score)) for score in row) for row in scores)
    assert len({row[1] for row in scores}) > len(pairs) // 2


def test_text_of_one_language(files, tmp_path):
    outcome = train(files[0], "-o", tmp_path / "bert")
    assert outcome.code == 0, outcome.err
    assert " and 0 joined pairs, " in outcome.err
    again = train(files[0], "-o", tmp_path / "bert", "-q")
    assert "the folder already has a finished model" in again.message
    assert train(files[0], "-o", tmp_path / "bert", "-q", "--overwrite").code == 0


def test_an_interrupted_training_resumes_to_the_same_model(files, tmp_path):
    arguments = [*map(str, TINY), *map(str, files), "--epochs", "30"]
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
    assert "interrupted; continue with: phrasetool train bert --resume" in message
    outcome = run_inside("train", *arguments, "-o", tmp_path / "part", "--resume", "-q")
    assert (outcome.code, outcome.err) == (0, "")
    for name in ("model.safetensors", "tokenizer.json", "training.json", "training.jsonl"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_small_vocabularies_and_truncated_texts_are_reported(files, tmp_path):
    outcome = train(*files, "--vocabulary-size", 5000, "--positions", 8, "--layers", 2, "-o", tmp_path / "bert")
    assert outcome.code == 0, outcome.err
    assert json.loads((tmp_path / "bert" / "config.json").read_text())["num_hidden_layers"] == 2
    assert " subword units, fewer than the 5,000 requested" in outcome.err
    assert " texts and joined pairs of more than 8 tokens are cut" in outcome.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, t: (write(s, b""), t), "train.de: the file contains no text"),
        (lambda s, t: (s, write(t, t.read_bytes() + b"one more\n")), "train.de:101: the file ends after 100 lines"),
        (lambda s, t: (s, write(t, b"\n" + t.read_bytes())), "train.en:1: the line is empty"),
        (lambda s, t: (s, write(t, b"\xff\n" + t.read_bytes())), "train.en:1: not UTF-8"),
        (lambda s, t: (write(s, b"same\n" * 9),), "train.de: expected at least two different lines"),
        (lambda s, t: (write(s, "\u200b\n\u200c\n".encode() * 9),), "train.de: no text to learn subword units from"),
        (lambda s, t: (s, s), "is also the source file"),
        (lambda s, t: (s, t.with_suffix(".no")), "no such file"),
    ],
)
def test_invalid_texts(files, tmp_path, change, message):
    outcome = train(*change(*files), "-o", tmp_path / "bert", "-q")
    assert outcome.code == 1
    assert message.lower() in outcome.message.lower()
    assert not (tmp_path / "bert").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "b", "c"), "expected one text, or the two sides of a bitext; 3 files were given"),
        (("a", "--dev", "b", "c"), "--dev is a bitext; give both sides to learn from, or leave it out"),
        (("a", "--positions", "4"), "positions is 4, expected from 8 to 512"),
        (("a", "--units", "30", "--heads", "4"), "units is 30, expected a multiple of the 4 heads"),
        (("a", "--vocabulary-size", "9"), "vocabulary_size is 9, expected at least 32"),
        (
            ("a", "--max-length", "9"),
            "--max-length is for `train phrases or translator or classifier or syntax or autoencoder`",
        ),
    ],
)
def test_bad_usage(tmp_path, arguments, message):
    outcome = train(*arguments, "-o", tmp_path / "bert")
    assert outcome.code == 2
    assert message in outcome.err
