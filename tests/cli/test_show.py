import gzip
import json

import pytest

from moses_compat.files import streams
from phrasetool.errors import PhraseToolError
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrases import Phrases
from tests.commands import run_inside, write

TABLE = b"""\
das haus ||| the house ||| 0.5 0.25 0.75 0.125 ||| 0-0 1-1 ||| 4 3 2 ||| |||
das haus ||| house ||| 0.5 0.25 0.875 0.125 ||| 1-0 ||| 4 3 2 ||| |||
das haus ||| the ||| 0.5 0.25 0.75 0.0000125 ||| 0-0 ||| 4 3 3 ||| |||
hausboot ||| the house boat ||| 1 1 1 1 ||| 0-1 0-2 ||| 1 1 1 ||| |||
"""


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "table.gz", TABLE)


def show(*arguments):
    outcome = run_inside("show", *arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out.decode()


def test_entries_are_shown_the_best_first(table):
    assert show(table, "das", "haus").splitlines() == [
        "target     phi(f|e)  lex(f|e)  phi(e|f)  lex(e|f)  count(e)  count(f)  count  alignment",
        "house           0.5      0.25     0.875     0.125         4         3      2  haus=house",
        "the             0.5      0.25      0.75  1.25e-05         4         3      3  das=the",
        "the house       0.5      0.25      0.75     0.125         4         3      2  das=the haus=house",
    ]
    assert show(table, "the  house", "--target").splitlines()[1].startswith("das haus ")
    outcome = run_inside("show", table, "das haus", "--limit", 1)
    assert (len(outcome.out.splitlines()), outcome.err) == (
        2,
        "phrasetool: the best 1 of 3 entries; --limit 0 shows all\n",
    )


def test_an_index_that_exists_need_not_be_writable(table, monkeypatch):
    show(table, "das haus")

    class Unwritable:
        def __init__(self, path):
            raise PhraseToolError(f"{path}: cannot write")

    monkeypatch.setattr(streams, "Output", Unwritable)
    assert show(table, "das haus").count("\n") == 4
    write(table, TABLE * 2)
    outcome = run_inside("show", table, "das haus", "-q")
    assert (outcome.code, outcome.err) == (1, f"phrasetool: error: {table}.index: cannot write\n")


def test_phrases_that_contain_a_text(table):
    rows = show(table, "haus", "--contains", "--limit", 0).splitlines()
    assert [row[:25] for row in rows] == [
        "source    target         ", "hausboot  the house boat ", "das haus  house          ",
        "das haus  the            ", "das haus  the house      ",
    ]  # fmt: skip


def test_json(table):
    record = json.loads(show(table, "hausboot", "--json", "-"))
    assert (record["entries"], len(record["shown"])) == (1, 1)
    assert record["shown"][0] == {
        "line": 4, "source": "hausboot", "target": "the house boat",
        "scores": {"phi(f|e)": 1, "lex(f|e)": 1, "phi(e|f)": 1, "lex(e|f)": 1},
        "counts": {"count(e)": 1, "count(f)": 1, "count": 1}, "alignment": "0-1 0-2",
    }  # fmt: skip


def test_similarities_are_those_of_the_model(table, model_folder):
    model = BilingualModel.load(model_folder)
    record = json.loads(show(table, "das haus", "-m", model_folder, "--json", "-"))
    for entry in record["shown"]:
        sides = [
            Phrases.from_lists([vocabulary.ids(entry[side].encode())])
            for side, vocabulary in (("source", model.source_vocabulary), ("target", model.target_vocabulary))
        ]
        assert entry["similarities"] == pytest.approx(model.scorer().score_pairs(*sides)[0].tolist(), abs=1e-5)
    assert "sim(f,e)  sim(e,f)  alignment" in show(table, "das haus", "-m", model_folder)


def test_decisions_are_those_of_pruning(table, tmp_path):
    reasons = tmp_path / "reasons.parquet"
    options = ("--method", "probability", "-t", "0.8", "--keep-top", 1, "--protect", "all", "-q")
    assert run_inside("prune", table, *options, "--reasons", reasons, "-o", tmp_path / "small.gz").code == 0
    small = gzip.decompress((tmp_path / "small.gz").read_bytes())
    kept = {line.split(b" ||| ")[1] for line in small.splitlines() if line.startswith(b"das haus |||")}
    record = json.loads(show(table, "das haus", "--reasons", reasons, "--json", "-"))
    decisions = {entry["target"]: entry["decision"] for entry in record["shown"]}
    assert decisions == {"house": "kept", "the": "removed by probability", "the house": "removed by probability"}
    assert kept == {b"house"}
    other_table = write(tmp_path / "other", TABLE.replace(b"the house |||", b"a house |||"))
    outcome = run_inside("show", other_table, "das haus", "--reasons", reasons)
    assert (outcome.code, "belongs to another table: its line 1 has another entry" in outcome.message) == (1, True)
    outcome = run_inside("show", table, "das haus", "--reasons", table)
    assert (outcome.code, "was not written by `prune --reasons`" in outcome.message) == (1, True)


def test_decisions_about_phrases_that_are_not_utf8(tmp_path):
    """Both sources have the same text in the reasons; neither line is of another table."""
    table = write(
        tmp_path / "t", b"".join(b"a%b ||| b ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n" % byte for byte in (b"\xe8", b"\xe9"))
    )
    rule = ("--method", "count", "-t", "2", "--protect", "none", "--force")
    pruned = run_inside("prune", table, *rule, "--reasons", tmp_path / "r", "-o", tmp_path / "small")
    assert pruned.code == 0, pruned.err
    assert "removed by count" in show(table, "a\udce9", "--reasons", tmp_path / "r")


def test_decisions_about_a_sorted_copy_are_refused(tmp_path):
    """Lines of the reasons are those of the sorted table, in which `c ||| x` is line 3."""
    entries = (("b ||| y", 3), ("c ||| x", 1), ("a ||| z", 5))
    rows = [f"{pair} ||| 0.5 0.5 0.{n} 0.5 ||| 0-0 ||| 9 9 {n} ||| |||\n" for pair, n in entries]
    table = write(tmp_path / "t", "".join(rows).encode())
    rule = ("--method", "count:3", "--protect", "none", "--sort", "-q")
    pruned = run_inside("prune", table, *rule, "--reasons", tmp_path / "r")
    assert (pruned.code, pruned.out.decode()) == (0, rows[2] + rows[0])
    outcome = run_inside("show", table, "c", "--reasons", tmp_path / "r")
    assert (outcome.code, "the entry of line 2 is its line 3" in outcome.message) == (1, True)
    ordered = write(tmp_path / "sorted", "".join(sorted(rows)).encode())
    assert "removed by count" in show(ordered, "c", "--reasons", tmp_path / "r")


@pytest.mark.parametrize(
    ("data", "head"),
    [
        (b"a ||| b ||| 0.5 x\n", "target  score 1  score 2  alignment"),
        (b"a ||| b ||| 1 1 1 1 2.718 ||| 0-9 5-0 || ||| 1 1\n", "phi(e|f)  lex(e|f)  score 5  count(e)  count(f)  al"),
        ("天 ||| 地 地 ||| 0.5\n天 ||| ab ||| 0.25\n".encode(), "target  score 1  alignment"),
    ],
)
def test_tables_of_other_forms(data, head, tmp_path):
    table = write(tmp_path / "t", data)
    text = show(table, data.decode().partition(" ")[0])
    assert head in text


def test_wide_characters_are_aligned(tmp_path):
    table = write(tmp_path / "t", "a ||| 地地地 地 ||| 0.5\na ||| b ||| 0.25\n".encode())
    assert show(table, "a").splitlines() == [
        "target     score 1  alignment", "地地地 地      0.5", "b             0.25",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-", "a"), 2, "TABLE cannot be standard input"),
        (("T", " "), 2, "PHRASE must have a word"),
        (("T", "a ||| b"), 2, "neither ||| nor a line feed"),
        (("T", "boot"), 1, "no source phrase is 'boot'; --contains also finds longer phrases"),
        (("T", "zzz", "--contains", "--target"), 1, "no target phrase contains 'zzz'"),
        (("none", "a"), 1, "No such file"),
        (("T", "hausboot", "-m", "none"), 1, "no such model folder"),
        (("T", "hausboot", "--index", "T"), 1, "table.gz"),
    ],
)
def test_refusals(table, arguments, code, message):
    outcome = run_inside("show", *(str(table) if word == "T" else word for word in arguments))
    assert (outcome.code, outcome.out) == (code, b"")
    assert message in outcome.message
    assert table.read_bytes() == write(table.parent / "copy.gz", TABLE).read_bytes()


def test_a_damaged_index_is_reported_with_a_remedy(table, tmp_path):
    write(tmp_path / "table.gz.index", b"no index")
    outcome = run_inside("show", table, "hausboot")
    assert outcome.message.endswith(
        "is not a phrase index of this version; delete the file, and `phrasetool show` builds it again"
    )
    assert outcome.code == 1
