"""`phrasetool annotate --smoothing`: the probabilities of extraction with this smoothing as more columns."""

import os

import pytest

from moses_compat.ini.reading import read_moses_ini
from tests import naive
from tests.commands import read, run_inside, run_outside, write
from tests.moses_compat.engine.test_extracted import GOLDEN
from tests.tables import INI
from tests.test_promise import WAYS

BITEXT = [GOLDEN / f"bitext.{name}" for name in ("source", "target", "aligned")]
METHODS = ["kneser-ney", "good-turing"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return an unsmoothed table that phrasetool extracted."""
    path = tmp_path_factory.mktemp("extracted") / "t.gz"
    assert run_inside("extract", *BITEXT, "-q", "-o", path).code == 0
    return path


def annotate(table, *options, smoothing="kneser-ney"):
    return run_inside("annotate", table, "--smoothing", smoothing, "-q", *options)


def last_columns(annotated, columns=2):
    return [line.split(b"|||")[2].split()[-columns:] for line in naive.split_lines(annotated)]


@pytest.mark.parametrize("smoothing", METHODS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_columns_equal_those_of_extraction(table, tmp_path, smoothing, way):
    """The digits equal those of phrasetool's and of Moses' extraction."""
    ending, options = way
    source, out = write(tmp_path / f"in{ending}", read(table)), tmp_path / f"out{ending}"
    assert annotate(source, "-o", out, *options, smoothing=smoothing).code == 0
    annotated = read(out)
    assert naive.cut_columns(annotated, 2) == read(table)
    extracted = run_inside("extract", *BITEXT, "--smoothing", smoothing, "-q").out
    assert extracted == read(GOLDEN / f"table.{smoothing}.gz")
    expected = [line.split(b"|||")[2].split() for line in naive.split_lines(extracted)]
    assert last_columns(annotated) == [[scores[2], scores[0]] for scores in expected]


def test_order_of_columns(table, model_folder, tmp_path):
    pairs = write(tmp_path / "p", b"a ||| b ||| 2\n")
    forced = run_inside("annotate", table, "-q", "-m", model_folder, "--forced-pairs", pairs, "-o", "-").out
    alone = annotate(table, "-o", "-").out
    every = annotate(table, "-m", model_folder, "--forced-pairs", pairs, "-o", "-").out
    assert naive.cut_columns(every, 2) == forced
    assert last_columns(every) == last_columns(alone)
    similar = run_inside("annotate", table, "-q", "-m", model_folder, "-o", "-").out
    assert naive.cut_columns(annotate(table, "-m", model_folder, "-o", "-").out, 2) == similar


def test_no_model_is_needed_or_loaded(table, tmp_path, monkeypatch):
    monkeypatch.setenv("PHRASETOOL_MODEL", str(tmp_path / "nowhere"))
    outcome = run_outside("annotate", table, "--smoothing", "kneser-ney", "-o", tmp_path / "o.gz")
    assert outcome.code == 0
    assert "annotated 1,240 entries\n" in outcome.err
    assert "6 scores instead of 4" in outcome.err
    assert "seen only once" not in outcome.err


def test_any_number_of_scores_and_a_pruned_table(tmp_path):
    source = write(tmp_path / "t", b"a ||| b ||| .5 ||| ||| 4 8 2\na ||| c ||| .5 |||  |||2 8 2 \n")
    outcome = run_inside("annotate", source, "--smoothing", "kneser-ney", "-o", "-")
    # 1.9 of each joint count of 2 is subtracted and redistributed in proportion to the entries of the other phrase.
    assert outcome.out == b"a ||| b ||| .5 0.25 0.5 ||| ||| 4 8 2\na ||| c ||| .5 0.25 1 |||  |||2 8 2 \n"
    assert f"no entry of {source} was seen only once" in outcome.err


def test_without_counts(tmp_path):
    before = b"a ||| b ||| 0.5 ||| 0-0 ||| 2 2 1\n"
    for text, reason in (
        (b"a ||| b ||| 0.5\n", "the entry has no joint count; smoothing needs c(t) c(s) c(s,t)"),
        (b"a ||| b ||| 0.5 ||| 0-0 ||| 2 2\n", "the entry has no joint count (found '2 2'); smoothing needs"),
        (b"a ||| b ||| 0.5 ||| 0-0 ||| 1 2 2\n", "the entry has an impossible joint count (found '1 2 2')"),
    ):
        source = write(tmp_path / "t", before + text)
        for on_error in ("fail", "skip", "keep"):
            failed = annotate(source, "-o", tmp_path / "o", "--on-error", on_error)
            assert failed.code == 1
            assert failed.message.startswith(f"phrasetool: {source}:2: {reason}")
    assert os.listdir(tmp_path) == ["t"]


def test_malformed_lines(tmp_path):
    good = b"a ||| b ||| 0.5 ||| ||| 2 2 1\nc ||| b ||| 0.5 ||| ||| 2 1 1\n"
    lines = good.splitlines(keepends=True)
    source = write(tmp_path / "t", lines[0] + b"nothing\n" + lines[1])
    assert annotate(source, "-o", "-").message.startswith(f"phrasetool: {source}:2: expected at least 3 fields")
    expected = naive.split_lines(annotate(write(tmp_path / "good", good), "-o", "-").out)
    kept = annotate(source, "-o", "-", "--on-error", "keep").out
    assert kept == expected[0] + b"nothing\n" + expected[1]
    assert annotate(source, "-o", "-", "--on-error", "skip").out == b"".join(expected)


def test_a_table_that_can_be_read_only_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("-", pipe):
        outcome = run_inside("annotate", path, "--smoothing", "good-turing", "-o", tmp_path / "o", stdin=b"")
        assert (outcome.code, "reads the table twice" in outcome.err) == (2, True)
    loud = run_inside("annotate", tmp_path / "t", "--smoothing", "loud")
    assert (loud.code, "kneser-ney" in loud.err) == (2, True)
    assert annotate(tmp_path / "none").code == 1
    assert annotate(tmp_path).code == 2


@pytest.mark.parametrize("models", [0, 1])
def test_the_ini_has_a_weight_for_every_column(table, model_folder, tmp_path, monkeypatch, models):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t", read(table))
    write(tmp_path / "ini", INI.encode())
    more = ["-m", model_folder] * models
    outcome = annotate("t", "--moses-ini", "ini", "--moses-ini-out", "more.ini", *more)
    assert outcome.code == 0
    after = read_moses_ini("more.ini")
    columns = 2 + 2 * models
    assert after.features[0].arguments["num-features"] == str(4 + columns)
    assert after.weights["TranslationModel0"] == [0.1, 0.2, 0.3, 0.4] + [0] * columns
