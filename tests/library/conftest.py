"""Data of the library's examples: the corpus of the demo, its table and models, made once."""

from pathlib import Path

import pytest

from tests.commands import run_inside
from tests.neural_models import random_model
from tests.parallel_models import random_parallel_model
from tests.phrasetool.autoencoder.test_model import make
from tests.phrasetool.tagger.test_model import tagger
from tests.syntax_models import random_syntax_model

CORPUS = Path(__file__).parents[2] / "cli/phrasetool_cli/demo"


def done(*arguments):
    outcome = run_inside(*arguments)
    assert outcome.code == 0, outcome.err


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Folder with the files of `make demo`, trained for fewer epochs, and sentence models."""
    folder = tmp_path_factory.mktemp("demo") / "demo-output"
    engine = folder / "engine"
    engine.mkdir(parents=True)
    for language in ("zh", "en"):
        lines = (CORPUS / f"corpus.{language}").read_text("utf-8").splitlines(keepends=True)
        for name, digits in (("test", {3}), ("dev", {7}), ("train", {0, 1, 2, 4, 5, 6, 8, 9})):
            text = "".join(line for i, line in enumerate(lines) if i % 10 in digits)
            (engine / f"{name}.{language}").write_text(text, "utf-8")
    train = engine / "train.zh", engine / "train.en"
    table, reordering, lm = engine / "phrase-table.gz", engine / "reordering.gz", engine / "lm.arpa.gz"
    done("align", *train, "-o", engine / "aligned.gz", "--seed", "1", "-q")
    done("extract", *train, engine / "aligned.gz", "-o", table, "--reordering-table", reordering, "-q")
    done("lm", train[1], "--order", "3", "-o", lm, "-q")
    done("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", engine / "moses.ini")
    done("train", table, "-o", folder / "model", "--min-pair-count", "2", "--epochs", "10", "-q")
    # Untrained sentence models, because examples show only the form of their results.
    models = {
        "tagger": tagger(), "syntax": random_syntax_model(), "classifier": random_parallel_model(),
        "autoencoder": make(), "translator": random_model([b"a"], [b"x"]),
    }  # fmt: skip
    for name, model in models.items():
        model.save(folder / name)
    return folder
