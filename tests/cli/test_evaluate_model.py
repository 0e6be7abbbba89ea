"""`phrasetool evaluate-model`."""

import json

import pytest

from phrasetool.models.storage import load_model
from tests.cli.test_train import pair_lines
from tests.commands import run_inside, write


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return write(tmp_path_factory.mktemp("pairs") / "pairs.gz", pair_lines())


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    assert run_inside("train", pairs, "-o", folder, "--dimension", "12", "--iterations", "20").code == 0
    return folder


def test_evaluate_model(pairs, trained):
    outcome = run_inside("evaluate-model", pairs, "-m", trained, "--candidates", "100")
    assert outcome.code == 0
    assert "accuracy@1 of 100" in outcome.out.decode()
    found = json.loads(run_inside("evaluate-model", pairs, "-m", trained, "--candidates", "100", "--json").out)
    assert found["signature"] == load_model(trained).signature
    assert found["pairs"] == 330
    assert 0.3 < found["accuracy_at_1"] <= found["accuracy_at_10"] <= 1
    assert found["auc_random_words"] > 0.9
