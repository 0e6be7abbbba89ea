"""`phrasetool filter-pt` through the command line."""

import gzip
import math
import re

import numpy as np
import pytest

from tests import naive_filter
from tests.commands import read, run_inside, run_outside, whole_commands, write

SOURCE = b"das haus\nein haus\ndas buch\nkurz\n"
TARGET = b"the house\na house\nthe book\nshort\n"
TABLE = b"""das ||| a ||| 0.1 1 0.2 1 ||| 0-0 ||| 1 1 1 ||| |||
das ||| the ||| 0.9 1 0.8 1 ||| 0-0 ||| 1 1 1 ||| |||
haus ||| book ||| 0.9 1 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||
haus ||| house ||| 0.9 1 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||
kurz ||| short ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||
"""
LINES = TABLE.splitlines(keepends=True)


@pytest.fixture
def files(tmp_path):
    write(tmp_path / "f.gz", SOURCE)
    write(tmp_path / "e", TARGET)
    write(tmp_path / "table.gz", TABLE)
    return tmp_path


def corpora(folder):
    return ["-f", folder / "f.gz", "-e", folder / "e"]


def test_keeps_significant_entries(files):
    outcome = run_inside("filter-pt", *corpora(files), "-l", "a+e", stdin=TABLE)
    assert (outcome.code, outcome.out) == (0, LINES[1] + LINES[3])
    assert outcome.err.splitlines() == [
        "phrasetool: 4 sentence pairs: a = 1.386294; entries with -ln p of 1.387294 or more are kept",
        "phrasetool: kept 2 of 5 entries (40.0%)",
        "phrasetool:   3 removed because they are not significant (-l)",
    ]
    assert run_inside("filter-pt", *corpora(files), "-l", "a-e", stdin=TABLE).out == LINES[1] + LINES[3] + LINES[4]


def test_keeps_the_best_in_their_order_without_a_corpus(files):
    outcome = run_inside("filter-pt", "-n", "1", "-q", files / "table.gz", "-o", files / "out.gz")
    assert (outcome.code, outcome.out, outcome.err) == (0, b"", "")
    assert read(files / "out.gz") == LINES[1] + LINES[2] + LINES[4]
    assert run_inside("filter-pt", "-n1", "-i", "1", stdin=TABLE).out == LINES[0] + LINES[2] + LINES[4]
    assert run_inside("filter-pt", "-n", "0", *corpora(files), "-l0", stdin=TABLE).out == TABLE


def test_the_best_are_chosen_before_the_test(files):
    outcome = run_inside("filter-pt", *corpora(files), "-l", "a+e", "-n", "1", stdin=TABLE)
    assert outcome.out == LINES[1]


def test_appends_counts_and_values(files):
    outcome = run_inside("filter-pt", *corpora(files), "-c", "-p", "-q", "-t", "2", "-m", "100", stdin=TABLE)
    expected = naive_filter.filter_table(
        TABLE, *([line.split() for line in text.splitlines()] for text in (SOURCE, TARGET)), counts=True, values=True
    )
    assert (outcome.code, outcome.out, outcome.err) == (0, expected, "")
    assert expected.splitlines()[1] == LINES[1].strip() + b" ||| 2 2 2 ||| 1.791759"


def test_warns_when_moses_would_misread_the_appended_fields(files):
    table = b"das ||| the ||| 1 ||| 0-0\n"
    outcome = run_inside("filter-pt", *corpora(files), "-c", "-q", stdin=table)
    assert outcome.out == b"das ||| the ||| 1 ||| 0-0 ||| 2 2 2\n"
    assert "warning: entries had 4 fields, and Moses reads the first 7" in outcome.message


def test_warns_about_phrases_that_do_not_occur(files):
    outcome = run_inside("filter-pt", *corpora(files), "-l", "1", "-q", stdin=TABLE + b"das ||| that ||| 1 1 1 1\n")
    assert outcome.message == (
        "phrasetool: warning: of 6 entries, 0 have a source and 1 a target that does not occur in the corpus; "
        "their -ln p is 0"
    )


def test_stops_if_the_corpus_does_not_match(files):
    swapped = ["-e", files / "f.gz", "-f", files / "e"]
    outcome = run_inside("filter-pt", *swapped, "-l", "1", "-q", files / "table.gz", "-o", files / "out")
    assert outcome.code == 1
    assert "of its first 5 entries, 5 have a source that does not occur in" in outcome.message
    assert outcome.message.endswith("(--force filters anyway)")
    assert not (files / "out").exists()
    outcome = run_inside("filter-pt", *swapped, "-l", "1", "-q", "--force", files / "table.gz", "-o", files / "out")
    assert (outcome.code, read(files / "out")) == (0, b"")


def test_corpora_with_different_numbers_of_lines(files):
    write(files / "e", TARGET + b"more\n")
    outcome = run_inside("filter-pt", *corpora(files), "-l", "1", files / "table.gz")
    assert outcome.code == 1
    assert outcome.message == f"phrasetool: {files}/f.gz:5: the file ends after 4 lines, but {files}/e has 5"


@pytest.mark.parametrize(("threshold", "kept"), [("a+e", b""), ("a-e", LINES[4])])
def test_one_sentence_pair(files, threshold, kept):
    """With one sentence pair, the p-value of its phrases is 1, and alpha is 0."""
    write(files / "f.gz", b"kurz\n")
    write(files / "e", b"short\n")
    assert run_inside("filter-pt", *corpora(files), "-l", threshold, stdin=LINES[4]).out == kept


def test_reuses_its_index(files):
    options = ["filter-pt", *corpora(files), "-l", "a-e", "--index", files / "index", files / "table.gz"]
    first, second = run_inside(*options), run_inside(*options)
    assert "the index of" in first.err
    assert second.err.count("using the index") == 2
    write(files / "f.gz", SOURCE.replace(b"kurz", b"lang"))
    third = run_inside(*options)
    assert "out of date and has been rebuilt" in third.err
    assert first.out == second.out == third.out + LINES[4]


@pytest.mark.parametrize(
    ("options", "message"),
    [(["-l", "b"], "is not a\\+e, a-e or a number"), (["-l", "-1"], "is not a\\+e"), (["-l", "a+e"], "need both sides"),
     ([], "nothing to do"), (["-c", "-f", "x"], "need both sides"), (["-n", "-1"], "-1"),
     (["-l", "1", "-f", "-", "-e", "x"], "standard input")],
)  # fmt: skip
def test_wrong_usage(options, message):
    outcome = run_inside("filter-pt", *options, stdin=b"")
    assert outcome.code == 2
    assert re.search(message, outcome.err), outcome.err


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_threads_and_blocks_change_nothing(files, threads, size):
    options = ["-l", "1", "-n", "2", "-c", "-p", "--threads", threads, "--block-bytes", size]
    outcome = run_inside("filter-pt", *corpora(files), *options, stdin=TABLE)
    assert outcome.out == run_inside("filter-pt", *corpora(files), *options[:6], stdin=TABLE).out
    assert "of 5 entries" in outcome.err


def test_separate_process_and_help(files):
    outcome = run_outside("filter-pt", *corpora(files), "-l", "a+e", stdin=gzip.compress(TABLE))
    assert (outcome.code, outcome.out) == (0, LINES[1] + LINES[3])
    help_outcome = run_inside("filter-pt", "--help")
    assert help_outcome.code == 0
    example = "phrasetool filter-pt -f train.de -e train.en -l a+e -n 30 < phrase-table > small"
    assert example in whole_commands(help_outcome.out.decode())


@pytest.mark.requires_reference
def test_the_reference_table(reference, tmp_path):
    """For the head of a real table, counts equal those of a naive search, and -ln p equals that of SciPy."""
    stats = pytest.importorskip("scipy.stats")
    with gzip.open(reference / "phrase-table.gz") as file:
        data = file.read(400_000)
    table = data[: data.rfind(b"\n") + 1]
    texts = [reference.parent / f"train.{language}.gz" for language in ("de", "en")]
    outcome = run_inside("filter-pt", "-f", texts[0], "-e", texts[1], "-c", "-p", "-q", stdin=table)
    sides = [[b" %b " % line for line in gzip.decompress(path.read_bytes()).split(b"\n")[:-1]] for path in texts]
    lines = outcome.out.splitlines()
    assert len(lines) == table.count(b"\n")
    for i in np.random.default_rng(1).choice(len(lines), 25, replace=False):
        fields = lines[i].split(b" ||| ")
        holders = [
            {k for k, line in enumerate(side) if b" %b " % phrase in line}
            for side, phrase in zip(sides, fields, strict=False)
        ]
        joint, source, target = map(int, fields[-2].split())
        assert (joint, source, target) == (len(holders[0] & holders[1]), len(holders[0]), len(holders[1]))
        expected = -stats.hypergeom.logsf(joint - 1, len(sides[0]), source, target)
        assert float(fields[-1]) == pytest.approx(expected, abs=1e-6)
        assert math.isfinite(expected)
