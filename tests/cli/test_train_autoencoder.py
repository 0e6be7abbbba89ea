import json

import pytest
import torch

from phrasetool.autoencoder.model import AutoencoderModel
from tests.commands import run_inside, write

FAST = ("--word-units", "8", "--hidden", "16", "--epochs", "2", "--threads", "1")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    lines = [f"the {a} &apos;s {b}" for a in ("cat", "dog", "cow") for b in ("hat", "ball", "bell")]
    lines.append("one line that is longer than the others are")
    return write(tmp_path_factory.mktemp("text") / "mono.gz", "\n".join(lines * 5).encode() + b"\n")


def test_messages_of_training(text, tmp_path):
    outcome = run_inside("train", "autoencoder", text, "-o", tmp_path / "m", *FAST, "--max-length", "8")
    assert outcome.code == 0, outcome.err
    model = AutoencoderModel.load(tmp_path / "m")
    assert outcome.err.splitlines() == [
        "phrasetool: 5 lines of more than 8 words are left out",
        "phrasetool: 45 texts, 8 words, 0.0% of the text unknown",
        f"phrasetool: training on cpu, mean-max autoencoder, n=32, into {tmp_path / 'm'}",
        *(line for line in outcome.err.splitlines() if "epoch" in line),
        next(line for line in outcome.err.splitlines() if f"saved {model.signature}" in line),
    ]
    assert "epoch 2/2: cross-entropy" in outcome.err
    assert b"'s" in model.vocabulary.words
    assert model.training["text_file"] == str(text)
    assert model.training["texts"] == 45


def test_a_text_from_standard_input_and_other_options(text, tmp_path):
    options = (*FAST, "--architecture", "lstm", "--min-count", "16", "--seed", "4", "-q")
    outcome = run_inside("train", "autoencoder", "-", "-o", tmp_path / "m", *options, stdin=b"a b\nb c\n" * 20)
    assert (outcome.code, outcome.err) == (0, "")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["architecture"]["name"] == "lstm"
    assert config["training"]["seed"] == 4
    assert AutoencoderModel.load(tmp_path / "m").vocabulary.words == [b"<unk>", b"b", b"a", b"c"]


@pytest.mark.parametrize(
    ("data", "options", "code", "message"),
    [
        (b"a\n\nb\n", (), 1, ":2: the line is empty; leave out lines without a word"),
        (b"a b c\n", ("--max-length", "2"), 1, "no line has 2 words or fewer"),
        (b"a\n", ("--heads", "3"), 2, "3 heads cannot share 16 hidden units; heads can be 1, 2, 4, 8, 16"),
        (b"a\n", ("--architecture", "lstm", "--heads", "2"), 2, "--heads is for self-attention; the architecture lstm"),
        (
            b"a\n",
            ("--architecture", "lstm-mean-max", "--feed-forward", "9"),
            2,
            "--feed-forward is for self-attention; the architecture lstm-mean-max has none",
        ),
        (b"a\n", ("--architecture", "rnn"), 2, "expected one of mean-max, mean, max, lstm-mean-max, lstm"),
        (b"a\n", ("--device", "quantum"), 1, "expected cpu, cuda or auto"),
        (b"a\n", ("--resume",), 1, "no checkpoint to resume from"),
    ],
)
def test_bad_requests(tmp_path, data, options, code, message):
    path = write(tmp_path / "text", data)
    outcome = run_inside("train", "autoencoder", path, "-o", tmp_path / "m", *FAST, *options, "-q")
    assert outcome.code == code
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "m" / "config.json").exists()


@pytest.mark.parametrize("kind", ["autoencoder", "bert", "classifier", "syntax"])
def test_a_precision_that_the_processor_lacks_is_refused_at_once(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    text, target = (write(tmp_path / name, b"a b\n") for name in ("text", "other"))
    inputs = {
        "syntax": ("--language-bitext", "de", text, "en", target, "--tagger", tmp_path),
        "classifier": (text, target, "--embeddings", "hf:bert", "--tune-embeddings"),
    }
    arguments = (*inputs.get(kind, (text,)), "-o", tmp_path / "m", "--device", "cpu", "-q")
    outcome = run_inside("train", kind, *arguments, "--precision", "bfloat16")
    assert outcome.code == 1, outcome.err
    assert "bfloat16 was requested, but cpu has no instructions for it; float32 is faster here" in outcome.err
    assert not (tmp_path / "m").exists()
