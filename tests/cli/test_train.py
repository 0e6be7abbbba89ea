import json
import os
import signal
import subprocess

import numpy as np
import pytest

from phrasetool.models.saved_model import load_saved_model
from tests.commands import COMMAND, clean_environment, run_inside, run_outside, write
from tests.variants import for_each

DIGITS = [f"{a}{b}" for a in "abcde" for b in "123456"]


def pair_lines():
    """Return pairs of a toy language pair: the target has the words of the source in capitals, in reverse order."""
    lines = []
    for i, first in enumerate(DIGITS):
        lines.append(f"{first} ||| {first.upper()} ||| 2")
        for second in DIGITS[i % 3 :: 3]:
            lines.append(f"{first} {second} ||| {second.upper()} {first.upper()}")
    return "\n".join(lines).encode() + b"\n"


FAST = ("--dimension", "12", "--epochs", "3", "--quiet")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return write(tmp_path_factory.mktemp("pairs") / "pairs.gz", pair_lines())


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    assert run_inside("train", pairs, "-o", folder, "--dimension", "12", "--epochs", "20").code == 0
    return folder


def test_messages_of_training(pairs, tmp_path):
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", "--dimension", "8", "--epochs", "2")
    assert outcome.code == 0
    assert "training on cpu, loss in-batch, n=8" in outcome.err
    assert "train 2/2: error" in outcome.err
    assert f"saved {load_saved_model(tmp_path / 'm').signature}" in outcome.err


def test_a_seed_fixes_the_model(pairs, tmp_path):
    names = []
    for number, seed in enumerate(("1", "1", "2")):
        folder = tmp_path / str(number)
        assert run_inside("train", pairs, "-o", folder, "--seed", seed, *FAST).code == 0
        names.append(load_saved_model(folder).identity)
    assert names[0] == names[1] != names[2]


def test_threads_do_not_change_the_model(pairs, tmp_path):
    names = set()
    for threads in ("1", "2"):
        run_inside("train", pairs, "-o", tmp_path / threads, "--threads", threads, *FAST)
        names.add(load_saved_model(tmp_path / threads).identity)
    assert len(names) == 1


@pytest.mark.parametrize("extra", [("--loss", "max-margin"), ("--vectors", "random"), ("--min-pair-count", "2")])
def test_options_are_saved(pairs, tmp_path, extra):
    assert run_inside("train", pairs, "-o", tmp_path / "m", *FAST, *extra).code == 0
    training = json.loads((tmp_path / "m" / "config.json").read_text())["training"]
    assert training["loss"] == ("max-margin" if "max-margin" in extra else "in-batch")
    assert training["pairs"] == (30 if "--min-pair-count" in extra else 330)
    assert training["pairs_file"] == str(pairs)


def test_monolingual_text_and_vector_files(pairs, tmp_path):
    text = write(tmp_path / "mono.gz", b"a1 a2 a3\nb1 &apos;s b2\n" * 20)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"{word.upper()} {' '.join(['0.5'] * 12)}\n" for word in DIGITS))
    outcome = run_inside(
        "train", pairs, "-o", tmp_path / "m", "--dimension", "12", "--epochs", "1",
        "--source-text", text, "--target-vectors", vectors,
    )  # fmt: skip
    assert outcome.code == 0
    assert "source word vectors: 16.7% of the words" in outcome.err
    assert "target word vectors: 100.0% of the words" in outcome.err
    outcome = run_inside("train", pairs, "-o", tmp_path / "n", "--target-vectors", vectors, "--quiet")
    assert outcome.code == 1
    assert "have dimension 12, but dimension 50" in outcome.message


def test_initial_word_vectors(pairs, tmp_path):
    """Frozen encoders keep their initial word vectors."""
    matrices = {}
    for vectors in ("word2vec", "centred", "random"):
        options = ("--vectors", vectors, "--freeze-encoders", "--epochs", "1", "--dimension", "12")
        outcome = run_inside("train", pairs, "-o", tmp_path / vectors, *options)
        assert outcome.code == 0
        assert ("start from known vectors" in outcome.err) == (vectors != "random")
        matrices[vectors] = load_saved_model(tmp_path / vectors).source.word_vectors[1:].astype(np.float64)
        assert json.loads((tmp_path / vectors / "config.json").read_text())["training"]["vectors"] == vectors
        assert np.sqrt((matrices[vectors] ** 2).mean()) == pytest.approx(0.3, rel=0.1)
    values = {name: np.linalg.svd(vectors, compute_uv=False) for name, vectors in matrices.items()}
    assert values["centred"][-1] < 1e-4 < values["word2vec"][-1]
    # The remaining singular values are scaled alike.
    np.testing.assert_allclose(
        values["centred"][:-1] / values["centred"][0], values["word2vec"][1:] / values["word2vec"][1], rtol=1e-3
    )


def test_interrupted_training_resumes_to_the_same_model(pairs, tmp_path):
    options = ("train", str(pairs), "--dimension", "12", "--epochs", "24")
    command = [*COMMAND, *options, "-o", str(tmp_path / "part")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=clean_environment(), text=True) as process:
        for line in process.stderr:
            if "train 2/" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(60) == 130
    assert "Traceback" not in rest
    assert (tmp_path / "part" / "checkpoint.safetensors").exists()
    assert not (tmp_path / "part" / "config.json").exists()
    assert run_outside(*options, "--resume", "-o", tmp_path / "part", "-q").code == 0
    assert run_inside(*options, "-o", tmp_path / "whole", "-q").code == 0
    histories = [(tmp_path / name / "training.jsonl").read_text().splitlines() for name in ("part", "whole")]
    assert histories[0] == histories[1]
    assert load_saved_model(tmp_path / "part").identity == load_saved_model(tmp_path / "whole").identity


@for_each(
    ("arguments", "code", "message"),
    [
        (("PAIRS", "--device", "cuda:99"), 1, "cuda:99 was requested|no usable GPU"),
        (("PAIRS", "--device", "quantum"), 1, "expected cpu, cuda or auto"),
        (("PAIRS", "--alpha", "2"), 2, "alpha is 2.0, expected from 0 to 1"),
        (("PAIRS", "--vectors", "glove"), 2, "vectors is 'glove', expected one of word2vec, centred, random"),
        (("PAIRS", "--vectors", "random", "--source-text", "a"), 2, "random draws all.*; leave out --source-text"),
        (("PAIRS", "--vectors", "random", "--target-vectors", "a"), 2, "leave out --target-vectors"),
        (("PAIRS", "--resume"), 1, "no checkpoint to resume from"),
        (("missing.gz",), 1, "missing.gz: No such file"),
        (("PAIRS", "--min-pair-count", "99"), 1, "no phrase pair"),
    ],
)
def test_bad_requests(pairs, tmp_path, monkeypatch, arguments, code, message):
    import re

    monkeypatch.chdir(tmp_path)
    arguments = [str(pairs) if argument == "PAIRS" else argument for argument in arguments]
    outcome = run_inside("train", *arguments, "-o", tmp_path / "m", "-q")
    assert outcome.code == code
    assert re.search(message, outcome.err)
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "m" / "config.json").exists()


def test_neighbours(pairs, trained):
    outcome = run_inside("neighbours", "a1", "b1", "-m", trained, "-k", "3", "--json")
    report = json.loads(outcome.out)
    assert report["phrase"] == "a1 b1"
    assert report["side"] == "source"
    assert len(report["source"]) == len(report["target"]) == 3
    assert all(entry["phrase"] != "a1 b1" for entry in report["source"])
    assert all(entry["phrase"].isupper() or entry["phrase"].upper() == entry["phrase"] for entry in report["target"])
    assert json.loads(run_inside("neighbours", "A1", "-m", trained, "--json").out)["side"] == "target"
    text = run_inside("neighbours", "A1", "-m", trained, "--pairs", pairs).out.decode()
    assert text.splitlines()[0] == "nearest in the same language (target)"
    assert "no word of" in run_inside("neighbours", "zebra", "-m", trained).message


def test_inspect_a_model(trained):
    text = run_inside("inspect", trained).out.decode()
    assert load_saved_model(trained).signature in text
    assert "source words   30" in text


def test_inspect_a_table(tmp_path):
    table = write(
        tmp_path / "t.gz",
        b"a ||| x ||| 0.5 1\na ||| y ||| 0 1\nb c |||  ||| 0.25 1 ||| 0-0\n"
        b"b ||| z\xff ||| 1 -1\na ||| x ||| 1 1\nbad\n",
    )
    text = run_inside("inspect", table, "-q").out.decode()
    for expected in (
        "6 entries, 4 sources",
        "1 with 1, 4 with 3, 1 with 4",
        "not sorted: line 5",
        "scores per entry     2",
        "0 .. 1, mean 0.55, 1 zeros",
        "-1 .. 1, mean 0.6, 1 negative",
        "1 sources occur again",
        "1 empty targets",
        "1 lines that are not UTF-8",
        "1 malformed lines",
        "line 6: expected at least 3 fields separated by |||, found 1",
    ):
        assert expected in text, text


@pytest.mark.requires_reference
def test_inspect_the_reference_table_and_its_order(reference):
    text = run_inside("inspect", reference / "phrase-table.gz", "-q").out.decode()
    assert "1,117,535 entries, 759,654 sources, 135,834,838 bytes" in text
    assert "sorted (LC_ALL=C)" in text


def test_the_model_defaults_to_the_environment(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("PHRASETOOL_MODEL", str(trained))
    monkeypatch.chdir(tmp_path)
    assert os.listdir(tmp_path) == []
    assert run_inside("neighbours", "a1", "--json").code == 0
    monkeypatch.setenv("PHRASETOOL_MODEL", str(tmp_path / "none"))
    assert "no such model folder" in run_inside("neighbours", "a1").message


def test_an_empty_name_is_not_the_current_folder(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(trained)
    monkeypatch.setenv("PHRASETOOL_MODEL", "")
    assert "phrasetool-model: no such model folder" in run_inside("neighbours", "a1").message
    write(tmp_path / "pairs", b"a ||| b\n")
    monkeypatch.chdir(tmp_path)
    for arguments, kind in (
        (["train", "pairs", "-o", ""], "folder"),
        (["neighbours", "a1", "-m", ""], "folder"),
        (["prune", "pairs", "-t", "0", "-m", ""], "folder"),
        (["decode", "--moses-ini", "", "pairs"], "file"),
        (["lm", "pairs", "-o", ""], "file"),
        (["annotate", "pairs", "--forced-pairs", ""], "file"),
        (["prune", "pairs", "-t", "0", "--method", "usage", "--forced-pairs", ""], "file"),
        (["prune", "pairs", "-t", "0", "--moses-ini", ""], "file"),
        (["prune", "pairs", "--bitext", "pairs", ""], "file"),
        (["train", "tagger", "--treebank", "de", ""], "file"),
        (["train", "syntax", "--language-bitext", "de", "", "en", "pairs", "--tagger", "t"], "file"),
        (["train", "bert", ""], "file"),
        (["inspect", ""], "file"),
        (["extract", "pairs", "pairs", "pairs", "-o", "out", "--lexical", ""], "file"),
        (["experiment", ""], "file"),
        (["demo", ""], "file"),
        (["lm", "pairs", ""], "file"),
    ):
        outcome = run_inside(*arguments)
        assert (outcome.code, f"expected the name of a {kind}, found ''" in outcome.err) == (2, True), outcome.err
    assert os.listdir(tmp_path) == ["pairs"]
