"""`phrasetool evaluate-model`."""

import json

import numpy as np
import pytest

import phrasetool
from phrasetool.models.saved_model import load_saved_model
from tests.cli.test_train import pair_lines
from tests.commands import run_inside, write


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return write(tmp_path_factory.mktemp("pairs") / "pairs.gz", pair_lines())


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    assert run_inside("train", pairs, "-o", folder, "--dimension", "12", "--epochs", "20").code == 0
    return folder


def test_evaluate_model(pairs, trained):
    outcome = run_inside("evaluate-model", pairs, "-m", trained, "--candidates", "100")
    assert outcome.code == 0
    assert "accuracy@1 of 100" in outcome.out.decode()
    report = json.loads(run_inside("evaluate-model", pairs, "-m", trained, "--candidates", "100", "--json").out)
    assert report["signature"] == load_saved_model(trained).signature
    assert report["pairs"] == 330
    assert 0.3 < report["accuracy_at_1"] <= report["accuracy_at_10"] <= 1
    assert report["auc_random_words"] > 0.9


def test_figures_equal_those_of_a_naive_ranking(pairs, trained):
    """With enough candidates, each target is ranked among all targets, by the mean of both similarities."""
    options = ("-m", trained, "--candidates", "1000", "--json")
    report = json.loads(run_inside("evaluate-model", pairs, *options).out)
    lines = list(dict.fromkeys(tuple(line.split(" ||| ")[:2]) for line in pair_lines().decode().splitlines()))
    assert report["pairs"] == report["candidates"] == len(lines)
    model = phrasetool.load_model(trained)
    sources, targets = zip(*lines, strict=True)
    matrix = np.array([model.similarity([source] * len(targets), targets).mean(axis=1) for source in sources])
    ranks = []
    for i, target in enumerate(targets):
        wrong_targets = [j for j, wrong in enumerate(targets) if wrong != target]
        ranks.append(1 + sum(matrix[i, j] >= matrix[i, i] for j in wrong_targets))
    ranks = np.array(ranks)
    # Similarities that are equal up to the last digit may be ranked in either order.
    near = 2.5 / len(lines)
    assert report["accuracy_at_1"] == pytest.approx((ranks == 1).mean(), abs=near)
    assert report["accuracy_at_10"] == pytest.approx((ranks <= 10).mean(), abs=near)
    assert report["mean_reciprocal_rank"] == pytest.approx((1 / ranks).mean(), abs=near)
    true, wrong = matrix.diagonal(), matrix[~np.eye(len(lines), dtype=bool)]
    area = np.mean([(wrong < value).mean() + (wrong == value).mean() / 2 for value in true])
    assert report["auc_other_targets"] == pytest.approx(area, abs=0.002)


def test_pairs_that_differ_only_in_unknown_words_are_different(trained, tmp_path):
    lines = [f"a1 a4 ||| A4 NEW{i}" for i in range(50)] + [f"a1 new{i} ||| A1" for i in range(50)]
    file = write(tmp_path / "pairs", "".join(line + "\n" for line in lines).encode())
    outcome = run_inside("evaluate-model", file, "-m", trained, "--force", "--json", "-q")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert (report["pairs"], report["candidates"]) == (100, 100)
    # A source with fifty targets that the model cannot tell apart ranks none of them first.
    assert report["accuracy_at_1"] <= 0.5
    assert report["mean_reciprocal_rank"] < 0.6


def test_an_unknown_word_with_factors_is_read_as_its_first_factor(trained, tmp_path):
    plain = write(tmp_path / "plain", b"a1 a4 ||| A4 A1\nb2 ||| B2\nc3 ||| C3\n")
    factored = write(tmp_path / "factored", b"a1|X a4 ||| A4 A1|Y\nb2 ||| B2\nc3 ||| C3|Z\n")
    reports = [
        run_inside("evaluate-model", file, "-m", trained, "--force", "--json", "-q") for file in (plain, factored)
    ]
    assert reports[0].code == 0, reports[0].err
    assert reports[0].out == reports[1].out


def test_the_seed_selects_the_pairs(pairs, trained):
    def figures(*options):
        outcome = run_inside("evaluate-model", pairs, "-m", trained, "--json", *options)
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    first = figures("--limit", "50", "--seed", "3")
    assert (first["pairs"], first["candidates"]) == (50, 50)
    assert figures("--limit", "50", "--seed", "3") == first
    assert figures("--limit", "50", "--seed", "4") != first
    assert figures("--candidates", "10")["candidates"] == 10
    assert figures("--max-length", "1")["pairs"] == 30
    # Among fewer candidates, the true target ranks first more often.
    assert figures("--candidates", "2")["accuracy_at_1"] > figures()["accuracy_at_1"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("PAIRS", "-m", "none"), 1, "none: no such model"), (("none.gz", "-m", "MODEL"), 1, "none.gz: No such file"),
        (("PAIRS", "-m", "MODEL", "--candidates", "1"), 2, "1 is not in the range"), (("-m", "MODEL"), 2, "PAIRS"),
    ],
)  # fmt: skip
def test_bad_requests(pairs, trained, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    named = {"PAIRS": pairs, "MODEL": trained}
    outcome = run_inside("evaluate-model", *(named.get(argument, argument) for argument in arguments))
    assert outcome.code == code
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_invalid_pairs(trained, tmp_path):
    outcome = run_inside("evaluate-model", write(tmp_path / "p", b"a b\n"), "-m", trained)
    assert outcome.code == 1
    assert "p:1: expected `source ||| target`" in outcome.message


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("continuous", ["--candidates 5", "--limit 5", "--max-length 5", "--language en", "--words w", "--literal",
                        "--seed 2", "--force"]),
        ("tagger", ["--candidates 5", "--limit 5", "--max-length 5", "--words w", "--literal", "--seed 2", "--force"]),
        ("syntax", ["--candidates 5", "--limit 5", "--max-length 5", "--language en", "--force"]),
        ("parallel", ["--candidates 5", "--language en", "--words w", "--literal", "--force"]),
        ("brae", ["--language en", "--words w", "--literal"]),
    ],
)  # fmt: skip
def test_options_of_other_families_are_refused(tmp_path, family, options):
    # The options are checked before the model is loaded.
    (tmp_path / "m").mkdir()
    write(tmp_path / "m/config.json", json.dumps({"format_version": 1, "model": family}).encode())
    needed = {"--candidates": "a model of phrase pairs", "--language": "a tagger", "--words": "a syntactic encoder",
              "--limit": "a model of phrase pairs or a classifier of sentence pairs",
              "--seed": "a model of phrase pairs, a classifier of sentence pairs or a syntactic encoder"}  # fmt: skip
    for option in options:
        flag, *value = option.split()
        outcome = run_inside("evaluate-model", "text", "-m", tmp_path / "m", flag, *value)
        assert outcome.code == 2
        assert f"{flag} is for {needed.get(flag, 'a')}" in outcome.err


def test_models_without_an_evaluation_are_refused_with_those_that_have_one(translator, autoencoder, pairs):
    needed = (
        "this needs a model of phrase pairs, a classifier of sentence pairs, a tagger or a syntactic encoder (train "
        "one with `phrasetool train`, or name it with -m)"
    )
    for folder, description in ((translator, "a translator"), (autoencoder, "an autoencoder of one language")):
        outcome = run_inside("evaluate-model", pairs, "-m", folder)
        assert outcome.code == 1
        assert outcome.message == f"phrasetool: {folder}: {description}; {needed}"
