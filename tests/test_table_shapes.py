"""Factored tokens and rules: models look up their words, and annotation keeps the rest of the line unchanged."""

import re

import pytest

from phrasetool.phrase_encoder.kinds import Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.vocabulary import Vocabulary
from tests import naive
from tests.commands import run_inside, write
from tests.conftest import SOURCE_WORDS, TARGET_WORDS, random_parameters
from tests.tables import TABLES


def columns(table, model_folder, folder):
    outcome = run_inside("annotate", write(folder / "t", table), "-m", model_folder, "-q", "-o", "-")
    assert outcome.code == 0
    assert naive.cut_columns(outcome.out, 2) == table
    return [line.split(b"|||")[2].split()[-2:] for line in outcome.out.splitlines()]


@pytest.mark.parametrize("name", ["factored source", "factored target", "factored both", "twelve columns"])
def test_a_factored_token_is_looked_up_by_its_surface(model_folder, tmp_path, name):
    table = TABLES[name]
    # If only tags were looked up, all words would be unknown and all columns equal.
    assert len({tuple(pair) for pair in columns(table, model_folder, tmp_path)}) > 10
    plain = re.sub(rb"(?<=[^| ])\|[A-Zx|]+(?= )", b"", table)
    assert b"|NN" not in plain
    assert b"|V" not in plain
    assert columns(table, model_folder, tmp_path) == columns(plain, model_folder, tmp_path)


def test_a_model_of_factored_tokens_matches_them_whole(tmp_path):
    source, target = Vocabulary([*SOURCE_WORDS, b"das|ART"]), Vocabulary(TARGET_WORDS)
    parameters = random_parameters(len(source), 6, 1), random_parameters(len(target), 6, 2)
    model = BilingualModel(source, target, *parameters, Rae())
    model.save(tmp_path / "model")
    table = b"das ||| the ||| 1\ndas|ART ||| the ||| 1\ndas|PRO ||| the ||| 1\n"
    bare, whole, surface = columns(table, tmp_path / "model", tmp_path)
    assert bare == surface != whole


def test_only_the_terminals_of_a_rule_are_embedded(model_folder, tmp_path):
    for name in ("hierarchical", "non-terminals differ", "brackets"):
        rules = TABLES[name]
        terminals = re.sub(rb"\[[A-Z]+\](\[[A-Z]+\])?", b"", rules)
        outcome = run_inside(
            "annotate", write(tmp_path / "u", terminals), "-m", model_folder, "-q", "-o", "-", "--on-error", "keep"
        )
        expected = [line.split(b"|||")[2].split()[-2:] for line in outcome.out.splitlines()]
        assert columns(rules, model_folder, tmp_path) == expected


def test_rules_whose_non_terminals_differ_are_counted_and_scored(model_folder, tmp_path):
    table = TABLES["non-terminals differ"]
    text = run_inside("inspect", write(tmp_path / "t", table), "-q").out.decode()
    assert "rule table (SCFG), 5 entries" in text
    assert "5 lines whose alignment does not pair each non-terminal with one of the other side, from line 1" in text
    assert len(columns(table, model_folder, tmp_path)) == 5
