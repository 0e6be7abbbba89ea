"""Commands that need counts, with tables that have none, two of three, or malformed ones."""

import json

import pytest

from phrasetool.pruning.criteria import CRITERIA
from phrasetool.pruning.measures import COUNTS
from phrasetool_cli.messages import REMEDIES
from tests.commands import run_inside, write

# The second entry of each source is the frequent one, seen 98 of 100 times.
ROWS = [("a b", "seldom", 0.01), ("a b", "always", 0.98), ("c d", "seldom", 0.01), ("c d", "always", 0.98)]
NONE = "".join(f"{s} ||| {t} ||| {p} 0.1 {p} 0.1\n" for s, t, p in ROWS).encode()
TWO = "".join(f"{s} ||| {t} ||| {p} 0.1 {p} 0.1 ||| 0-0 ||| 100 100\n" for s, t, p in ROWS).encode()
# Two entries with a joint count, and two whose joint count is not a number.
DAMAGED = NONE.replace(b" 0.1\n", b" 0.1 ||| 0-0 ||| 100 100 1\n", 2).replace(b"0.1\n", b"0.1 ||| 0-0 ||| 9 9 1,5\n")
CUT = ("--target-size", "0.5", "--protect", "none")
INI = b"""[feature]
WordPenalty
PhraseDictionaryMemory name=TM num-features=4 path=table input-factor=0 output-factor=0
[weight]
WordPenalty0= -1
TM= 0.2 0.2 0.2 0.2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, data in (("none", NONE), ("two", TWO), ("damaged", DAMAGED), ("ini", INI), ("table", NONE)):
        write(tmp_path / name, data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("method", [("count",), ("count+probability", "--combine", "rank")])
def test_a_method_by_counts_is_refused_without_them(folder, method):
    for table, line in (("none", 1), ("damaged", 3)):
        outcome = run_inside("prune", table, "--method", *method, *CUT, "-o", "out")
        assert outcome.code == 1
        assert f"{table}:{line}: the entry has no joint count" in outcome.message
        assert not (folder / "out").exists()


@pytest.mark.parametrize("method", ["composition", "composition+probability", "usage+probability"])
def test_other_methods_that_need_counts(folder, method):
    write(folder / "pairs", b"a b ||| seldom ||| 3\n")
    uses = ("--forced-pairs", "pairs") if "usage" in method else ()
    outcome = run_inside("prune", "none", "--moses-ini", "ini", "--method", method, *uses, *CUT, "-q")
    assert (outcome.code, "none:1: the entry has no joint count" in outcome.message) == (1, True)


def test_usage_alone_needs_no_counts(folder):
    write(folder / "pairs", b"a b ||| seldom ||| 3\nc d ||| always ||| 1\n")
    outcome = run_inside("prune", "none", "--method", "usage", "--forced-pairs", "pairs", *CUT, "-q")
    assert outcome.out == NONE.splitlines(keepends=True)[0] + NONE.splitlines(keepends=True)[3]


def test_the_remedy_names_every_method_without_counts():
    without = {part.name for part in CRITERIA if COUNTS not in part.needs}
    assert all(name in REMEDIES["prune without counts"] for name in without)
    assert not {"count", "composition"} & without


def test_joint_counts_are_derived_from_the_other_two(folder):
    outcome = run_inside("prune", "two", "--method", "count", *CUT)
    assert outcome.out == b"".join(TWO.splitlines(keepends=True)[1::2])
    assert "joint counts of 4 entries were derived as phi(f|e) * c(t)" in outcome.err


def test_a_lexicon_leaves_missing_counts_empty(folder):
    def rows(*options):
        outcome = run_inside(
            "export", *options, "--to", "lexicon", "--min-probability", 0, "--stop-words", 0, "--json", "json"
        )
        assert outcome.code == 0, outcome.err
        return [line.split("\t")[5] for line in outcome.out.decode().splitlines()[1:]], outcome.err

    counts, messages = rows("none")
    assert (set(counts), messages.count("no joint count")) == ({""}, 1)
    assert json.loads((folder / "json").read_text())["counts"] == {"entries": 4, "missing": 4, "derived": 0}
    counts, messages = rows("two")
    assert (set(counts), "derived" in messages) == ({"98"}, True)
    counts, messages = rows("damaged")
    assert "2 of 4 entries have no joint count" in messages
    outcome = run_inside("export", "damaged", "--to", "lexicon", "--min-pair-count", 2, "-o", "out")
    assert "damaged:3: the entry has no joint count (found '9 9 1,5'); --min-pair-count needs" in outcome.message
    assert not (folder / "out").exists()
    assert "no joint counts" in run_inside("export", "none", "--to", "vmap", "-o", "out").err


def test_counts_of_training_pairs(folder):
    outcome = run_inside("train", "damaged", "-o", "model", "--epochs", 1)
    assert "damaged:3: expected a count, a number of at least 0, found '9 9 1,5'" in outcome.message
    write(folder / "logs", b"a ||| b ||| -0.105\n")
    assert "logs:1: expected a count" in run_inside("train", "logs", "-o", "model", "--epochs", 1).message
    outcome = run_inside("train", "none", "-o", "model", "--epochs", 1, "--min-pair-count", 2)
    assert "none:1: the pair has no count" in outcome.message
    assert "--min-pair-count" in outcome.message
    outcome = run_inside("annotate", "none", "--forced-pairs", "none", "-o", "out")
    assert "none:1: the pair has no count" in outcome.message
    assert not (folder / "model").exists()
    assert not (folder / "out").exists()


def test_rare_words_need_counts(folder):
    write(folder / "words", b"haus ||| house ||| 0.5 0.5 0.5 0.5\nkind ||| child ||| 0.5 0.5 0.5 0.5\n")
    write(folder / "text", b"haus 4711a zoo\nkind\n")
    outcome = run_inside("augment", "words", "--text", "text", "-o", "out", "--rare", 3)
    assert "words:1: no counts" in outcome.message
    outcome = run_inside("augment", "words", "--text", "text", "-o", "out")
    assert "2 words of the table have no count c(s)" in outcome.err


def test_counts_of_pairs_through_a_pivot_language(folder):
    write(folder / "first", b"a ||| m ||| 0.5 0.5 0.5 0.5 ||| 0-0\n")
    write(folder / "second", b"m ||| x ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 4 4 2\n")
    outcome = run_inside("pivot", "first", "second", "-o", "out", "--counts", "min", "--force")
    assert "first:1: the entry has no joint count; --counts needs" in outcome.message
    assert not (folder / "out").exists()
    outcome = run_inside("pivot", "first", "second", "-o", "out", "--force")
    assert "first: the table has no joint counts" in outcome.err
    assert (folder / "out").read_bytes() == b"a ||| x ||| 0.25 0.25 0.25 0.25 ||| 0-0 ||| ||| |||\n"


@pytest.mark.parametrize("counts", ["100 100 0", "0 0 0", "9 100 98", "100 9 98"])
def test_impossible_counts_are_refused(folder, counts):
    """Joint counts of 0, or above the count of a side, are refused by all commands that need joint counts."""
    write(folder / "impossible", NONE.replace(b" 0.1\n", f" 0.1 ||| 0-0 ||| {counts}\n".encode()))
    write(folder / "way", b"seldom ||| x ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 4 4 2\n")
    message = (
        f"impossible:1: the entry has an impossible joint count (found {counts!r}): it must be positive and at most"
    )
    for arguments in (
        ("prune", "impossible", "--method", "count", *CUT),
        ("annotate", "impossible", "--smoothing", "good-turing"),
        ("export", "impossible", "--to", "lexicon", "--min-pair-count", 2),
        ("pivot", "impossible", "way", "--counts", "min", "--force"),
    ):
        outcome = run_inside(*arguments, "-o", "out")
        assert outcome.code == 1
        assert message in outcome.message
        assert not (folder / "out").exists()
    outcome = run_inside("inspect", "impossible", "--json")
    assert "bad counts" in outcome.out.decode()


@pytest.mark.parametrize(
    ("counts", "new"), [(" ||| 9 9 2", " ||| 1 1 1"), (" ||| 9 9", " ||| 1 1"), (" |||", " |||"), ("", ""),
                        (" ||| 0 0 0", " ||| 1 1")],
)  # fmt: skip
def test_new_entries_have_the_counts_that_the_table_has(folder, counts, new):
    words = ("haus ||| house", "kind ||| child")
    write(folder / "words", "".join(f"{pair} ||| 0.5 0.5 0.5 0.5 ||| 0-0{counts}\n" for pair in words).encode())
    write(folder / "text", b"haus 4711a zoo\nkind\n")
    outcome = run_inside("augment", "words", "--text", "text", "-o", "out", "--force")
    assert outcome.code == 0, outcome.err
    lines = [line for line in (folder / "out").read_text().splitlines() if line.startswith(("4711a", "zoo"))]
    assert lines
    assert all(line.endswith(f" ||| 0-0{new}") for line in lines), lines


@pytest.mark.parametrize("scores", ["0.9", "0.9 0.1", "0.9 0.1 2.718"])
def test_criteria_that_need_the_scores_of_training(folder, scores):
    """Methods that need the first or the third score, phi(f|e) or p(e|f), refuse tables with fewer than four scores."""
    write(folder / "few", f"a ||| x ||| {scores} ||| 0-0 ||| 9 9\na ||| y ||| {scores} ||| 0-0 ||| 9 9\n".encode())
    few = len(scores.split())
    for method in ("probability", "count*2+probability", "count"):
        outcome = run_inside("prune", "few", "--method", method, *CUT, "-o", "out")
        expected = (
            "few:1: the entry has no joint count" if method == "count" else f"few:1: the entries have {few} scores"
        )
        assert (outcome.code, expected in outcome.message) == (1, True)
        assert not (folder / "out").exists()
    outcome = run_inside("train", "few", "-o", "model", "--epochs", 1)
    assert "few:1: expected a count, a number of at least 0, found '9 9'" in outcome.message
