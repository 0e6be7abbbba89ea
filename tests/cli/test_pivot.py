"""`phrasetool pivot` through the command line."""

import json
import re

import pytest

from tests.commands import read, run_inside, write
from tests.moses_compat.jobs.toy_pivot_tables import reordering_text, table_text, triangle


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, tables in enumerate(triangle(7, 2)):
        for name, lines in zip(("to", "from"), tables, strict=True):
            write(tmp_path / f"{name}{number}.gz", table_text(lines, 6))
            write(tmp_path / f"{name}{number}.reo.gz", reordering_text(lines))
    write(
        tmp_path / "lm.arpa",
        b"\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-1 <unk>\n-1 <s>\n-1 </s>\n\n"
        b"\\2-grams:\n-1 <s> </s>\n\n\\end\\\n",
    )
    return tmp_path


ALL = ("to0.gz", "from0.gz", "to1.gz", "from1.gz", "--extra-columns", "paths,agreement", "--similarity-columns", "5,6",
       "--reordering-tables", "to0.reo.gz", "from0.reo.gz", "--reordering-tables", "to1.reo.gz", "from1.reo.gz",
       "--keep-best", "3", "--force")  # fmt: skip


def test_a_pivot_table_and_commands_that_read_it(files):
    outcome = run_inside("pivot", *ALL, "-o", "out.gz", "--reordering-out", "reo.gz", "--json", "json")
    assert outcome.code == 0, outcome.err
    report = json.loads((files / "json").read_text())
    lines = read(files / "out.gz").splitlines()
    assert lines == sorted(lines)
    assert len(lines) == report["entries"] == len(read(files / "reo.gz").splitlines())
    assert [line.split(b"|||")[:2] for line in lines] == [
        line.split(b"|||")[:2] for line in read(files / "reo.gz").splitlines()
    ]
    messages = outcome.err.splitlines()
    assert re.fullmatch(
        r"phrasetool: to0.gz: \d+% of its 9 target phrases \(.*\) are sources of from0.gz", messages[-5]
    )
    assert messages[-3].startswith(f"phrasetool: {report['entries']:,} entries of {report['sources']} sources, ")
    assert messages[-1].startswith(
        "phrasetool: scores 5 to 11: probability of the best path; paths; pivot languages; simil"
    )
    # One thread and little memory: the same bytes.
    again = run_inside(
        "pivot", *ALL, "-o", "again", "--reordering-out", "reo2", "--memory", 1, "--threads", 1, "--block-bytes", 99,
        "--temporary", files,
    )  # fmt: skip
    assert again.code == 0, again.err
    assert read(files / "again") == read(files / "out.gz")
    assert read(files / "reo2") == read(files / "reo.gz")
    for command in (
        ("moses-ini", "--table", "out.gz", "--reordering-table", "reo.gz", "--lm", "lm.arpa", "-o", "new.ini"),
        ("inspect", "out.gz"),
        ("prune", "out.gz", "--threshold", "0.9", "--similarity-columns", "8,9", "--keep-top", "1", "-o", "pruned.gz"),
        ("prune", "out.gz", "--method", "count+semantic", "--target-size", "0.5", "--protect", "none",
        "--similarity-columns",
         "8,9", "--reordering-table", "reo.gz", "--reordering-out", "pruned.reo.gz", "-o", "half.gz"),
    ):  # fmt: skip
        outcome = run_inside(*command)
        assert outcome.code == 0, outcome.err
    assert "num-features=11" in (files / "new.ini").read_text()
    half = read(files / "half.gz").splitlines()
    assert len(half) == len(lines) // 2 == len(read(files / "pruned.reo.gz").splitlines())
    assert 0 < len(read(files / "pruned.gz").splitlines()) < len(lines)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["to0.gz"], 2, "1 table; expected two for each pivot language"),
        (["to0.gz", "from0.gz", "to1.gz"], 2, "3 tables; expected two"),
        ([], 2, "Missing argument"),
        (["to0.gz", "from0.gz", "--extra-columns", "magic"], 2, "'magic' is not one of paths, agreement"),
        (["to0.gz", "from0.gz", *["--similarity-columns", "5,6"] * 3], 2, "2 tables, but 3 --similarity-columns"),
        (["to0.gz", "from0.gz", "--similarity-columns", "6,7"], 1, "column 7 was requested, but entries have 6 scores"),
        (["to0.gz", "from0.gz", "--reordering-out", "r"], 2, "or neither"),
        (["to0.gz", "from0.gz", *["--reordering-tables", "to0.reo.gz", "from0.reo.gz"] * 2, "--reordering-out", "r"],
         2, "1 pivot languages, but 2 --reordering-tables"),
        (["-", "-"], 2, "only one input can be standard input"),
        (["to0.gz", "from0.gz", "-o", "to0.gz"], 1, "the output is the input to0.gz"),
        (["to0.gz", "nowhere.gz"], 1, "nowhere.gz: No such file or directory"),
        (["to0.gz", "from0.gz", "--on-error", "keep"], 2, "skip leaves them out"),
        (["to0.gz", "from0.gz", "--temporary", "nowhere"], 2, "Directory 'nowhere' does not exist"),
        (["from0.gz", "to0.gz"], 1, "are the two tables swapped, or source and target of both?"),
        (["to0.gz", "to0.gz"], 1, "are source and target of to0.gz swapped?; --force continues anyway"),
        (["to0.gz", "lm.arpa"], 1, "looks like a language model in ARPA form"),
        (["to0.gz", "from0.reo.gz"], 1, "looks like a reordering table"),
    ],
)  # fmt: skip
def test_invalid_usage(files, arguments, code, said):
    before = sorted(path.name for path in files.iterdir())
    outcome = run_inside("pivot", *arguments, "-q", *(() if "-o" in arguments else ("-o", "out.gz")))
    assert outcome.code == code
    assert said in outcome.message
    assert sorted(path.name for path in files.iterdir()) == before


A_B = b"""a ||| x ||| 0.6 0.6 0.6 0.6 ||| 0-0 ||| 6 10 6
a ||| y ||| 0.4 0.4 0.4 0.4 ||| 0-0 ||| 8 10 4
"""
B_C = b"""x ||| c ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 5 10 5
y ||| c ||| 0.3 0.3 0.3 0.3 ||| 0-0 ||| 8 10 3
y ||| d ||| 0.7 0.7 0.7 0.7 ||| 0-0 ||| 7 10 7
"""


def entries_of(folder, *options):
    """Run `pivot`; return (source, target) -> (p(target|source), the three counts)."""
    tables = write(folder / "a-b", A_B), write(folder / "b-c", B_C)
    outcome = run_inside("pivot", *tables, "-o", "-", "-q", *options)
    assert outcome.code == 0, outcome.err
    rows = [line.split(" ||| ") for line in outcome.out.decode().splitlines()]
    return {(row[0], row[1]): (float(row[2].split()[2]), row[4].removesuffix(" |||")) for row in rows}


def test_entries_of_a_low_probability_are_no_ways(tmp_path):
    # a-c through x: 0.6 times 0.5; through y: 0.4 times 0.3.
    assert entries_of(tmp_path) == {("a", "c"): (0.42, "5 10 4.2"), ("a", "d"): (0.28, "7 10 2.8")}
    assert entries_of(tmp_path, "--min-probability", 0.3) == entries_of(tmp_path)
    assert entries_of(tmp_path, "--min-probability", 0.35) == {
        ("a", "c"): (0.3, "5 10 3"), ("a", "d"): (0.28, "7 10 2.8")
    }  # fmt: skip
    # x-c has exactly 0.5 in the second table.
    assert entries_of(tmp_path, "--min-probability", "50%") == {("a", "c"): (0.3, "5 10 3")}


def test_counts_are_expected_or_those_of_the_less_frequent_pairs(tmp_path):
    # Expected counts: 6 times 0.5 plus 4 times 0.3; minimum: min(6, 5) + min(4, 3).
    assert entries_of(tmp_path, "--counts", "expected") == entries_of(tmp_path)
    assert entries_of(tmp_path, "--counts", "min") == {("a", "c"): (0.42, "5 10 8"), ("a", "d"): (0.28, "7 10 4")}


def test_an_empty_result_is_refused(tmp_path):
    tables = write(tmp_path / "a-b", A_B), write(tmp_path / "b-c", B_C)
    command = ("pivot", *tables, "--min-probability", 0.6, "-o", tmp_path / "out")
    outcome = run_inside(*command)
    assert outcome.code == 1
    message = (
        f"{tables[0]}, {tables[1]}: no source has a path to a target over entries with p(target|source) of 0.6 or more"
    )
    assert outcome.err.splitlines()[-1] == f"phrasetool: error: {message}; --force continues anyway"
    assert not (tmp_path / "out").exists()
    assert run_inside(*command, "--force").code == 0
    assert read(tmp_path / "out") == b""


@pytest.mark.parametrize(
    ("scale", "good", "bad", "message"),
    [
        (
            "exp",
            ("0.135335", "1"),
            ("0.5", "0.135"),
            "score 6 is 0.135; a similarity on the scale exp lies between 0.13",
        ),
        (
            "probability",
            ("0", "1"),
            ("-0.001", "1"),
            "score 5 is -0.001; a similarity on the scale probability lies bet",
        ),
        ("raw", ("-1", "1"), ("1", "1.001"), "score 6 is 1.001; a similarity on the scale raw lies between -1 and 1"),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_similarities_outside_the_scale(tmp_path, monkeypatch, scale, good, bad, message, place):
    """A similarity outside the scale is reported with its line, the second one of either table."""
    monkeypatch.chdir(tmp_path)

    def join_tables(rows):
        words = [("a", "m", "x"), ("b", "n", "y")]
        for side, name in enumerate(("to", "from")):
            lines = [
                f"{word[side]} ||| {word[side + 1]} ||| 0.5 0.5 0.5 0.5 {' '.join(row if side == place else good)}"
                " ||| 0-0 ||| 2 2 1\n"
                for word, row in zip(words, rows, strict=True)
            ]
            write(tmp_path / name, "".join(lines).encode())
        columns = ("--similarity-columns", "5,6", "--scale", scale)
        return run_inside("pivot", "to", "from", *columns, "-o", "out", "--force", "-q")

    outcome = join_tables([good, bad])
    assert (outcome.code, f"{('to', 'from')[place]}:2: {message}" in outcome.message) == (1, True), outcome.err
    assert not (tmp_path / "out").exists()
    assert join_tables([good, good]).code == 0
    # Written on the scale exp, whatever the scale of the tables: similarities of -1 and 1 through both tables.
    scores = [line.split(b" ||| ")[2].split() for line in read(tmp_path / "out").splitlines()]
    assert [[round(float(score), 4) for score in row[4:6]] for row in scores] == [[0.1353, 1.0]] * 2
