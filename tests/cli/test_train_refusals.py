"""Requests that `train` refuses before it starts, interruptions, and divergence."""

import os
import shutil
import signal
import subprocess

import numpy as np
import pytest

from phrasetool.models.saved_model import load_saved_model
from tests.cli.test_train import pair_lines
from tests.commands import COMMAND, clean_environment, run_inside, write
from tests.variants import for_each

FAST = ("--dimension", "6", "--epochs", "2", "--vectors", "random", "-q")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return write(tmp_path_factory.mktemp("pairs") / "pairs", pair_lines())


@pytest.fixture(scope="module")
def finished(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "m"
    assert run_inside("train", pairs, "-o", folder, *FAST).code == 0
    return folder


@pytest.fixture(scope="module")
def stopped(pairs, tmp_path_factory):
    """The folder of an interrupted training, and its last messages."""
    folder = tmp_path_factory.mktemp("stopped") / "a model"
    command = [*COMMAND, "train", str(pairs), "-o", str(folder), *FAST[:2], "--epochs", "500", *FAST[4:6]]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=clean_environment(), text=True) as process:
        for line in process.stderr:
            if "train 2/" in line:
                process.send_signal(signal.SIGINT)
                break
        messages = process.stderr.read()
        assert process.wait(60) == 130
    return folder, messages


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_finished_model_is_not_overwritten(pairs, finished):
    before = contents(finished)
    outcome = run_inside("train", pairs, "-o", finished, "--seed", "2", *FAST)
    assert outcome.code == 1
    assert outcome.message == (
        f"phrasetool: {finished}: the folder already has a finished model; name another folder with -o, or replace the "
        "model with --overwrite"
    )
    outcome = run_inside("train", pairs, "-o", finished, *FAST, "--resume")
    assert outcome.code == 1
    assert "the training is finished, there is nothing to resume; to train again, use --overwrite" in outcome.message
    outcome = run_inside("train", pairs, "-o", finished, *FAST, "--resume", "--overwrite")
    assert (outcome.code, "give --resume or --overwrite, not both" in outcome.message) == (2, True)
    assert contents(finished) == before


def test_a_finished_model_is_replaced_only_by_a_finished_model(pairs, finished, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(finished, folder)
    before = contents(folder)
    outcome = run_inside("train", pairs, "-o", folder, "--overwrite", *FAST, "--learning-rate", "1e6")
    assert outcome.code == 1
    assert contents(folder) == before
    assert run_inside("train", pairs, "-o", folder, "--overwrite", "--seed", "2", *FAST).code == 0
    assert load_saved_model(folder).identity != load_saved_model(finished).identity


def test_an_interrupted_training_prints_the_command_to_resume_it(stopped, pairs):
    folder, messages = stopped
    last = messages.splitlines()[-1]
    assert last == (
        f"phrasetool: interrupted; continue with: phrasetool train phrases --resume {pairs} -o '{folder}' --dimension "
        "6 --epochs 500 --vectors random"
    )
    assert (folder / "checkpoint.safetensors").exists()


def test_an_unfinished_training_is_not_replaced_by_accident(stopped, pairs, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(stopped[0], folder)
    before = contents(folder)
    outcome = run_inside("train", pairs, "-o", folder, *FAST)
    assert outcome.code == 1
    assert outcome.message == (
        f"phrasetool: {folder}: the folder already has an unfinished training; continue it with --resume, or start "
        "again with --overwrite"
    )
    assert contents(folder) == before
    assert run_inside("train", pairs, "-o", folder, *FAST, "--overwrite").code == 0
    assert "checkpoint.safetensors" not in contents(folder)


def test_an_autoencoder_that_learnt_nothing_is_saved_only_by_force(tmp_path):
    numbers = np.random.default_rng(0).integers(0, 30, (100, 6)).tolist()
    text = write(tmp_path / "text", b"".join(b" ".join(b"w%d" % n for n in line) + b"\n" for line in numbers))
    options = ("--architecture", "lstm", "--word-units", "6", "--hidden", "8")
    options += ("--epochs", "2", "--batch-size", "16", "--learning-rate", "2", "-q")
    outcome = run_inside("train", "autoencoder", text, "-o", tmp_path / "a", *options)
    assert outcome.code == 1
    assert "a: the trained model is no better than chance: the cross-entropy per word is" in outcome.message
    assert outcome.message.endswith("; --overwrite replaces the checkpoint, --resume --force saves the model anyway")
    assert not (tmp_path / "a" / "config.json").exists()
    outcome = run_inside("train", "autoencoder", text, "-o", tmp_path / "a", *options, "--resume", "--force")
    assert outcome.code == 0
    assert "warning: " in outcome.message
    assert (tmp_path / "a" / "config.json").exists()


def test_a_translator_that_learnt_nothing_is_saved_only_by_force(tmp_path):
    """Nothing can be learnt from two unrelated sides."""
    rng = np.random.default_rng(0)
    sides = []
    for side in ("de", "en"):
        lines = [b" ".join(b"%s%d" % (side.encode(), n) for n in row) for row in rng.integers(0, 30, (700, 5)).tolist()]
        write(tmp_path / f"dev.{side}", b"\n".join(lines[400:]) + b"\n")
        sides.append(write(tmp_path / side, b"\n".join(lines[:400]) + b"\n"))
    options = ("--dev", tmp_path / "dev.de", tmp_path / "dev.en", "-o", tmp_path / "a")
    options += ("--units", 8, "--word-units", 8, "--dimension", 8)
    options += ("--epochs", 1, "--min-count", 1, "--threads", 1, "-q")
    outcome = run_inside("train", "translator", *sides, *options)
    assert outcome.code == 1
    assert (
        "a: the trained model is no better than chance: it ranks the source of a translation above" in outcome.message
    )
    assert outcome.message.endswith("; --overwrite replaces the checkpoint, --resume --force saves the model anyway")
    assert not (tmp_path / "a" / "config.json").exists()
    outcome = run_inside("train", "translator", *sides, *options, "--resume", "--force")
    assert outcome.code == 0
    assert "warning: " in outcome.message
    assert (tmp_path / "a" / "config.json").exists()


def test_an_interruption_before_the_first_checkpoint(pairs, tmp_path, monkeypatch):
    from moses_compat.corpora import training_pairs

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training_pairs, "read_training_pairs", interrupted)
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *FAST)
    assert outcome.code == 130
    assert outcome.message == "phrasetool: interrupted before the first checkpoint: nothing is kept"


def test_a_refused_resume_names_what_differs(stopped, pairs):
    folder, _ = stopped
    options = ("--resume", "--dimension", "6", "--epochs", "400", "--vectors", "random", "--seed", "3", "-q")
    outcome = run_inside("train", pairs, "-o", folder, *options)
    assert outcome.code == 1
    assert "cannot resume: iterations was 500, not 400, seed was 1, not 3; use the original data" in outcome.message
    other_pairs = write(folder.parent / "other", pair_lines() + b"zz ||| ZZ\n")
    options = ("--resume", "--dimension", "6", "--epochs", "500", "--vectors", "random", "-q")
    outcome = run_inside("train", other_pairs, "-o", folder, *options)
    assert "cannot resume: the pairs differ; use" in outcome.message


def test_a_training_that_diverges_keeps_nothing_or_the_last_good_state(pairs, tmp_path):
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *FAST, "--learning-rate", "1000")
    assert outcome.code == 1
    assert "training diverged in iteration 1: the joint error is" in outcome.message
    assert "nothing was saved; train again with a smaller learning rate than 1000" in outcome.message
    assert not (tmp_path / "m").exists()
    text = write(tmp_path / "text", pair_lines().replace(b"|||", b""))
    options = ("--word-units", "6", "--hidden", "8", "--epochs", "2", "--heads", "2", "-q")
    outcome = run_inside("train", "autoencoder", text, "-o", tmp_path / "a", *options, "--learning-rate", "1e5")
    assert outcome.code == 1
    assert "training diverged in iteration 1: the cross-entropy is" in outcome.message
    assert not (tmp_path / "a").exists()


def test_a_training_that_diverges_later_keeps_its_checkpoint(pairs, tmp_path, monkeypatch):
    from phrasetool.training import loop

    monkeypatch.setattr(loop, "divergence", lambda history, starts: "it is bad" if len(history) == 2 else None)
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *FAST)
    assert outcome.code == 1
    assert (
        "diverged in iteration 2: it is bad; the checkpoint of iteration 1 is kept; train again with" in outcome.message
    )
    assert sorted(os.listdir(tmp_path / "m")) == ["checkpoint.safetensors", "training.jsonl"]
    assert len((tmp_path / "m" / "training.jsonl").read_text().splitlines()) == 1


@for_each(
    ("arguments", "code", "message"),
    [
        (("--epochs", "0"), 2, "epochs is 0, expected at least 1"),
        (("--learning-rate", "-1"), 2, "learning_rate is -1.0, expected more than 0"),
        (("--learning-rate", "nan"), 2, "learning_rate is nan, expected a finite number"),
        (("--min-pair-count", "nan"), 2, "'nan' is not a finite number"),
        (("--min-pair-count", "-1"), 2, "-1.0 is not in the range x>=0"),
        (("--seed", str(1 << 32)), 2, "4294967296 is not in the range x<=4294967295"),
        (("--device", "gpu"), 1, "unknown device 'gpu'; expected cpu, cuda or auto"),
        (("--source-text", "missing.gz"), 1, "missing.gz: No such file"),
        (("--target-vectors", "missing.vec"), 1, "missing.vec: No such file"),
    ],
)
def test_arguments_are_checked_before_pairs_are_read(pairs, tmp_path, monkeypatch, arguments, code, message):
    from moses_compat.corpora import training_pairs

    monkeypatch.setattr(training_pairs, "read_training_pairs", lambda *_, **__: pytest.fail("work has begun"))
    options = () if arguments[0] in ("--source-text", "--target-vectors") else ("--vectors", "random")
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", "-q", *options, *arguments)
    assert outcome.code == code
    assert message in outcome.err
    assert not (tmp_path / "m").exists()


def test_folders_are_checked_before_pairs_are_read(pairs, tmp_path, monkeypatch):
    from moses_compat.corpora import training_pairs

    monkeypatch.setattr(training_pairs, "read_training_pairs", lambda *_, **__: pytest.fail("work has begun"))
    assert "pairs: is a file, expected a folder" in run_inside("train", pairs, "-o", pairs, *FAST).message
    assert "/proc/m: cannot write: " in run_inside("train", pairs, "-o", "/proc/m", *FAST).message


def test_no_room_on_the_disk(pairs, tmp_path, monkeypatch):
    from types import SimpleNamespace

    from phrasetool.disk import folders

    monkeypatch.setattr(folders.shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *FAST)
    assert outcome.code == 1
    assert f"{tmp_path / 'm'}: 0.0 MB are free on its disk, but what is written there takes up to" in outcome.message
    assert not (tmp_path / "m").exists()


def test_unsuitable_pairs(tmp_path):
    lines = pair_lines().splitlines(keepends=True)
    few = write(tmp_path / "few", b"".join(lines[:5]))
    equal = write(tmp_path / "equal", b"".join(b"w%d ||| w%d\n" % (i, i) for i in range(150)))
    column = write(tmp_path / "column", b"the house\nthe cat\n")
    for path, message in (
        (few, f"{few}: 5 distinct phrase pairs to learn from, expected at least about 20"),
        (
            equal,
            f"{equal}: 150 of 150 pairs have the same phrase on both sides, expected phrases and their translations",
        ),
    ):
        outcome = run_inside("train", path, "-o", tmp_path / "m", *FAST)
        assert outcome.code == 1
        assert outcome.message == f"phrasetool: {message}; --force continues anyway"
        assert not (tmp_path / "m").exists()
        outcome = run_inside("train", path, "-o", tmp_path / f"{path.name}.model", *FAST, "--force")
        assert (outcome.code, outcome.message) == (0, f"phrasetool: warning: {message}")
    outcome = run_inside("train", column, "-o", tmp_path / "m", *FAST)
    assert outcome.code == 1
    assert f"{column}:1: expected `source ||| target`, found no |||; pairs are" in outcome.message
    assert "`phrasetool train autoencoder`" in outcome.message


def test_autoencoders_of_the_other_language(tmp_path):
    pairs = write(tmp_path / "pairs", pair_lines())
    for column, side in enumerate(("source", "target")):
        phrases = [line.split(b" ||| ")[column] for line in pair_lines().splitlines()]
        text = write(tmp_path / f"{side}.txt", b"\n".join(phrases) + b"\n")
        options = ("--word-units", "6", "--hidden", "8", "--heads", "2", "--epochs", "6", "--min-count", "1", "-q")
        assert run_inside("train", "autoencoder", text, "-o", tmp_path / side, *options).code == 0
    options = ("--source-autoencoder", tmp_path / "target", "--epochs", "1", "-q")
    outcome = run_inside("train", pairs, "-o", tmp_path / "m", *options)
    assert outcome.code == 1
    assert outcome.message == (
        f"phrasetool: {tmp_path / 'target'}: knows 0.0% of the running words of the source and 100.0% of those of "
        "the other side: source and target look swapped; --force continues anyway"
    )
    assert not (tmp_path / "m").exists()
    assert run_inside("train", pairs, "-o", tmp_path / "m", *options, "--force").code == 0
