"""`annotate` and `prune` with a syntactic encoder."""

import subprocess
import sys

import numpy as np
import pytest

from moses_compat.measures import windowed_scores
from phrasetool.syntax.model import SyntaxModel, tag_log_probabilities
from tests import naive
from tests.commands import full_disk_after, read, run_inside, write
from tests.syntax_models import random_syntax_model, toy_lines

TABLE = b"".join(
    sorted(
        {
            b"%b ||| %b ||| %.4f 0.5 0.25 0.5 ||| 0-0 ||| 9 5 %d ||| |||\n"
            % (source.encode(), target.encode(), 0.1 + 0.001 * i, 1 + i % 5)
            for seed in (1, 2)
            for i, (source, target) in enumerate(zip(toy_lines(180, 1)[0], toy_lines(180, seed)[1], strict=True))
        }
        | {"☃ ||| Die ||| 0.5 0.5 0.25 0.5 ||| 0-0 ||| 9 5 1 ||| |||\n".encode()}
    )
)


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.gz", TABLE)


def phrases(table=TABLE):
    return [line.split(b" ||| ")[:2] for line in table.splitlines()]


def column(data):
    return np.array([float(line.split(b" ||| ")[2].split()[-1]) for line in data.splitlines()])


def cosines(folder):
    model = SyntaxModel.load(folder)
    return np.array([model.cosines([source], [target])[0] for source, target in phrases()])


def test_one_column_is_the_cosine_of_each_pair(syntax_folder, table, tmp_path):
    outcome = run_inside("annotate", table, "-m", syntax_folder, "-o", tmp_path / "a.gz")
    assert outcome.code == 0, outcome.err
    assert f"a column is exp(cosine - 1) of syntax by {syntax_folder}" in outcome.err
    assert "1 have only unknown words on a side" in outcome.err
    assert "5 scores instead of 4" in outcome.err
    written = read(tmp_path / "a.gz")
    assert naive.cut_columns(written, 1) == TABLE
    expected = cosines(syntax_folder)
    # A pair with an all-OOV side has no cosine and gets a 1, which costs the decoder nothing.
    assert column(written) == pytest.approx(np.where(np.isnan(expected), 1, np.exp(expected - 1)), rel=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gz", "t.gz"]
    again = run_inside("annotate", tmp_path / "a.gz", "-m", syntax_folder, "-o", tmp_path / "b.gz", "-q")
    assert (again.code, "column 5 already holds exp(cosine - 1) of syntax" in again.message) == (1, True)


def test_threads_blocks_and_pipes_change_no_byte(syntax_folder, table, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 40)
    command = ("annotate", table, "-q", "-o", "-", "-m", syntax_folder)
    expected = run_inside(*command, "--threads", 1).out
    assert expected
    for options in (["--threads", 2], ["--block-bytes", 100, "--threads", 1], ["--block-bytes", 3000, "--threads", 2]):
        assert run_inside(*command, *options).out == expected
    assert run_inside("annotate", "-", "-q", "-m", syntax_folder, stdin=TABLE).out == expected


def test_interrupted_work_is_resumed(syntax_folder, table, tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 40)
    command = ("annotate", table, "-q", "--threads", 1, "-m", syntax_folder, "-o")
    assert run_inside(*command, tmp_path / "whole").code == 0
    with full_disk_after(2):
        assert run_inside(*command, tmp_path / "o").code == 1
    assert len(list((tmp_path / "o.scores-1").iterdir())) == 2
    assert run_inside(*command, tmp_path / "o").code == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "o.scores-1").exists()


def test_pruning_uses_the_cosine(syntax_folder, model_folder, table, tmp_path):
    size = ("--target-size", "0.4", "--protect", "none", "-q")
    pruned = run_inside("prune", table, "-m", syntax_folder, "--method", "syntax+count", *size)
    assert pruned.code == 0, pruned.err
    assert 0 < pruned.out.count(b"\n") <= 0.4 * TABLE.count(b"\n")
    assert run_inside("prune", table, "-m", syntax_folder, "--method", "semantic+count", *size).out == pruned.out
    threshold = float(np.nanmedian(cosines(syntax_folder)))
    alone = run_inside("prune", table, "-m", syntax_folder, "--method", "syntax", "-t", f"{threshold:.4f}", "-q",
                       "--keep-top", "0", "--protect", "none")  # fmt: skip
    result = cosines(syntax_folder)
    kept = np.isnan(result) | (result >= np.float32(f"{threshold:.4f}"))
    assert alone.out == b"".join(line for line, is_kept in zip(TABLE.splitlines(True), kept, strict=True) if is_kept)
    wrong = run_inside("prune", table, "-m", model_folder, "--method", "syntax", *size, "--force")
    assert (wrong.code, "not a syntactic encoder" in wrong.message) == (1, True)
    assert "phrasetool train syntax" in wrong.message
    far = run_inside("prune", table, "-m", syntax_folder, "--method", "syntax", "-t", "1.5", "-q")
    assert (far.code, "1.5" in far.message) == (2, True)


def test_semantic_and_syntax_use_one_model_each(syntax_folder, model_folder, table, tmp_path):
    size = ("--target-size", "0.4", "--protect", "none", "--force", "--threads", "1", "-o")
    both = ("prune", table, "--method", "semantic+syntax", *size)
    outcome = run_inside(*both, tmp_path / "a", "-m", model_folder, "-m", syntax_folder)
    assert outcome.code == 0, outcome.err
    assert "model:rae-" in outcome.err
    assert "|model:syntax-" in outcome.err
    again = run_inside(*both, tmp_path / "b", "-m", syntax_folder, "-m", model_folder, "--block-bytes", 200, "-q")
    assert again.code == 0, again.err
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    columns = run_inside(
        *both, tmp_path / "c", "-m", syntax_folder, "--similarity-columns", "1,2", "--scale", "raw", "-q"
    )
    assert columns.code == 0, columns.err
    lines = TABLE.splitlines(True)
    column_means = [np.mean([float(score) for score in line.split(b" ||| ")[2].split()[:2]]) for line in lines]
    scores = np.array(column_means) * np.nan_to_num(np.clip(cosines(syntax_folder), 0.02, 1), nan=1)
    kept = np.isin(lines, (tmp_path / "c").read_bytes().splitlines(True))
    assert 0 < kept.sum() <= 0.4 * len(lines)
    assert scores[kept].min() >= scores[~kept].max() - 1e-5

    alone = run_inside(*both, tmp_path / "c", "-m", syntax_folder)
    assert (alone.code, "also needs semantic similarities; name a model for them with -m" in alone.message) == (1, True)
    method = ("prune", table, "--method", "syntax+count", *size, tmp_path / "c")
    extra = run_inside(*method, "-m", syntax_folder, "-m", model_folder)
    assert (extra.code, "the method syntax+count(product) does not use this model" in extra.message) == (1, True)
    many = run_inside(*method, *("-m", model_folder) * 4)
    assert (many.code, "and one for the method syntax, not 4 models" in many.message) == (2, True)


def test_long_phrases_are_unscored_and_counted(tmp_path):
    random_syntax_model(longest=12).save(tmp_path / "m")
    long = b" ".join([b"The"] * 30) + b" ||| Die ||| 0.5\n"
    table = write(tmp_path / "t", b"The ||| Die ||| 0.5\n" + long)
    outcome = run_inside("annotate", table, "-m", tmp_path / "m", "-o", tmp_path / "o")
    assert (outcome.code, "1 exceed the maximum length of a model" in outcome.err) == (0, True)
    assert column((tmp_path / "o").read_bytes())[1] == 1
    assert column((tmp_path / "o").read_bytes())[0] < 1


def test_other_languages_are_refused(syntax_folder, tmp_path):
    foreign = "".join(f"的 确 {i} ||| 是 我 {i} ||| 0.5\n" for i in range(400)).encode()
    refused = run_inside("annotate", write(tmp_path / "f", foreign), "-m", syntax_folder, "-o", tmp_path / "o")
    assert (refused.code, "trained on other languages" in refused.message) == (1, True)


def columns(data, count):
    return np.array([list(map(float, line.split(b" ||| ")[2].split()[-count:])) for line in data.splitlines()])


def test_likelihoods_are_columns(syntax_folder, toy_tagger_folder, toy_tagger, table, tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 40)
    tags = ("--tagger", toy_tagger_folder, "--languages", "en,de")
    command = ("annotate", table, "-m", syntax_folder, *tags, "-o")
    outcome = run_inside(*command, tmp_path / "a", "--syntax-columns", "all", "--threads", 1)
    assert outcome.code == 0, outcome.err
    assert "7 scores instead of 4" in outcome.err
    assert "a column is p(tags of target | source) by" in outcome.err
    written = (tmp_path / "a").read_bytes()
    assert naive.cut_columns(written, 3) == TABLE
    model = SyntaxModel.load(syntax_folder)
    sides = [list(side) for side in zip(*phrases(), strict=True)]
    expected = np.column_stack(
        [
            tag_log_probabilities(model, toy_tagger, *sides, "de"),
            tag_log_probabilities(model, toy_tagger, *sides[::-1], "en"),
        ]
    )
    expected = np.where(np.isnan(expected), 0, expected)
    assert columns(written, 3)[:, 1:] == pytest.approx(np.exp(expected), rel=1e-4)
    two = run_inside(
        *command, tmp_path / "b", "--syntax-columns", "likelihood", "--threads", 2, "--block-bytes", 900, "-q"
    )
    assert two.code == 0, two.err
    assert np.array_equal(columns((tmp_path / "b").read_bytes(), 2), columns(written, 3)[:, 1:])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "t.gz"]
    again = run_inside("annotate", tmp_path / "b", "-m", syntax_folder, *tags, "--syntax-columns", "likelihood", "-o",
                       tmp_path / "c", "-q")  # fmt: skip
    assert (again.code, "already holds p(tags of target | source)" in again.message) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--syntax-columns", "likelihood"],
            "--syntax-columns likelihood needs a tagger; name one with --tagger FOLDER",
        ),
        (["--syntax-columns", "all", "--tagger", "T"], "--syntax-columns all needs --languages SOURCE,TARGET"),
        (["--tagger", "T"], "--tagger is for --syntax-columns likelihood or all"),
        (["--languages", "de,en"], "--languages is for --syntax-columns likelihood or all"),
        (
            ["--syntax-columns", "all", "--tagger", "T", "--languages", "en,fr"],
            "unknown language 'fr'; the tagger knows en, de",
        ),
    ],
)
def test_unavailable_columns_are_refused(arguments, said, syntax_folder, toy_tagger_folder, model_folder, table):
    options = [toy_tagger_folder if argument == "T" else argument for argument in arguments]
    outcome = run_inside("annotate", table, "-m", syntax_folder, *options, "-o", "-")
    assert (outcome.code, said in outcome.err) == (2, True), outcome.err
    if "--syntax-columns" in arguments:
        semantic = run_inside("annotate", table, "-m", model_folder, *options, "-o", "-")
        assert (semantic.code, "is for a syntactic encoder; name one with -m" in semantic.err) == (2, True)


def test_torch_is_not_loaded(syntax_folder, table):
    code = (
        "import sys\nfrom phrasetool_cli.main import main\n"
        "try: main(['annotate', sys.argv[1], '-m', sys.argv[2], '-q', '-o', '-'])\n"
        "except SystemExit as done: assert not done.code\n"
        "sys.exit(40 + ('torch' in sys.modules))"
    )
    command = [sys.executable, "-c", code, str(table), str(syntax_folder)]
    outcome = subprocess.run(command, capture_output=True, check=False)
    assert outcome.returncode == 40, outcome.stderr
