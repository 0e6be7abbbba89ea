"""A new model family needs one package and one registry line; the commands then support it."""

import json
import re
import sys
import types
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import phrasetool
from phrasetool.models.families import FAMILIES, ModelFamily
from phrasetool.models.saved_model import SavedModel, model_identity
from phrasetool.options import DeclaredSettings, option, seed_option
from phrasetool.vocabulary import Vocabulary
from tests.commands import read, run_inside, write


@dataclass(frozen=True)
class DiceSettings(DeclaredSettings):
    """Training settings."""

    kind: ClassVar[str] = "dice"
    min_count: int = option(1, "Words seen less often are left out.", ge=1)
    seed: int = seed_option()


class DiceModel(SavedModel):
    """Scores pairs by Dice coefficients of their words."""

    name = "dice"
    column = "Dice coefficient"

    def __init__(self, vocabularies, table, training):
        self.vocabularies, self.arrays, self.training = vocabularies, {"table": table}, training

    @property
    def identity(self):
        return model_identity(self.name, self.arrays, self.vocabularies)

    @property
    def signature(self):
        return f"model:dice-{self.identity}"

    def description(self):
        return {"sizes": [len(vocabulary) for vocabulary in self.vocabularies]}

    def named_vocabularies(self):
        return dict(zip(("source", "target"), self.vocabularies, strict=True))

    def save_files(self, folder):
        for number, vocabulary in enumerate(self.vocabularies):
            vocabulary.save(folder / f"{number}.vocab")

    @classmethod
    def from_files(cls, folder, config, weights):
        vocabularies = tuple(Vocabulary.load(folder / f"{number}.vocab") for number in range(2))
        return cls(vocabularies, weights["table"], config["training"])

    def score_pairs(self, sources, targets):
        collected = []
        for pair in zip(sources, targets, strict=True):
            rows, columns = (
                [number for number in map(known.id, text.split(b" ")) if number]
                for known, text in zip(self.vocabularies, pair, strict=True)
            )
            cells = self.arrays["table"][np.ix_(rows, columns)]
            collected.append(cells.max(axis=0).mean() if cells.size else np.nan)
        return np.array(collected, np.float32)

    def evaluate(self, texts):
        if len(texts) != 2 or len(texts[0]) != len(texts[1]):
            raise ValueError("expected two texts of as many lines")
        return {"mean score": float(np.nanmean(self.score_pairs(*texts)))}


@dataclass(frozen=True)
class DiceReport:
    """Log entry of an epoch."""

    epoch: int
    seen_lines: int
    error: float


def train_dice(texts, settings, run):
    """Train a model on the lines of two texts."""
    run.check()
    run.on_report(DiceReport(1, len(texts[0]), 0.25))
    words = [Counter(word for line in text for word in line.split(b" ")) for text in texts]
    kept = [[word for word, count in sorted(one.items()) if count >= settings.min_count] for one in words]
    vocabularies = tuple(Vocabulary([b"<unk>", *one]) for one in kept)
    table = np.zeros([len(one) for one in vocabularies], np.float32)
    for pair in zip(*texts, strict=True):
        sides = (set(map(known.id, line.split(b" "))) for known, line in zip(vocabularies, pair, strict=True))
        table[np.ix_(*map(sorted, sides))] += 1
    counts = [np.array([1, *(one[word] for word in k)], np.float32) for one, k in zip(words, kept, strict=True)]
    table = np.minimum(2 * table / (counts[0][:, None] + counts[1]), 1)
    model = DiceModel(vocabularies, table, {**settings.as_dict(), **run.record})
    run.save(model)
    return model


@pytest.fixture
def dice(monkeypatch):
    """The family, registered for a test."""
    package = types.ModuleType("new_dice")
    vars(package).update(DiceModel=DiceModel, DiceSettings=DiceSettings, train_dice=train_dice)
    monkeypatch.setitem(sys.modules, "new_dice", package)
    monkeypatch.setitem(FAMILIES, "dice", ModelFamily(
        "dice", "a dictionary of Dice coefficients", "new_dice:DiceModel", "", "dice",
        "Train Dice coefficients of words on a bitext.", "new_dice:DiceSettings", "new_dice:train_dice",
        ("SOURCE", "TARGET"),
    ))  # fmt: skip


def ran(*arguments):
    outcome = run_inside(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def test_a_family_of_one_package_and_one_line(dice, tmp_path):
    source = write(tmp_path / "s", b"das haus\ndas auto\nein haus\n")
    target = write(tmp_path / "t", b"the house\nthe car\na house\n")
    folder = tmp_path / "model"
    assert re.search(r"^  dice +Train Dice coefficients", ran("train", "--help").out.decode(), re.M)
    help_text = ran("train", "dice", "--help").out.decode()
    assert "SOURCE TARGET" in help_text
    assert "--min-count N" in help_text
    outcome = ran("train", "dice", source, target, "-o", folder, "--json", tmp_path / "record")
    assert "saved model:dice-" in outcome.err
    assert "epoch 1, seen lines 3, error 0.25\n" in outcome.err
    record = json.loads(read(tmp_path / "record"))
    assert record["training"]["min_count"] == 1
    assert record["training"]["texts"] == [str(source), str(target)]

    # A finished model is not overwritten, and an option out of range is rejected.
    assert "the folder already has a finished model" in run_inside("train", "dice", source, target, "-o", folder).err
    assert "min_count is 0" in run_inside("train", "dice", source, target, "-o", tmp_path / "x", "--min-count", "0").err

    shown = ran("inspect", folder).out.decode()
    assert record["signature"] in shown
    assert "source words   4 (most frequent: auto das ein haus)" in shown
    assert json.loads(ran("inspect", folder, "--json", "-").out)["words"] == {"source": 4, "target": 4}

    figures = json.loads(ran("evaluate-model", source, target, "-m", folder, "--json", "-").out)
    assert figures["mean score"] > 0.6
    assert "mean score" in ran("evaluate-model", source, target, "-m", folder).out.decode()
    refused = run_inside("evaluate-model", source, "-m", folder)
    assert (refused.code, "expected two texts" in refused.err) == (1, True)

    table = write(tmp_path / "table", b"das haus ||| the house ||| 0.5 0.5 ||| 0-0 1-1\nhaus ||| car ||| 0.5 0.5\n"
                  b"nichts ||| car ||| 0.5 0.5\n")  # fmt: skip
    outcome = ran("annotate", table, "-m", folder, "-o", tmp_path / "annotated")
    scores = [float(line.split(b" ||| ")[2].split()[2]) for line in read(tmp_path / "annotated").splitlines()]
    model = phrasetool.load_model(folder)
    assert isinstance(model, DiceModel)
    expected = model.score_pairs([b"das haus", b"haus"], [b"the house", b"car"])
    assert expected[0] == 1
    np.testing.assert_allclose(scores[0], expected[0], atol=1e-4)
    assert scores[1] < 1e-3
    # A pair without a score gets the column 1, which does not change products.
    assert scores[2] == 1
    assert f"a column is Dice coefficient by {folder}" in outcome.err
    assert "1 have only unknown words on a side" in outcome.err
