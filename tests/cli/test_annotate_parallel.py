"""`annotate` and `prune` with a classifier of sentence pairs."""

import subprocess
import sys

import numpy as np
import pytest

from moses_compat.measures import windowed_scores
from phrasetool.pair_classifier.model import PairClassifierModel
from tests import naive
from tests.commands import full_disk_after, read, run_inside, write
from tests.parallel_models import random_parallel_model, toy_lines

TABLE = b"".join(
    sorted(
        {
            b"%b ||| %b ||| %.4f 0.5 0.25 0.5 ||| 0-0 ||| 9 5 %d ||| |||\n"
            % (source, target, 0.1 + 0.001 * i, 1 + i % 5)
            for seed in (1, 2)
            for i, (source, target) in enumerate(zip(toy_lines(180)[0], toy_lines(180, seed)[1], strict=True))
        }
        | {b"?! ||| taa ||| 0.5 0.5 0.25 0.5 ||| 0-0 ||| 9 5 1 ||| |||\n"}
    )
)


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.gz", TABLE)


def phrases(table=TABLE):
    return [line.split(b" ||| ")[:2] for line in table.splitlines()]


def column(data):
    return np.array([float(line.split(b" ||| ")[2].split()[-1]) for line in data.splitlines()])


def test_one_column_is_the_probability_of_each_pair(classifier_folder, model_folder, table, tmp_path):
    outcome = run_inside("annotate", table, "-m", classifier_folder, "-o", tmp_path / "a.gz")
    assert outcome.code == 0, outcome.err
    assert f"a column is p(parallel) by {classifier_folder}" in outcome.err
    assert "1 have only unknown words on a side" in outcome.err
    assert "5 scores instead of 4" in outcome.err
    written = read(tmp_path / "a.gz")
    assert naive.cut_columns(written, 1) == TABLE
    model = PairClassifierModel.load(classifier_folder)
    expected = np.array([model.probabilities([source], [target])[0] for source, target in phrases()])
    # A pair with an all-OOV side has no score and gets a 1, which costs the decoder nothing.
    unknown = [source == b"?!" for source, _ in phrases()]
    assert column(written) == pytest.approx(np.where(unknown, 1, expected), rel=2e-4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gz", "t.gz"]
    again = run_inside("annotate", tmp_path / "a.gz", "-m", classifier_folder, "-o", tmp_path / "b.gz", "-q")
    assert (again.code, "column 5 already holds the probabilities" in again.message) == (1, True)


def test_threads_blocks_and_pipes_change_no_byte(classifier_folder, table, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 40)
    command = ("annotate", table, "-q", "-o", "-", "-m", classifier_folder)
    expected = run_inside(*command, "--threads", 1).out
    for options in (["--threads", 2], ["--block-bytes", 100, "--threads", 1], ["--block-bytes", 3000, "--threads", 2]):
        assert run_inside(*command, *options).out == expected
    assert run_inside("annotate", "-", "-q", "-m", classifier_folder, stdin=TABLE).out == expected


def test_interrupted_work_is_resumed(classifier_folder, table, tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 40)
    command = ("annotate", table, "-q", "--threads", 1, "-m", classifier_folder, "-o")
    assert run_inside(*command, tmp_path / "whole").code == 0
    with full_disk_after(2):
        assert run_inside(*command, tmp_path / "o").code == 1
    assert len(list((tmp_path / "o.scores-1").iterdir())) == 2
    assert run_inside(*command, tmp_path / "o").code == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "o.scores-1").exists()


def test_pruning_uses_the_probabilities(classifier_folder, model_folder, table, tmp_path):
    size = ("--target-size", "0.4", "--protect", "none", "-q")
    pruned = run_inside("prune", table, "-m", classifier_folder, "--method", "parallel+count", *size)
    assert pruned.code == 0, pruned.err
    assert 0 < pruned.out.count(b"\n") <= 0.4 * TABLE.count(b"\n")
    same = run_inside("prune", table, "-m", classifier_folder, "--method", "semantic+count", *size)
    assert same.out == pruned.out
    alone = run_inside("prune", table, "-m", classifier_folder, "--method", "parallel", "-t", "0.3", "-q",
                       "--keep-top", "0", "--protect", "none")  # fmt: skip
    model = PairClassifierModel.load(classifier_folder)
    likely = [source == b"?!" or model.probabilities([source], [target])[0] >= 0.3 for source, target in phrases()]
    assert alone.out == b"".join(
        line for line, is_likely in zip(TABLE.splitlines(True), likely, strict=True) if is_likely
    )
    saved = ("--similarities", tmp_path / "scores")
    kept = run_inside("prune", table, "-m", classifier_folder, "-t", "0.3", "-q", *saved)
    assert kept.code == 0, kept.err
    assert run_inside("prune", table, *size, *saved, "--method", "parallel+count").out == pruned.out
    for wrong, message in (
        (["-m", model_folder], "not a classifier of sentence pairs"),
        (["-m", classifier_folder, "-m", classifier_folder], "does not use this model"),
    ):
        outcome = run_inside("prune", table, *wrong, "--method", "parallel+count", *size, "--force")
        assert (outcome.code, message in outcome.message) == (1, True)
    far = run_inside("prune", table, "-m", classifier_folder, "--method", "parallel", "-t", "1.5", "-q")
    assert (far.code, "1.5" in far.message) == (2, True)


def test_long_phrases_are_truncated_and_counted(tmp_path):
    random_parallel_model().save(tmp_path / "m")
    long = b" ".join([b"saa"] * 12) + b" ||| " + b" ".join([b"taa"] * 3) + b" ||| 0.5\n"
    table = write(tmp_path / "t", b"saa ||| taa ||| 0.5\n" + long)
    outcome = run_inside("annotate", table, "-m", tmp_path / "m", "-o", tmp_path / "o")
    assert (outcome.code, "1 exceed the maximum length of a model" in outcome.err) == (0, True)
    model = PairClassifierModel.load(tmp_path / "m")
    expected = model.probabilities([b"saa", b"saa " * 12], [b"taa", b"taa " * 3])
    assert column((tmp_path / "o").read_bytes()) == pytest.approx(expected, rel=1e-4)


def test_other_languages_are_refused(classifier_folder, table, tmp_path):
    swapped_table = b"".join(
        sorted(b" ||| ".join([target, source, *rest]) + b"\n" for source, target, *rest in (
            line.split(b" ||| ") for line in TABLE.splitlines()))
    )  # fmt: skip
    swapped = run_inside(
        "annotate", write(tmp_path / "s", swapped_table), "-m", classifier_folder, "-o", tmp_path / "o"
    )
    assert (swapped.code, "source and target look swapped" in swapped.message) == (1, True)
    foreign = TABLE.replace(b"s", b"x").replace(b"aa", b"yy")
    refused = run_inside("prune", write(tmp_path / "f", foreign), "-t", "0.1", "-m", classifier_folder)
    assert (refused.code, "trained on other languages" in refused.message) == (1, True)


def test_only_classifiers_load_torch(classifier_folder, model_folder, table):
    code = (
        "import sys\nfrom phrasetool_cli.main import main\n"
        "try: main(['annotate', sys.argv[1], '-m', sys.argv[2], '-q', '-o', '-', '--force'])\n"
        "except SystemExit as done: assert not done.code\n"
        "sys.exit(40 + ('torch' in sys.modules))"
    )
    for folder, exit_code in ((model_folder, 40), (classifier_folder, 41)):
        outcome = subprocess.run(
            [sys.executable, "-c", code, str(table), str(folder)], capture_output=True, check=False
        )
        assert outcome.returncode == exit_code, outcome.stderr
