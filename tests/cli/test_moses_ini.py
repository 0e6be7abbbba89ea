"""`phrasetool moses-ini`."""

import re

import pytest

from moses_compat.engine.model import MosesModel
from tests.commands import read, run_inside, write
from tests.moses_compat.ini.ini_examples import VERSION_1

ARPA = b"""\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-1\t<unk>
-9\t<s>
-1\t</s>
-1\thouse

\\2-grams:
-0.5\thouse house

\\end\\
"""
# KenLM does not read models of order 1.
ORDER_1 = b"\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<unk>\n-9\t<s>\n-1\t</s>\n\n\\end\\\n"


@pytest.fixture
def model(tmp_path):
    write(tmp_path / "table.gz", b"haus ||| house ||| 0.5 0.4\n")
    write(tmp_path / "richer", b"haus ||| house ||| 0.5 0.4 0.9 0.8\n")
    write(tmp_path / "reordering", b"haus ||| house ||| 0.5 0.4 0.1 0.5 0.4 0.1\n")
    write(tmp_path / "lm.arpa", ARPA)
    write(tmp_path / "words.arpa", ORDER_1)
    return tmp_path


def new_ini(model, *arguments):
    command = ["moses-ini", "--table", model / "table.gz", "--lm", model / "lm.arpa", "-o", model / "moses.ini"]
    return run_inside(*command, *arguments)


def test_a_new_ini_is_a_model_that_translates(model):
    assert new_ini(model, "--reordering-table", model / "reordering", "--distortion-limit", "4").code == 0
    result = MosesModel.read(str(model / "moses.ini"))
    assert result.features.sizes["TranslationModel"] == 2
    assert result.features.sizes["LexicalReordering"] == 6
    assert result.search.distortion_limit == 4
    assert result.weights.tolist() == result.features.default_weights().tolist()
    assert b"order=2" in read(model / "moses.ini")
    outcome = run_inside("decode", "--moses-ini", model / "moses.ini", "-q", stdin=b"haus x\n")
    assert outcome.out == b"house x\n"


def test_without_a_reordering_table_there_is_no_such_feature(model):
    assert new_ini(model).code == 0
    assert b"LexicalReordering" not in read(model / "moses.ini")
    assert run_inside("decode", "--moses-ini", model / "moses.ini", "-q", stdin=b"haus\n").out == b"house\n"


@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_a_table_with_more_columns(model, weight):
    new_ini(model)
    outcome = run_inside(
        "moses-ini", model / "moses.ini", "--table", model / "richer", "--weight", weight, "-o", model / "richer.ini"
    )
    assert outcome.code == 0
    before, after = MosesModel.read(str(model / "moses.ini")), MosesModel.read(str(model / "richer.ini"))
    assert after.table == str(model / "richer")
    assert after.weights.tolist() == [*before.weights.tolist(), weight, weight]


def test_a_weight_without_a_new_column_is_refused(model):
    new_ini(model)
    outcome = run_inside("moses-ini", model / "moses.ini", "--table", model / "table.gz", "--weight", "0.5", "-o",
                         model / "new.ini")  # fmt: skip
    assert (outcome.code, (model / "new.ini").exists()) == (2, False)
    assert "--weight is for additional columns; " in outcome.message
    assert "table.gz has as many scores as TranslationModel0 in " in outcome.message


def test_another_reordering_table(model):
    """Its path is written as given, although the old file is missing and the ini is written to another folder."""
    new_ini(model, "--reordering-table", model / "reordering")
    text = read(model / "moses.ini").replace(f"path={model}/reordering".encode(), b"path=gone  # old")
    write(model / "moses.ini", text)
    (model / "new").mkdir()
    write(model / "small", read(model / "reordering"))
    outcome = run_inside(
        "moses-ini", model / "moses.ini", "--table", model / "table.gz", "--reordering-table", model / "small",
        "-o", model / "new" / "moses.ini",
    )  # fmt: skip
    assert outcome.code == 0
    assert read(model / "new" / "moses.ini") == text.replace(b"path=gone", f"path={model}/small".encode())


def test_another_reordering_table_of_version_1(model):
    write(model / "1.ini", VERSION_1.replace("small.gz", "table.gz").encode())
    outcome = run_inside("moses-ini", model / "1.ini", "--table", model / "table.gz", "--reordering-table",
                         model / "reordering")  # fmt: skip
    assert outcome.code == 0
    assert outcome.out.decode() == VERSION_1.replace("small.gz", f"{model}/table.gz").replace(
        "reordering.gz", f"{model}/reordering"
    )


def test_a_reordering_table_cannot_be_added(model):
    new_ini(model)
    outcome = run_inside("moses-ini", model / "moses.ini", "--table", model / "table.gz", "--reordering-table",
                         model / "reordering")  # fmt: skip
    assert outcome.code == 1
    assert "expected one reordering table, found 0" in outcome.message


def test_standard_output(model):
    outcome = run_inside("moses-ini", "--table", model / "table.gz", "--lm", model / "lm.arpa")
    assert outcome.code == 0
    assert outcome.out.startswith(b"[input-factors]\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--table", "nothing", "--lm", "lm.arpa"], 1, "nothing: No such file"),
        (["--table", "empty", "--lm", "lm.arpa"], 1, "empty: holds no phrase-table entry"),
        (["--table", "table.gz", "--lm", "richer"], 1, "not an ARPA file"),
        (
            ["--table", "table.gz", "--lm", "words.arpa"],
            1,
            "words.arpa: a language model of order 1, which Moses refuses",
        ),
        (["--table", "table.gz"], 2, "needs --lm"),
        (["richer", "--table", "table.gz"], 1, "expected a moses.ini"),
    ],
)
def test_bad_input(model, monkeypatch, arguments, code, message):
    monkeypatch.chdir(model)
    write(model / "empty", b"")
    outcome = run_inside("moses-ini", *arguments, "-o", "out.ini")
    assert outcome.code == code
    assert message in outcome.err
    assert not (model / "out.ini").exists()


ORDERS = "".join(f"{s} ||| {s} ||| 0.{i} 0.{9 - i} 0.1 0.5 0.4 0.1\n" for i, s in enumerate("abcdefg")).encode()
PHRASES = b"".join(b"%c ||| b ||| 0.5 0.4 ||| 0-0 ||| 3 3 1\n" % c for c in b"abcdefg")


@pytest.mark.parametrize("new", [True, False], ids=["new", "changed"])
@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (("--table", "orders"), "orders: looks like a reordering table; expected a phrase table"),
        (("--table", "phrases", "--reordering-table", "phrases"), "phrases: looks like a phrase table; expected a reo"),
        (("--table", "phrases", "--reordering-table", "narrow"), "narrow:1: the entries have 3 scores, but the model"),
        (("--table", "phrases", "--reordering-table", "text"), "text: holds no reordering-table entry"),
        (("--table", "phrases", "--reordering-table", "nothing"), "nothing: No such file"),
        (("--table", "phrases", "--reordering-table", "orders"), ""),
        (("--table", "phrases", "--reordering-table", "binary"), ""),
    ],
)
def test_tables_of_the_wrong_kind(model, monkeypatch, tables, message, new):
    """Moses would stop at tables of the wrong kind, or take orientations for probabilities."""
    monkeypatch.chdir(model)
    new_ini(model, "--reordering-table", "reordering", "-q")
    narrow = ORDERS.replace(b" 0.5 0.4 0.1", b"")
    files = {"orders": ORDERS, "phrases": PHRASES, "narrow": narrow, "text": b"0-0 1-1\n", "binary.minlexr": b"x"}
    for name, data in files.items():
        write(model / name, data)
    outcome = run_inside("moses-ini", *(("--lm", "lm.arpa") if new else ("moses.ini",)), *tables, "-o", "out.ini")
    assert (outcome.code, message in outcome.err, (model / "out.ini").exists()) == (bool(message), True, not message), (
        outcome.err
    )


def test_paths_relative_to_the_folder(model, tmp_path, monkeypatch):
    new_ini(model, "--relative", "--reordering-table", model / "reordering")
    text = read(model / "moses.ini").decode()
    assert str(model) not in text
    assert {"path=table.gz", "path=lm.arpa", "path=reordering"} <= set(text.split())
    (model / "new").mkdir()
    outcome = run_inside(
        "moses-ini", model / "moses.ini", "--table", model / "table.gz", "--relative", "-o", model / "new" / "moses.ini"
    )
    assert outcome.code == 0
    moved = read(model / "new" / "moses.ini").decode()
    assert moved == text.replace("path=", "path=../")
    # Paths do not depend on the working directory.
    monkeypatch.chdir("/")
    assert MosesModel.read(str(model / "new" / "moses.ini")).table == str(model / "table.gz")


def test_relative_needs_an_output_file(model):
    outcome = run_inside("moses-ini", "--table", model / "table.gz", "--lm", model / "lm.arpa", "--relative")
    assert (outcome.code, outcome.out) == (2, b"")
    assert "--relative needs to know the folder of the ini" in outcome.message


@pytest.mark.parametrize(
    "option", [("--lm", "lm.arpa"), ("--reordering-type", "msd-bidirectional-fe"), ("--distortion-limit", "3")]
)
def test_options_of_a_new_ini_are_refused_with_an_ini(model, monkeypatch, option):
    monkeypatch.chdir(model)
    assert run_inside("moses-ini", "--table", "table.gz", "--lm", "lm.arpa", "-o", "moses.ini").code == 0
    outcome = run_inside("moses-ini", "moses.ini", "--table", "richer", *option, "-o", "out.ini")
    assert outcome.code == 2
    assert f"{option[0]} is for a new moses.ini" in outcome.message
    assert not (model / "out.ini").exists()


SOURCES = b"haus ||| 0.5 0.3 0.2\nhaus x ||| 0.1 0.8 0.1\n"


@pytest.mark.parametrize(
    ("kind", "table", "message"),
    [
        ("wbe-msd-backward-f-allff", SOURCES, ""),
        ("wbe-msd-backward-f-allff", b"haus ||| house ||| 0.5 0.3 0.2\n", "orders:1: expected source ||| scores"),
        ("wbe-msd-bidirectional-f-allff", SOURCES, "orders:1: the entries have 3 scores, but the model expects 6"),
        ("wbe-msd-backward-fe-allff", SOURCES, "orders: holds no reordering-table entry"),
        ("wbe-msd-backward-fe-collapseff", b"haus ||| house ||| 0.5 0.3 0.2\n", ""),
        ("wbe-msd-backward-fe-collapseff", b"haus ||| house ||| 0.5\n", "orders:1: the entries have 1 scores, but"),
    ],
)
def test_types_of_reordering(model, monkeypatch, kind, table, message):
    """A new ini, and one that already has a table of this type, which Moses reads without num-features, too."""
    monkeypatch.chdir(model)
    write(model / "orders", table)
    outcome = new_ini(model, "--reordering-table", "orders", "--reordering-type", kind)
    assert (outcome.code, message in outcome.err) == (bool(message), True), outcome.err
    good = SOURCES if "-f-" in kind else b"haus ||| house ||| 0.5 0.3 0.2\n"
    write(model / "first", good.replace(b"0.2\n", b"0.2 0.5 0.3 0.2\n") if "bidirectional" in kind else good)
    assert new_ini(model, "--reordering-table", "first", "--reordering-type", kind).code == 0
    text = read(model / "moses.ini")
    feature = next(line for line in text.splitlines() if line.startswith(b"LexicalReordering name"))
    # Moses expects target phrases if the feature has output-factor.
    assert (b"output-factor" in feature) == ("-fe-" in kind)
    write(model / "moses.ini", re.sub(rb"(LexicalReordering0) num-features=\d", rb"\1", text))
    outcome = run_inside("moses-ini", "moses.ini", "--table", "table.gz", "--reordering-table", "orders", "-o", "o.ini")
    assert (outcome.code, message in outcome.err) == (bool(message), True), outcome.err


def test_a_hierarchical_reordering_table_can_be_replaced(model):
    """Only Moses supports its type, whose tables have the same columns."""
    new_ini(model, "--reordering-table", model / "reordering")
    write(model / "moses.ini", read(model / "moses.ini").replace(b"type=wbe-", b"type=hier-"))
    outcome = run_inside("moses-ini", model / "moses.ini", "--table", model / "table.gz", "--reordering-table",
                         model / "reordering", "-o", model / "new.ini")  # fmt: skip
    assert outcome.code == 0, outcome.err


def test_an_unsupported_type_of_reordering_is_refused(model, monkeypatch):
    monkeypatch.chdir(model)
    arguments = ("--table", "table.gz", "--lm", "lm.arpa", "--reordering-table", "reordering")
    outcome = run_inside("moses-ini", *arguments, "--reordering-type", "wbe-msd-bidirectional-e-allff", "-o", "out.ini")
    assert (outcome.code, "'e' is not supported" in outcome.message) == (2, True)
    assert not (model / "out.ini").exists()
