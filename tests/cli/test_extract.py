import gzip
import os

import pytest

from tests.commands import read, run_inside, run_outside, write
from tests.moses_compat.engine.test_extracted import GOLDEN

BITEXT = [GOLDEN / f"bitext.{name}" for name in ("source", "target", "aligned")]


def test_all_files(tmp_path):
    names = {"-o": "table.gz", "--reordering-out": "reordering.gz"}
    options = [part for option, name in names.items() for part in (option, tmp_path / name)]
    outcome = run_inside("extract", *BITEXT, *options, "--lexical", tmp_path / "lex")
    assert outcome.code == 0
    assert "60 sentence pairs" in outcome.err
    assert "1,240 phrase pairs" in outcome.err
    assert read(tmp_path / "table.gz") == read(GOLDEN / "table.7.gz")
    assert read(tmp_path / "reordering.gz") == read(GOLDEN / "reordering.gz")
    for direction in ("f2e", "e2f"):
        assert read(tmp_path / f"lex.{direction}") == read(GOLDEN / f"lex.{direction}.gz")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--max-length", 3), "table.3"),
        (("--smoothing", "good-turing", "--threads", 1), "table.good-turing"),
        (("--smoothing", "kneser-ney", "--memory", "100"), "table.kneser-ney"),
        (("--memory", "50K"), "table.7"),
    ],
)
def test_options(tmp_path, options, name):
    outcome = run_inside("extract", *BITEXT, *options, "--temporary", tmp_path)
    assert outcome.code == 0
    assert outcome.out == read(GOLDEN / f"{name}.gz")
    assert ("temporary files" in outcome.err) == ("--memory" in options)
    assert not os.listdir(tmp_path)


def test_in_a_process_from_standard_input(tmp_path):
    compressed = write(tmp_path / "a.gz", BITEXT[2].read_bytes())
    outcome = run_outside("extract", "-", BITEXT[1], compressed, "-q", stdin=gzip.compress(BITEXT[0].read_bytes()))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == read(GOLDEN / "table.7.gz")


def test_swapped_sides(tmp_path):
    """Swapping the sides swaps the scores and counts of the two directions; without ties, nothing else changes."""
    lines = BITEXT[2].read_text().splitlines()
    swapped_alignment = "".join(
        " ".join("-".join(point.split("-")[::-1]) for point in line.split()) + "\n" for line in lines
    )
    outcome = run_inside("extract", BITEXT[1], BITEXT[0], write(tmp_path / "a", swapped_alignment.encode()), "-q")
    before, after = ({}, {})
    for text, entries, order in ((read(GOLDEN / "table.7.gz"), before, 1), (outcome.out, after, -1)):
        for line in text.splitlines():
            fields = line.split(b" ||| ")
            scores, counts = fields[2].split(), fields[4].split()
            if order < 0:
                scores, counts[:2] = scores[2:] + scores[:2], counts[1::-1]
            entries[tuple(fields[:2][::order])] = scores, counts
    assert before == after


BAD = {
    "short": (b"a\nb\n", b"a\n", b"0-0\n", "t:2: the file ends after 1 lines, but {0}/s has 2"),
    "empty": (b"a\n\n", b"a\nb\n", b"0-0\n0-0\n", "s:2: the sentence is empty"),
    "outside": (b"a\nb c\n", b"a\nb\n", b"0-0\n1-1\n", "a:2: the point 1-1 is outside its sentence pair of 2 and 1"),
    "limit": (
        b"a\n",
        b"b\n",
        b"0-32768\n",
        "a:1: the point 0-32768 has a position beyond 32,767, the largest supported: "
        "sentences have at most 32,768 words",
    ),
    "token": (b"a\nb\n", b"a\nb\n", b"0-0\n0\n", "a:2: expected alignment points like 0-0 1-2, found '0'"),
    "lines": (b"a\nb\n", b"a\nb\n", b"0-0\n", "a: 1 lines for a bitext of 2 sentence pairs"),
    "separator": (b"a\n|||\n", b"a\nb\n", b"0-0\n0-0\n", "s:2: the word |||"),
    "nothing": (b"", b"", b"", "s: the bitext has no sentence"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(tmp_path, name):
    *data, message = BAD[name]
    paths = [write(tmp_path / letter, content) for letter, content in zip("sta", data, strict=True)]
    (tmp_path / "o.gz").write_bytes(b"old")
    outcome = run_inside("extract", *paths, "-o", tmp_path / "o.gz", "--reordering-out", tmp_path / "r")
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {tmp_path}/{message.format(tmp_path)}")
    assert (tmp_path / "o.gz").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["a", "o.gz", "s", "t"]


def test_bad_usage(tmp_path):
    for options in (("--memory", "2X"), ("--max-length", 0), ("--smoothing", "loud")):
        assert run_inside("extract", *BITEXT, *options).code == 2
    outcome = run_inside("extract", *BITEXT, "--temporary", tmp_path / "none")
    assert f"'--temporary': Directory '{tmp_path / 'none'}' does not exist" in outcome.message
    outcome = run_inside("extract", *BITEXT, "-o", tmp_path / "x.f2e", "--lexical", tmp_path / "x")
    assert "two outputs go to one file" in outcome.message
    outcome = run_inside("extract", *BITEXT, "--reordering-smoothing", 1, "-o", tmp_path / "x")
    assert "--reordering-smoothing is for a reordering table; give --reordering-out" in outcome.message
    outcome = run_inside("extract", *BITEXT, "-q", "-o", tmp_path / "no" / "table")
    assert str(tmp_path / "no" / "table") in outcome.message
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_full_disk(tmp_path):
    outcome = run_inside("extract", *BITEXT, "-q", "-o", tmp_path / "t", "--reordering-out", "/dev/full")
    assert outcome.code == 1
    assert "/dev/full: cannot write: the disk is full" in outcome.message
    assert not os.listdir(tmp_path)


def test_equal_sides_cause_a_warning(tmp_path):
    source, target, points = (write(tmp_path / n, b) for n, b in (("s", b"a b\n"), ("t", b"a b\n"), ("a", b"0-0\n")))
    outcome = run_inside("extract", source, target, points, "-q", "-o", tmp_path / "out")
    assert outcome.code == 0
    assert outcome.message.startswith(f"phrasetool: warning: 1 of 1 sentences of {target} are the same as in {source}")
