"""`phrasetool prune --method`."""

import json

import pytest

from tests.commands import read, run_inside, write

TABLE = [
    b"das ||| the ||| 0.5 0.5 0.6 0.5 ||| 0-0 ||| 8 8 5\n",
    b"das ||| this ||| 0.5 0.5 0.3 0.5 ||| 0-0 ||| 8 8 2\n",
    b"das ||| a ||| 0.5 0.5 0.1 0.5 ||| 0-0 ||| 8 8 1\n",
    b"das haus ||| the house ||| 0.25 0.25 0.3 0.25 ||| 0-0 1-1 ||| 4 4 3\n",
    b"das haus ||| home ||| 0.9 0.1 0.9 0.1 ||| 1-0 ||| 4 4 1\n",
    b"haus ||| house ||| 0.5 0.5 1 0.5 ||| 0-0 ||| 4 4 4\n",
]
INI = """\
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table.gz input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path=lm.arpa order=3

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0
TranslationModel0= 1 0 1 0
Distortion0= 0.3
LM0= 0.5
"""


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "table.gz", b"".join(TABLE))
    write(tmp_path / "moses.ini", INI.encode())
    write(tmp_path / "de", b"das haus\ndas haus\ndas\ndas x\n")
    write(tmp_path / "en", b"the house\nhome house\nthe\na house\n")
    return tmp_path


def prune(folder, *options):
    return run_inside("prune", folder / "table.gz", *options, "-o", folder / "out")


def kept(folder, *options):
    done = prune(folder, *options)
    assert done.code == 0, done.err
    return [TABLE.index(line) for line in read(folder / "out").splitlines(keepends=True)]


def test_composition(folder):
    """`das haus ||| the house` is made up by two others at a loss of ln 0.3 + ln 0.25 - ln 0.6 - ln 0.25 < 0."""
    options = ("--method", "composition", "--moses-ini", folder / "moses.ini", "--keep-top", "0")
    assert kept(folder, *options, "--threshold", "0") == [0, 1, 2, 4, 5]
    # Uncomposable entries go by their counts: 5, 4, then 2.
    assert kept(folder, *options, "--target-size", "0.5") == [0, 1, 5]


def test_counts_and_probabilities(folder):
    assert kept(folder, "--method", "count", "-t", "3", "--keep-top", "0") == [0, 3, 5]
    assert kept(folder, "--method", "probability", "--target-size", "0.34", "--keep-top", "0") == [4, 5]


def test_top(folder):
    options = ("--method", "top", "--moses-ini", folder / "moses.ini", "--keep-top", "0", "-t", "0")
    # By p(f|e) p(e|f): the best of every source.
    assert kept(folder, *options) == [0, 4, 5]


def test_significance(folder):
    options = ("--method", "significance", "--corpus", folder / "de", folder / "en", "--keep-top", "0")
    # `this` does not occur at all, so nothing speaks for it.
    assert 1 not in kept(folder, *options, "--threshold", "0.0001")


def test_the_best_of_words_stay(folder):
    options = ("--method", "random", "--seed", "3", "--protect", "words", "--keep-top", "1", "-t", "2")
    assert {TABLE[i].split()[0] for i in kept(folder, *options)} == {b"das", b"haus"}
    done = prune(folder, *options[:-2], "--target-size", "0.1")
    assert done.code == 1
    assert "2 of 6 entries (33.3%) are kept at any threshold, more than the wanted 10.0%" in done.message


@pytest.mark.parametrize("more", [("--threads", "1"), ("--threads", "2", "--block-bytes", "1")])
def test_the_default_with_an_ini_is_composition_and_semantic(folder, model_folder, more):
    options = ("-m", model_folder, "--moses-ini", folder / "moses.ini", "--target-size", "0.5", "--keep-top", "0")
    named = kept(folder, *options, *more, "--method", "composition+semantic")
    assert len(named) == 3
    assert 3 not in named
    assert kept(folder, *options, *more, "--stats", folder / "stats", "--rejected", folder / "gone") == named
    assert json.loads(read(folder / "stats"))["signature"].split("|")[2].startswith("method:composition+semantic")
    assert sorted(read(folder / "gone").splitlines(keepends=True) + read(folder / "out").splitlines(keepends=True)) == (
        sorted(TABLE)
    )
    assert kept(folder, *options, "--combine", "rank") != []


def test_without_an_ini_the_paper_s_rule(folder, model_folder):
    done = prune(folder, "-m", model_folder, "--threshold", "0.7")
    assert done.code == 0
    assert "method:" not in done.err


def test_sizes(folder):
    done = run_inside("prune", folder / "table.gz", "--method", "count", "--keep-top", "0", "--sweep", "1:5:2", "-q")
    assert done.out == b"threshold\tentries\tshare\n1\t6\t1.0000\n3\t3\t0.5000\n5\t1\t0.1667\n"


def test_a_reordering_table_in_step(folder):
    write(folder / "r", b"".join(b" ||| ".join(line.split(b" ||| ")[:2]) + b" ||| 0.5 0.5\n" for line in TABLE))
    kept(folder, "--method", "count", "-t", "3", "--keep-top", "0", "--reordering-table", folder / "r",
         "--reordering-out", folder / "r2")  # fmt: skip
    assert read(folder / "r2").count(b"\n") == 3


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--method", "semantics", "-t", "1"), 2, "did you mean"),
        (("--method", "composition", "-t", "1"), 2, "composition needs the weights of a model: give --moses-ini"),
        (("--method", "significance", "-t", "1"), 2, "give --corpus SOURCE TARGET"),
        (("--method", "count+count", "-t", "1"), 2, "count"),
        (("--method", "semantic+count", "-t", "1", "--scores", "none"), 2, "none: no such file"),
        (("--method", "count", "-t", "nan"), 2, "not NaN"),
        (("--method", "composition", "-t", "1", "--moses-ini", "missing.ini"), 1, "missing.ini: No such file"),
    ],
)  # fmt: skip
def test_bad_requests(folder, options, code, message):
    done = prune(folder, *options)
    assert done.code == code
    assert message in done.err
    assert not (folder / "out").exists()


def test_standard_input_cannot_be_read_twice(folder):
    done = run_inside("prune", "--method", "count", "-t", "1", stdin=b"".join(TABLE))
    assert done.code == 2
    assert "reads the table twice" in done.err


@pytest.mark.parametrize("name", ["moses.ini", "de", "en", "table.gz"])
def test_inputs_are_not_written_over(folder, name):
    before = read(folder / name)
    done = run_inside(
        "prune", folder / "table.gz", "--method", "composition+significance", "--moses-ini", folder / "moses.ini",
        "--corpus", folder / "de", folder / "en", "-t", "1", "-o", folder / name,
    )  # fmt: skip
    assert done.code == 1
    assert "the output is the input" in done.message
    assert read(folder / name) == before


def test_an_ini_for_another_table(folder):
    write(folder / "other.ini", INI.replace("num-features=4", "num-features=2").replace("= 1 0 1 0", "= 1 0").encode())
    done = prune(folder, "--method", "top", "-t", "0", "--moses-ini", folder / "other.ini")
    assert done.code == 1
    assert "the entries have 4 scores, but TranslationModel0 has 2 weights" in done.message
