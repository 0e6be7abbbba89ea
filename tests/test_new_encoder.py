"""A new encoder and a new objective need one class and one registry line each; every command supports them."""

import json
import sys
import types
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from phrasetool.options import option
from phrasetool.phrase_encoder.encoder import ENCODERS, EncoderKind
from phrasetool.phrase_encoder.losses import OBJECTIVES, CoTrainingObjective
from phrasetool.phrase_encoder.model import BilingualModel
from tests.cli.test_train import pair_lines
from tests.commands import read, run_inside, write


@dataclass(frozen=True)
class BagParameters:
    word_vectors: np.ndarray
    transform: np.ndarray

    @property
    def dimension(self):
        return self.word_vectors.shape[1]

    def arrays(self):
        return {"word_vectors": self.word_vectors, "transform": self.transform}


class BagModule(nn.Module):
    def __init__(self, parameters):
        super().__init__()
        self.table = nn.Parameter(torch.from_numpy(parameters.word_vectors.copy()))
        self.carry = nn.Parameter(torch.from_numpy(parameters.transform.copy()))

    def forward(self, phrases):
        words = torch.from_numpy(phrases.words.astype(np.int64))
        vectors = nn.functional.embedding_bag(words, self.table, torch.from_numpy(phrases.offsets[:-1]), mode="sum")
        return vectors, torch.zeros(len(phrases))

    def transformed(self, vectors):
        return vectors @ self.carry

    def groups(self):
        return {"words": [self.table], "sem": [self.carry]}

    def seed_dropout(self, seed):
        pass

    def numpy(self):
        return BagParameters(self.table.detach().numpy().copy(), self.carry.detach().numpy().copy())


class PackedBag:
    def __init__(self, parameters, power):
        self.parameters, self.power = parameters, power
        self.dimension = parameters.dimension

    def encoder(self, node_capacity):
        return self

    def encode(self, phrases, unit=True):
        vectors = np.array([self.parameters.word_vectors[words].sum(0) for words in phrases], np.float32)
        vectors = vectors.reshape(len(phrases), self.dimension)
        return tuple(
            rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9).astype(np.float32)
            for rows in (vectors, vectors @ self.parameters.transform)
        )


@dataclass(frozen=True)
class Bag(EncoderKind):
    """The sum of word vectors."""

    power: int = option(1, "Nothing depends on it.")

    name: ClassVar[str] = "bag-of-words"
    summary: ClassVar[str] = "the sum of the word vectors"
    defaults: ClassVar[dict] = {"dimension": 20, "learning_rate": 0.02}

    def word_dimension(self, dimension):
        if dimension > 99:
            raise ValueError(f"a bag of dimension {dimension} cannot be carried")
        return dimension

    def initial(self, word_vectors, dimension, start, rng):
        return BagParameters(word_vectors, np.eye(dimension, dtype=np.float32))

    def parameters(self, arrays):
        return BagParameters(arrays["word_vectors"], arrays["transform"])

    def module(self, parameters):
        return BagModule(parameters)

    def pack(self, parameters):
        return PackedBag(parameters, self.power)


@dataclass(frozen=True)
class Nearest(CoTrainingObjective):
    """Half the squared distance to the partner, plus a hinge loss on that to a random phrase."""

    reach: float = option(2.0, "How near a random phrase may be.")

    name: ClassVar[str] = "nearest"
    summary: ClassVar[str] = "be near the partner and far from a random phrase"
    defaults: ClassVar[dict] = {"batch_size": 16}

    def frozen_losses(self, predicted, frozen):
        unit = nn.functional.normalize(predicted)
        drawn = torch.from_numpy(frozen.rng.integers(0, len(frozen.pool), len(unit)))
        near = (unit - nn.functional.normalize(frozen.positive)).square().sum(1)
        far = (unit - frozen.pool[drawn]).square().sum(1)
        return near / 2 + (self.reach - far).relu() / 2


@pytest.fixture
def registered(monkeypatch):
    module = types.ModuleType("one_more_of_each")
    module.Bag, module.Nearest = Bag, Nearest
    monkeypatch.setitem(sys.modules, "one_more_of_each", module)
    monkeypatch.setitem(ENCODERS, "bag-of-words", "one_more_of_each:Bag")
    monkeypatch.setitem(OBJECTIVES, "nearest", "one_more_of_each:Nearest")


@pytest.fixture
def trained(registered, tmp_path):
    """The folder of a model of the new kind."""
    pairs = write(tmp_path / "pairs.gz", pair_lines())
    outcome = run_inside(
        "train", pairs, "-o", tmp_path / "m", "--architecture", "bag-of-words", "--loss", "nearest", "--reach", "1.5",
        "--power", "3", "--epochs", "20",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    return tmp_path / "m"


def test_it_is_trained_and_saved(trained):
    config = json.loads((trained / "config.json").read_text())
    assert (config["encoder"], config["encoder_options"], config["dimension"]) == ("bag-of-words", {"power": 3}, 20)
    assert config["columns"] == ["bag_of_words_st", "bag_of_words_ts"]
    assert (config["training"]["reach"], config["training"]["batch_size"]) == (1.5, 16)
    assert BilingualModel.load(trained).signature.startswith("model:bag-of-words+nearest-")


def test_every_command_supports_it(trained, tmp_path):
    outcome = run_inside("evaluate-model", tmp_path / "pairs.gz", "-m", trained, "--candidates", "50", "--json")
    assert json.loads(outcome.out)["accuracy_at_1"] > 0.3
    table = write(tmp_path / "t.gz", b"a1 ||| A1 ||| 0.5\na1 ||| B4 ||| 0.5\na1 ||| C2 ||| 0.5\nb2 ||| B2 ||| 0.5\n")
    assert run_inside("annotate", table, "-m", trained, "-o", tmp_path / "a.gz", "-q").code == 0
    rows = [line.split(b" ||| ") for line in read(tmp_path / "a.gz").splitlines()]
    assert [len(row[2].split()) for row in rows] == [3, 3, 3, 3]
    assert float(rows[0][2].split()[1]) > float(rows[1][2].split()[1])
    pruned = run_inside(
        "prune", table, "-m", trained, "-t", "0.5", "--keep-top", "0", "--protect", "none", "-o", tmp_path / "p.gz"
    )
    assert pruned.code == 0
    assert "signature model:bag-of-words+nearest-" in pruned.err
    assert read(tmp_path / "p.gz") == b"a1 ||| A1 ||| 0.5\nb2 ||| B2 ||| 0.5\n"
    near = json.loads(run_inside("neighbours", "a1", "-m", trained, "--json").out)
    assert near["target"][0]["phrase"] == "A1"
    text = run_inside("inspect", trained).out.decode()
    assert "encoder        bag-of-words" in text
    assert "reach                1.5" in text


def test_help_lists_its_options(registered):
    options = ("--architecture", "bag-of-words", "--loss", "nearest")
    text = " ".join(run_inside("train", "phrases", *options, "--help").out.decode().split())
    assert "--reach X How near a random phrase may be. [default: 2]" in text
    assert "--power N Nothing depends on it. [default: 1]" in text
    assert "--dimension N Size of a phrase vector. [default: 20]" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--reach", "1"), "reach belongs to the loss nearest; the loss in-batch takes temperature, smoothing"),
        (("--architecture", "bag-of-words", "--dimension", "100"), "a bag of dimension 100 cannot be carried"),
        (("--architecture", "bag-of-words", "--alpha", "0.5"), "the encoder bag-of-words does not reconstruct"),
    ],
)
def test_unsuitable_options_are_usage_errors(registered, arguments, message):
    outcome = run_inside("train", "pairs.gz", *arguments)
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize("frozen", [(), ("--freeze-encoders",)])
@pytest.mark.parametrize("loss", [*OBJECTIVES, "nearest"])
def test_it_works_with_any_objective(registered, loss, frozen, tmp_path):
    pairs = write(tmp_path / "pairs.gz", pair_lines()[:1500].rpartition(b"\n")[0])
    options = ("--architecture", "bag-of-words", "--loss", loss, "--epochs", "1", *frozen)
    assert run_inside("train", pairs, "-o", tmp_path / "m", *options, "-q").code == 0
    assert BilingualModel.load(tmp_path / "m").kind == Bag()
