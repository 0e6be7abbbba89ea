import json

from phrasetool.training.run import train_model
from tests.phrasetool.training.toy_language import settings, start


def test_the_log_has_a_line_an_iteration(pairs, tmp_path):
    train_model(pairs, settings("max-margin"), start, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in lines[:3]] == ["pretrain", "pretrain", "train"]
    assert {"phase", "iteration", "reconstruction_error", "semantic_error", "joint_error"} == set(lines[0])
