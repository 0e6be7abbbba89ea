from itertools import product

import pytest

from tests.cli.small_translator import FAST, bitext, vector_file
from tests.commands import run_inside, run_outside, write

KINDS = product(("cat", "dog"), ("hat", "ball"), ("red", "big", "old"))
SENTENCES = [f"the {owner} &apos;s {thing} is {what} ." for owner, thing, what in KINDS]
SENTENCES += ["a dog", "a cat", "two old men &amp; a dog see the big red ball ."]


@pytest.fixture(scope="session")
def demo_files(tmp_path_factory):
    """Return a folder with a subfolder `demo`: the model and texts that `demo --files` writes."""
    folder = tmp_path_factory.mktemp("demo")
    outcome = run_outside("demo", "--files", "demo", cwd=folder)
    assert (outcome.code, outcome.err) == (0, "")
    assert "demo/README.txt" in outcome.out.decode()
    return folder


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """Return a text file of sentences with Moses' escapes, each twice."""
    return write(tmp_path_factory.mktemp("text") / "text.gz", "".join(line + "\n" for line in SENTENCES * 2).encode())


@pytest.fixture(scope="session")
def autoencoder(text, tmp_path_factory):
    """Return the folder of an autoencoder that has memorised the text."""
    folder = tmp_path_factory.mktemp("model") / "autoencoder"
    options = ("--word-units", 16, "--hidden", 48, "--heads", 2, "--epochs", 30, "--dropout", 0, "--batch-size", 8)
    outcome = run_inside(
        "train", "autoencoder", text, "-o", folder, *options, "--learning-rate", 0.02, "--min-count", 1,
        "--threads", 1, "-q",
    )  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    return folder


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    """Return the folder of a translator of a tiny language; its target vectors are in the parent folder."""
    folder = tmp_path_factory.mktemp("translator")
    files = [*bitext(folder, "train", 400), "--dev", *bitext(folder, "dev", 40, 2)]
    vectors = vector_file(folder, words=["hound"])
    options = ("--target-vectors", vectors, "--epochs", 12, "-o", folder / "model", "-q")
    outcome = run_inside("train", *FAST, *files, *options)
    assert (outcome.code, outcome.err) == (0, "")
    return folder / "model"
