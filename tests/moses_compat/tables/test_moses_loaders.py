import pytest

from moses_compat.files.streams import Input
from moses_compat.tables.inspect import inspect_table
from moses_compat.tables.moses_loaders import _RULES, verdicts
from tests.commands import write
from tests.tables import FAULTY, OTHER_FILES, TABLES

LOADERS = ["moses", "moses2", "processPhraseTableMin", "CreateOnDiskPt", "CreateProbingPT"]


def judge(tmp_path, text):
    with Input(str(write(tmp_path / "t", text))) as source:
        return {verdict.loader: verdict for verdict in verdicts(inspect_table(source))}


GOOD = b"a ||| b ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||\na ||| c ||| 0.5 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n"


def test_a_table_everyone_takes(tmp_path):
    found = judge(tmp_path, GOOD)
    assert list(found) == LOADERS
    assert {verdict.answer for verdict in found.values()} == {"yes"}
    assert [verdict.options for verdict in found.values()] == [
        "num-features=4", "num-features=4", "-nscores 4", "1 1 4 100 2", "--num-scores 4",
    ]  # fmt: skip


# A second line, and what moses, moses2, processPhraseTableMin, CreateOnDiskPt and CreateProbingPT say to it.
@pytest.mark.parametrize(
    ("line", "answers"),
    [
        (b"a ||| d ||| 0.5 0.5 0.5 0 ||| 0-0", "but but but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 -1 ||| 0-0", "no no no no no"),
        (b"a ||| d ||| 0.5 0.5 0.5 x ||| 0-0", "no but but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 nan ||| 0-0", "no no but but no"),
        (b"a ||| d ||| 0.5 0.5 0.5 inf ||| 0-0", "but but but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 ||| 0-0", "no no no no no"),
        (b"a ||| d", "no no no no no"),
        (b"", "no no no no no"),
        (b"a ||| d ||| 0.5 0.5 0.5 1", "yes yes but yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0:0", "no no but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 4-0", "but yes no yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-4", "but but no no yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0\r", "yes yes yes yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1\r", "yes yes but yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1\r", "yes yes yes yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||\r", "yes yes yes yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| x 1 |||", "yes but but yes but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| x |||", "but but but yes but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| {{Counts 1 1 1}}", "yes but but yes but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| {{Sim 1}}", "no but but no but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| sim", "no but but no but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| ||| 5", "yes yes yes yes yes"),
        (b"a ||| d [x] ||| 0.5 0.5 0.5 1 ||| 0-0", "but yes yes but yes"),
        (b"a ||| d [x] e ||| 0.5 0.5 0.5 1 ||| 0-0", "no yes yes but yes"),
        (b"a ||| d|e ||| 0.5 0.5 0.5 1 ||| 0-0", "but but but no but"),
        (b"a ||| d|e|f|g|h ||| 0.5 0.5 0.5 1 ||| 0-0", "no but no no but"),
        (b"a ||| d  e ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes no yes no"),
        (b"a ||| d\te ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes no no no"),
        (b"a |||d ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes yes no yes"),
        (b"a ||| c ||| 0.5 1 1 1 ||| 0-0 ||| 2", "yes yes but yes yes"),
        (b"a ||| a ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes no yes yes"),
        (b"b ||| a ||| 0.5 0.5 0.5 1 ||| 0-0\na  ||| q ||| 1 1 1 1 ||| 0-0", "yes yes no no no"),
    ],
    ids=str,
)
def test_one_line(tmp_path, line, answers):
    found = judge(tmp_path, GOOD + line + b"\n")
    assert " ".join(verdict.answer.split()[-1] for verdict in found.values()) == answers
    for verdict in found.values():
        assert all(objection.first >= 3 for objection in verdict.objections)


def test_first_lines(tmp_path):
    for first in (b"", b"1"):
        objection = judge(tmp_path, first + b"\n" + GOOD)["moses"].objections[0]
        assert (objection.first, objection.stops) == (1, True)
        assert "first line" in objection.reason


def test_rule_tables(tmp_path):
    found = judge(tmp_path, TABLES["hierarchical"])
    assert [verdict.answer for verdict in found.values()] == ["yes", "yes", "no", "yes", "no"]
    assert "room for 1.2 keys a source" in found["CreateProbingPT"].objections[0].reason
    assert judge(tmp_path, TABLES["glue one count"])["CreateProbingPT"].answer == "yes"
    assert found["CreateProbingPT"].options == "--num-scores 2 --scfg"
    differ = judge(tmp_path, TABLES["non-terminals differ"])["moses"]
    assert (differ.answer, differ.objections[0].first, differ.objections[0].lines) == ("no", 1, 5)


def test_factors(tmp_path):
    found = judge(tmp_path, TABLES["factored both"])
    assert found["moses"].options == "num-features=4 input-factor=0,1,2 output-factor=0,1"
    assert found["CreateOnDiskPt"].options == "3 2 4 100 2"
    assert judge(tmp_path, TABLES["two counts"])["processPhraseTableMin"].options == "-nscores 5 -rankscore 2"


def test_no_table(tmp_path):
    for text in (OTHER_FILES["lexical"], TABLES["empty"]):
        assert judge(tmp_path, text) == {}


def test_every_name_is_one_that_inspect_gives(tmp_path):
    names = set()
    others = [b"\n" + GOOD, b"1\n" + GOOD, b"[X] ||| a ||| 1\n", TABLES["factored both"].replace(b"|NN|x", b"", 1)]
    others += [TABLES["factored target"].replace(b"|NN", b"", 1), b"a ||| x ||| 1 ||| 0-0\r\n", FAULTY]
    others += [word + b" ||| x ||| 1\na ||| y ||| 1\nb ||| x ||| 1\n" for word in (b"a|b|c|d|e", b"a|b")]
    others += [b"a ||| x|1|2|3|4 ||| 1\na ||| y ||| 1\nb ||| x ||| 1\n", b"a ||| x [X][X] y ||| 1\n"]
    others += [b"a ||| || [] ||| 1\n", b"a ||| \0 ||| 1\nb ||| x ||| 1\na b ||| x ||| 1\n"]
    for text in [*TABLES.values(), *others]:
        with Input(str(write(tmp_path / "t", text))) as source:
            names |= inspect_table(source).oddities.keys()
    assert {name for stops, minds in _RULES.values() for name in {**stops, **minds}} <= names
