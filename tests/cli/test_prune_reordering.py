"""`phrasetool prune --reordering-table R --reordering-out R2`."""

import gzip
import json
import os
import random
import re

import pytest

from tests import naive, naive_reordering
from tests.commands import read, run_inside, write
from tests.tables import MALFORMED, TABLES

RULE = ("-t", "0.25", "--keep-top", "1", "--protect", "words")


def reordering_of(table, seed=1, shuffled=True):
    """Return a line for every pair of a table, shuffled if requested, after a line of another pair."""
    rows = [line for line in naive.parse_table(table)[0] if line.target is not None]
    rows = [b"%s|||%s||| 0.2 0.3 0.5 \n" % (line.source, line.target) for line in rows]
    if shuffled:
        random.Random(seed).shuffle(rows)
    return b"".join([b"nie ||| gesehen ||| 0.2 0.3 0.5\n", *rows])


@pytest.fixture
def run(model_folder, tmp_path):
    """Return a function that prunes both tables, and returns the outcome and both outputs."""

    def both(table, reordering, *options, ending=".gz", rule=RULE, model=model_folder):
        paths = [write(tmp_path / name, data) for name, data in (("table", table), ("reordering" + ending, reordering))]
        outputs = tmp_path / "small", tmp_path / ("small-reordering" + ending)
        outcome = run_inside(
            "prune", paths[0], *(["-m", model] if model else []), *rule, "-o", outputs[0],
            "--reordering-table", paths[1], "--reordering-out", outputs[1], *options,
        )  # fmt: skip
        return outcome, *(read(path) if path.exists() else None for path in outputs)

    return both


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_moses_tables(run, model_folder, tmp_path, ending):
    for name, table in sorted(TABLES.items())[ending == "" :: 2]:
        reordering = reordering_of(table)
        outcome, small, in_step = run(table, reordering, "-q", "--allow-empty", ending=ending)
        # In some tables, the lines of a source are not contiguous.
        assert (outcome.code, re.sub(".* occurs again after other sources; .*\n", "", outcome.err)) == (0, ""), name
        pruned = run_inside("prune", tmp_path / "table", "-m", model_folder, "-q", "--allow-empty", *RULE).out
        assert small == pruned, name
        assert in_step == naive_reordering.in_step(small, reordering), name
        assert naive_reordering.pairs(in_step) == naive_reordering.pairs(small), name


@pytest.mark.parametrize("on_error", ["skip", "keep"])
def test_malformed_lines(run, on_error):
    table, reordering = MALFORMED * 2, reordering_of(MALFORMED) + b"das ||| the ||| 1 1\nhaus\nhaus ||| it ||| 1 1 1"
    options = ("--on-error", on_error, "--keep-top", "9", "--protect", "all")
    outcome, small, in_step = run(table, reordering, *options)
    assert outcome.code == 0
    assert in_step == naive_reordering.in_step(small, reordering, on_error)
    # A malformed line that is kept also keeps its pair: "das ||| a ||| 0.5 zero".
    assert (b"das ||| a |||" in in_step) == (on_error == "keep")


def test_threads_and_blocks_change_nothing(run):
    table = TABLES["seven fields"]
    outcomes = set()
    for options in ((), ("--threads", 2, "--block-bytes", 1), ("--threads", 3, "--block-bytes", 999)):
        outcome, small, in_step = run(table, reordering_of(table), *options)
        outcomes.add((small, in_step, outcome.err))
    assert len(outcomes) == 1


def test_a_pair_that_occurs_twice(run):
    table = b"das ||| the ||| 1 0.9\ndas ||| the ||| 1 0.1\ndas ||| a ||| 1 0.1\n"
    outcome, small, in_step = run(
        table, reordering_of(table, shuffled=False), "--similarity-columns", "2,2", "--scale", "raw", rule=("-t",
        "0.5"),
        model=None,
    )  # fmt: skip
    assert outcome.code == 0
    assert small == table
    outcome, small, in_step = run(
        table, reordering_of(table, shuffled=False), "--similarity-columns", "2,2", "--scale", "raw", "--keep-top", "0",
        rule=("-t", "0.5"), model=None,
    )  # fmt: skip
    assert small == b"das ||| the ||| 1 0.9\n"
    assert in_step.count(b"\n") == 2
    assert set(in_step.splitlines()) == {b"das ||| the ||| 0.2 0.3 0.5 "}


def test_messages_and_statistics(run, tmp_path):
    table = TABLES["seven fields"]
    rows = naive.split_lines(reordering_of(table))
    outcome, small, in_step = run(table, b"".join(rows)[:-1], "--stats", tmp_path / "stats")
    expected = naive_reordering.counts(small, b"".join(rows)[:-1])
    assert json.loads((tmp_path / "stats").read_text())["reordering"] == expected
    kept, lines = expected["kept"], expected["lines"]
    assert f"phrasetool: kept {kept} of {lines} reordering lines ({kept / lines:.1%})\n" in outcome.err
    assert f"phrasetool:   {lines - kept} were left out because the phrase table lacks their pair\n" in outcome.err
    assert "warning" not in outcome.err
    # One kept pair has no reordering line.
    missing = next(i for i, row in enumerate(rows) if row in in_step)
    outcome, small, _ = run(table, b"".join(rows[:missing] + rows[missing + 1 :]), "--stats", tmp_path / "stats")
    pairs = len(naive_reordering.pairs(small))
    assert f"phrasetool: warning: 1 of {pairs} pairs of the phrase table have no reordering line" in outcome.err
    assert json.loads((tmp_path / "stats").read_text())["reordering"]["pairs_without_line"] == 1
    # A reordering table of another model: its only line is of a pair that the phrase table lacks.
    (tmp_path / "small").unlink()
    (tmp_path / "small-reordering.gz").unlink()
    message = f"reordering.gz: none of its 1 lines belongs to one of the {pairs} pairs of the phrase table"
    outcome, *outputs = run(table, rows[0])
    assert (outcome.code, outputs) == (1, [None, None])
    assert message in outcome.err
    outcome, _, in_step = run(table, rows[0], "--force")
    assert (outcome.code, in_step) == (0, b"")
    assert message in outcome.err


def test_a_missing_last_line_feed(run):
    table, reordering = b"das ||| the ||| 1 1\n", b"haus ||| a ||| 0.5\ndas ||| the ||| 0.5"
    outcome, _, in_step = run(table, reordering)
    assert in_step == b"das ||| the ||| 0.5\n"
    assert "the last line had no line feed" in outcome.err
    outcome, _, in_step = run(table, b"das ||| the ||| 0.5\nhaus ||| a ||| 0.5")
    assert in_step == b"das ||| the ||| 0.5\n"
    assert "line feed" not in outcome.err


def test_with_rejected_and_scores(run, tmp_path):
    table = TABLES["seven fields"]
    scores, rejected = tmp_path / "scores", tmp_path / "rejected"
    first = run(table, reordering_of(table), "--similarities", scores, "--rejected", rejected)
    again = run(table, reordering_of(table), "--similarities", scores, model="none")
    assert first[1:] == again[1:]
    assert sorted(naive.split_lines(first[1]) + naive.split_lines(read(rejected))) == sorted(naive.split_lines(table))
    removed_pairs = naive_reordering.pairs(read(rejected))
    assert removed_pairs
    assert not removed_pairs & naive_reordering.pairs(first[2])


@pytest.mark.parametrize("scores", [False, True])
def test_target_size(run, tmp_path, scores):
    table = TABLES["seven fields"]
    options = ("--similarities", tmp_path / "scores") if scores else ()
    rule = ("--target-size", "0.5", "--keep-top", "0")
    outcome, small, in_step = run(table, reordering_of(table), "-q", *options, rule=rule)
    assert outcome.code == 0
    assert 0.1 < small.count(b"\n") / table.count(b"\n") <= 0.5
    assert naive_reordering.pairs(in_step) == naive_reordering.pairs(small)


def test_standard_streams(model_folder, tmp_path):
    table, reordering = TABLES["lexicalised"], reordering_of(TABLES["lexicalised"])
    small, in_step = tmp_path / "small", tmp_path / "in-step"
    write(tmp_path / "table", table)
    write(tmp_path / "reordering", reordering)
    command = ["prune", "-m", model_folder, "-q", *RULE]
    piped = run_inside(*command, "--reordering-table", tmp_path / "reordering", "--reordering-out", in_step,
                       stdin=table)  # fmt: skip
    assert piped.code == 0
    outcome = run_inside(*command, tmp_path / "table", "-o", small, "--reordering-table", "-", "--reordering-out", "-",
                       stdin=gzip.compress(reordering))  # fmt: skip
    assert outcome.code == 0
    assert small.read_bytes() == piped.out
    assert outcome.out == in_step.read_bytes() == naive_reordering.in_step(piped.out, reordering)


BAD = {
    "truncated.gz": (gzip.compress(random.Random(1).randbytes(9999))[:-20], ": the gzip data end too early"),
    "placeholder.gz": (b"", ": the file has 0 bytes"),
    "scores": (b"das ||| the ||| 0.5 0.5\nhaus ||| a ||| 0.5\n", ":2: expected 2 scores as on the lines before"),
    "no number": (b"das ||| the ||| 0.5 y\n", ":1: a score is not a number"),
    "fields": (b"das ||| the ||| 0.5\nhaus ||| a\n", ":2: expected at least 3 fields separated by |||, found 2"),
    "sources alone": (b"das ||| 0.5\nhaus ||| 0.5\n", ":1: expected source ||| target ||| probabilities"),
    "none": (None, ": No such file or directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_reordering_tables(model_folder, tmp_path, name):
    data, message = BAD[name]
    table, reordering = write(tmp_path / "table", TABLES["lexicalised"]), tmp_path / name
    if data is not None:
        reordering.write_bytes(data)
    before = sorted(os.listdir(tmp_path))
    options = [
        part for flag in ("-o", "--rejected", "--stats", "--similarities") for part in (flag, tmp_path / f"x{flag}")
    ]
    outcome = run_inside("prune", table, "-m", model_folder, *RULE, "-q", *options, "--reordering-table", reordering,
                         "--reordering-out", tmp_path / "in-step")  # fmt: skip
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {reordering}{message}")
    assert sorted(os.listdir(tmp_path)) == before


def test_a_bad_phrase_table_leaves_no_reordering_table(run, tmp_path):
    outcome, small, in_step = run(TABLES["lattice"] + b"bad\n", reordering_of(TABLES["lattice"]), "-q")
    assert outcome.code == 1
    assert f"{tmp_path / 'table'}:4: " in outcome.message
    assert small is in_step is None


@pytest.mark.parametrize(
    "options",
    [
        ("-t", "0.5", "--reordering-table", "r"),
        ("-t", "0.5", "--reordering-out", "o"),
        ("--sweep", "0:1:1", "--reordering-table", "r", "--reordering-out", "o"),
        ("--sweep", "0:1:1", "--reordering-out", "o"),
        ("--sweep", "0:1:1", "--reordering-table", "r"),
        ("-t", "0.5", "--reordering-table", "-", "--reordering-out", "o"),
    ],
    ids=" ".join,
)
def test_bad_usage(model_folder, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "r", TABLES["reordering"])
    outcome = run_inside("prune", "-", "-m", model_folder, *options, stdin=TABLES["lattice"])
    assert (outcome.code, outcome.out) == (2, b"")
    assert outcome.message.startswith("phrasetool: ")
    assert os.listdir(tmp_path) == ["r"]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (("-o", "o", "--reordering-out", "r"), "the output is the input"),
        (("-o", "o", "--reordering-out", "link"), "the output is the input"),
        (("-o", "o", "--reordering-out", "t"), "the output is the input"),
        (("-o", "r", "--reordering-out", "o"), "the output is the input"),
        (("-o", "o", "--reordering-out", "./o"), "two outputs"),
        (("-o", "o", "--rejected", "p", "--reordering-out", "p"), "two outputs"),
        (("--reordering-out", "-"), "two outputs"),
    ],
    ids=str,
)
def test_one_file_twice(model_folder, tmp_path, monkeypatch, outputs, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t", TABLES["lattice"])
    write(tmp_path / "r", TABLES["reordering"])
    (tmp_path / "link").symlink_to("r")
    outcome = run_inside("prune", "t", "-m", model_folder, "-t", "0.5", "--reordering-table", "r", *outputs)
    assert (outcome.code, outcome.out) == (1, b"")
    assert message in outcome.message
    assert (tmp_path / "r").read_bytes() == TABLES["reordering"]
    assert (tmp_path / "t").read_bytes() == TABLES["lattice"]


@pytest.mark.requires_reference
def test_the_reference_run(reference, tmp_path):
    """The tables of a real Moses run: 1.1 million lines each, in the same order and shuffled."""
    table, aligned = reference / "phrase-table.gz", reference / "reordering-table.wbe-msd-bidirectional-fe.gz"
    shuffled, small, in_step = (tmp_path / name for name in ("shuffled", "small", "in-step"))
    rows = naive.split_lines(read(aligned))
    shuffled_rows = random.Random(1).sample(rows, len(rows))
    shuffled.write_bytes(b"".join(shuffled_rows))
    for path, lines in ((aligned, rows), (shuffled, shuffled_rows)):
        outcome = run_inside(
            "prune", table, "--similarity-columns", "2,4", "--scale", "raw", "-t", "0.05", "--protect", "words",
            "-o", small,
            "--reordering-table", path, "--reordering-out", in_step, "--threads", 2,
        )  # fmt: skip
        assert outcome.code == 0
        assert "warning" not in outcome.err
        kept = [line[: line.index(b" ||| ", line.index(b" ||| ") + 5)] for line in read(small).splitlines()]
        assert 0.1 < len(kept) / len(rows) < 0.9
        pairs = set(kept)
        expected = [line for line in lines if line[: line.rindex(b" ||| ")] in pairs]
        assert len(expected) == len(kept)
        assert in_step.read_bytes() == b"".join(expected)
