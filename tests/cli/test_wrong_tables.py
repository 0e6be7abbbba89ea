"""Unsuitable tables are refused and nothing is written; --sort sorts them, --force accepts them."""

import random

import pytest

from tests import naive
from tests.commands import read, run_inside, write


def entries(sources=40, targets=4):
    """Return a complete table: the joint counts of the entries of a phrase add up to its own count."""
    lines = []
    for source in range(sources):
        for target in range(targets):
            scores = f"0.{target + 1} 0.2 0.{9 - target} 0.4"
            lines.append(f"s{source} ||| t{source} {target} ||| {scores} ||| 0-0 ||| 2 {2 * targets} 2 ||| |||\n")
    return "".join(sorted(lines)).encode()


SORTED = entries()
SHUFFLED = b"".join(random.Random(1).sample(naive.split_lines(SORTED), len(naive.split_lines(SORTED))))
INI = """\
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=shuffled input-factor=0 output-factor=0
Distortion

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0
TranslationModel0= 1 0 1 0
Distortion0= 0.3
"""
USES = {
    "prune": ("prune", "-t", "0.8", "--similarity-columns", "1,3", "--scale", "raw", "--keep-top", "2"),
    "size": ("prune", "--target-size", "0.5", "--similarity-columns", "1,3", "--scale", "raw", "--keep-top", "1"),
    "whole": ("prune", "--target-size", "0.5", "--method", "count+probability", "--keep-top", "1"),
    "filter-pt": ("filter-pt", "-n", "2"),
    "threshold-filter": ("threshold-filter", "2:0.95", "--keep-words"),
}


@pytest.mark.parametrize("name", USES)
def test_an_unsorted_table_is_refused_sorted_or_accepted_with_force(tmp_path, name):
    shuffled, out = write(tmp_path / "shuffled.gz", SHUFFLED), tmp_path / "out"
    command, *options = USES[name]
    refused = run_inside(command, *options, shuffled, "-q", "-o", out)
    assert refused.code == 1
    assert f"{shuffled}:" in refused.message
    assert "occurs again after other sources" in refused.message
    assert refused.message.endswith("; --sort sorts it, --force continues anyway")
    assert [path.name for path in tmp_path.iterdir()] == ["shuffled.gz"]

    in_order = run_inside(command, *options, write(tmp_path / "sorted", SORTED), "-q", "-o", "-")
    assert 0 < in_order.out.count(b"\n") < SORTED.count(b"\n")
    outcome = run_inside(command, *options, shuffled, "-q", "-o", out, "--sort")
    assert (outcome.code, outcome.err, read(out)) == (0, "", in_order.out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "shuffled.gz", "sorted"]

    forced = run_inside(command, *options, shuffled, "-q", "-o", out, "--force")
    assert forced.err.startswith(f"phrasetool: warning: {shuffled}:")
    # Each line is then a separate source, and its best entry.
    assert forced.code == 0 or "are kept at any threshold" in forced.err or "protected" in forced.err


def test_criteria_of_single_entries_do_not_need_sorted_tables(tmp_path):
    shuffled, ordered = write(tmp_path / "shuffled", SHUFFLED), write(tmp_path / "sorted", SORTED)
    for no_protection in (("--protect", "none"), ("--keep-top", "0")):
        for method in ("count", "probability+count", "probability"):
            command = ("prune", "-t", "0.75", "--method", method, *no_protection, "-q")
            outcome, expected = run_inside(*command, shuffled), run_inside(*command, ordered)
            assert (outcome.code, outcome.err) == (0, "")
            assert sorted(outcome.out.splitlines()) == sorted(expected.out.splitlines())
        assert 0 < outcome.out.count(b"\n") < SHUFFLED.count(b"\n")


def test_ranks_within_a_source_need_sorted_tables(tmp_path):
    shuffled, ini = write(tmp_path / "shuffled", SHUFFLED), write(tmp_path / "moses.ini", INI.encode())
    command = ("prune", "-t", "-1", "--method", "top", "--moses-ini", ini, "--protect", "none", "-q", shuffled)
    assert "occurs again after other sources" in run_inside(*command).message


def test_standard_input_is_sorted_too(tmp_path):
    command = ("filter-pt", "-n", "2", "-q")
    assert run_inside(*command, "--sort", stdin=SHUFFLED).out == run_inside(*command, stdin=SORTED).out
    wrong = run_inside(*command, "--sort", stdin=SHUFFLED + b"a ||| b\n")
    assert wrong.message.startswith("phrasetool: standard input, sorted:1: expected at least 3 fields")


def test_unprotected_tables_need_not_be_sorted(tmp_path):
    table = write(tmp_path / "t", SHUFFLED)
    outcome = run_inside(
        "prune", "-t", "0.5", "--similarity-columns", "1,3", "--scale", "raw", "--protect", "none", table, "-q"
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert run_inside("threshold-filter", "2:0.75", table, "-q").err == ""


def test_smoothing_of_a_pruned_table(tmp_path):
    out = tmp_path / "o"
    for whole in (SORTED, SHUFFLED):
        outcome = run_inside("annotate", write(tmp_path / "t", whole), "--smoothing", "good-turing", "-o", out)
        assert outcome.code == 0
        assert "looks pruned" not in outcome.err
    out.unlink()
    lines = naive.split_lines(SORTED)
    table = write(tmp_path / "t", b"".join(line for line in lines if not line.startswith(b"s7 ||| t7 1")))
    command = ("annotate", table, "--smoothing", "good-turing", "-q", "-o", out)
    refused = run_inside(*command)
    assert refused.code == 1
    assert "t: looks pruned: 2.5% of the sources were seen more often than all their entries" in refused.message
    assert not out.exists()
    forced = run_inside(*command, "--force")
    assert (forced.code, "warning" in forced.message) == (0, True)
    assert read(out).count(b"\n") == len(lines) - 1


def test_the_wrong_kind_of_table(tmp_path):
    table = write(tmp_path / "t", SORTED)
    scores = (b"0.6 0.2 0.2 0.5 0.25 0.25", b"0.2 0.2 0.6 0.6 0.2 0.2", b"0.2 0.6 0.2 0.4 0.2 0.4")
    pairs = [b" ||| ".join(line.split(b" ||| ")[:2]) for line in naive.split_lines(SORTED)]
    reordering = write(tmp_path / "r", b"".join(b"%s ||| %s\n" % (pair, scores[i % 3]) for i, pair in enumerate(pairs)))
    command = ("remove-orphans", "-q", "-o", "-")
    assert run_inside(*command, table, "--reordering-table", reordering).out == reordering.read_bytes()
    for arguments, message in (
        ((reordering, "--reordering-table", reordering), "r: looks like a reordering table; expected a phrase table"),
        ((table, "--reordering-table", table), "t: looks like a phrase table; expected a reordering table"),
    ):
        refused = run_inside(*command, *arguments)
        assert (refused.code, refused.out) == (1, b"")
        assert refused.message.endswith(f"{message}; --force continues anyway")
        assert run_inside(*command, *arguments, "--force").out == arguments[2].read_bytes()
