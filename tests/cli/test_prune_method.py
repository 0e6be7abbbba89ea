"""`phrasetool prune --method`."""

import json
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from tests.commands import read, run_inside, write
from tests.power_cuts import PowerCut, cut_after
from tests.tables import TABLES

__all__ = ["cut_after"]
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
    outcome = prune(folder, *options)
    assert outcome.code == 0, outcome.err
    return [TABLE.index(line) for line in read(folder / "out").splitlines(keepends=True)]


def test_composition(folder):
    """`das haus ||| the house` can be composed at a loss of ln 0.3 + ln 0.25 - ln 0.6 - ln 0.25 < 0."""
    options = ("--method", "composition", "--moses-ini", folder / "moses.ini", "--keep-top", "0")
    assert kept(folder, *options, "--threshold", "0") == [0, 1, 2, 4, 5]
    # Entries that cannot be composed are ranked by their counts: 5, 4, then 2.
    assert kept(folder, *options, "--target-size", "0.5") == [0, 1, 5]


def test_counts_and_probabilities(folder):
    assert kept(folder, "--method", "count", "-t", "3", "--keep-top", "0") == [0, 3, 5]
    assert kept(folder, "--method", "probability", "--target-size", "0.34", "--keep-top", "0") == [4, 5]


def test_top(folder):
    options = ("--method", "top", "--moses-ini", folder / "moses.ini", "--keep-top", "0", "-t", "0")
    # By p(f|e) p(e|f): the best of every source.
    assert kept(folder, *options) == [0, 4, 5]


def test_significance(folder):
    options = ("--method", "significance", "--bitext", folder / "de", folder / "en", "--keep-top", "0")
    # `this` does not occur in the bitext, so its entry is not significant.
    assert 1 not in kept(folder, *options, "--threshold", "0.0001")


PAIRS = b"das ||| this ||| 3\nhaus ||| house ||| 2\ndas haus ||| home ||| 1\nx ||| y ||| 4\n"


def test_usage(folder):
    """The entries were used 0 3 0 0 1 2 times, and extracted 5 2 1 3 1 4 times."""
    pairs = write(folder / "pairs.gz", PAIRS)
    options = ("--forced-pairs", pairs, "--keep-top", "0")
    assert kept(folder, "--method", "usage:1", *options) == [1, 4, 5]
    assert kept(folder, "--method", "usage", "--threshold", "2", *options) == [1, 5]
    assert kept(folder, "--method", "usage", "--target-size", "0.34", *options) == [1, 5]
    # Composition scores are 5 2 1 0.9 1 4; usage, (uses + 6/16) / (count + 1), is 0.31 2.25 0.19 0.08 0.69 1.9.
    product = ("--method", "composition+usage", "--moses-ini", folder / "moses.ini", *options)
    assert kept(folder, *product, "--target-size", "0.34") == [1, 5]
    outputs = ("--reasons", folder / "why", "--stats", folder / "stats")
    assert kept(folder, *product, "--target-size", "0.7", *outputs) == [0, 1, 4, 5]
    assert "method:composition+usage(product)|" in json.loads(read(folder / "stats"))["signature"]
    rows = pq.read_table(folder / "why").to_pylist()
    failures = [(row["line"], row["usage"], row["failed"]) for row in rows]
    assert failures == [(3, 0, "usage"), (4, 0, "composition+usage")]


def test_threads_and_blocks_do_not_change_usage(folder):
    pairs = write(folder / "pairs.gz", PAIRS)
    outcomes = set()
    for more in (("--threads", "1"), ("--threads", "2", "--block-bytes", "1")):
        outcome = prune(folder, "--method", "count*2+usage", "--forced-pairs", pairs, "--target-size", "0.5", *more)
        assert outcome.code == 0
        outcomes.add((read(folder / "out"), outcome.err))
    assert len(outcomes) == 1


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (b"das ||| the ||| 1\nno pair\n", "pairs:2: expected `source ||| target`"),
        (b"das ||| nothing ||| 1\n", "pairs: none of its pairs with a count above 0 is in "),
        (b"das ||| the ||| 0\n", "pairs: the count of every pair is 0"),
        (b"", "pairs: no phrase pair, the file is empty"),
        (None, "pairs: No such file"),
    ],
)
def test_invalid_forced_pairs(folder, pairs, message):
    if pairs is not None:
        write(folder / "pairs", pairs)
    before = sorted(path.name for path in folder.iterdir())
    outcome = prune(folder, "--method", "usage", "-t", "1", "--forced-pairs", folder / "pairs")
    assert outcome.code == 1
    assert message in outcome.message
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_best_entries_of_words_are_kept(folder):
    options = ("--method", "random", "--seed", "3", "--protect", "words", "--keep-top", "1", "-t", "1")
    assert {TABLE[i].split()[0] for i in kept(folder, *options)} == {b"das", b"haus"}
    outcome = prune(folder, *options[:-2], "--target-size", "0.1")
    assert outcome.code == 1
    assert "2 of 6 entries (33.3%) are kept at any threshold, more than the requested 10.0%" in outcome.message


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


def test_the_default_with_forced_pairs_adds_usage(folder, model_folder):
    write(folder / "pairs", b"das haus ||| the house ||| 3\n")
    options = ("-m", model_folder, "--moses-ini", folder / "moses.ini", "--target-size", "0.5", "--keep-top", "0",
               "--forced-pairs", folder / "pairs", "--stats", folder / "stats")  # fmt: skip
    named = kept(folder, *options, "--method", "composition+semantic+usage")
    assert kept(folder, *options) == named
    assert "|method:composition+semantic+usage(product)|" in json.loads(read(folder / "stats"))["signature"]


def test_the_default_without_an_ini_is_the_rule_of_the_paper(folder, model_folder):
    outcome = prune(folder, "-m", model_folder, "--threshold", "0.7")
    assert outcome.code == 0
    assert "method:" not in outcome.err


def test_sizes(folder):
    outcome = run_inside("prune", folder / "table.gz", "--method", "count", "--keep-top", "0", "--sweep", "1:5:2", "-q")
    assert outcome.out == b"threshold\tentries\tshare\n1\t6\t1.0000\n3\t3\t0.5000\n5\t1\t0.1667\n"


@pytest.mark.parametrize(("on_error", "size"), [("skip", b"2\t0.6667"), ("keep", b"3\t0.7500")])
def test_sizes_count_malformed_lines_that_are_written(folder, on_error, size):
    write(folder / "table.gz", b"".join([*TABLE[:3], b"das ||| z ||| 0.5 zz\n"]))
    options = ("--method", "count", "--protect", "none", "--on-error", on_error, "-q")
    outcome = run_inside("prune", folder / "table.gz", *options, "--sweep", "2:2:1")
    assert outcome.out == b"threshold\tentries\tshare\n2\t" + size + b"\n"
    assert prune(folder, *options, "-t", "2").code == 0
    assert read(folder / "out").count(b"\n") == int(size[:1])


def test_the_reordering_table_is_pruned_too(folder):
    write(folder / "r", b"".join(b" ||| ".join(line.split(b" ||| ")[:2]) + b" ||| 0.5 0.5\n" for line in TABLE))
    kept(folder, "--method", "count", "-t", "3", "--keep-top", "0", "--reordering-table", folder / "r",
         "--reordering-out", folder / "r2")  # fmt: skip
    assert read(folder / "r2").count(b"\n") == 3


def test_thresholds_of_significance_are_those_of_filter_pt(folder):
    corpus = (folder / "de", folder / "en")
    for threshold in ("a+e", "a-e", "0.5", "0"):
        options = ("--bitext", *corpus, "--keep-top", "0")
        kept_rows = kept(folder, "--method", "significance", "-t", threshold, *options)
        assert kept(folder, "--method", f"significance:{threshold}", *options) == kept_rows
        outcome = run_inside("filter-pt", folder / "table.gz", "-f", corpus[0], "-e", corpus[1], "-l", threshold,
                             "--force", "-q", "-o", folder / "theirs")  # fmt: skip
        assert outcome.code == 0
        assert [TABLE.index(line) for line in read(folder / "theirs").splitlines(keepends=True)] == kept_rows


def test_intersection_and_union(folder):
    """By count 3 or more: 0 3 5; by probability 0.5 or more: 0 4 5."""
    options = ("--keep-top", "0")
    text = "count:3+probability:0.5"
    assert kept(folder, "--method", text, *options) == [0, 5]
    assert kept(folder, "--method", text, "--combine", "intersection", *options) == [0, 5]
    assert kept(folder, "--method", text, "--combine", "union", *options) == [0, 3, 4, 5]
    assert kept(folder, "--method", "count:30+probability:1", "--keep-top", "1", "--protect", "words") == [0, 5]
    # By rank among counts 5 4 3 2 1 1 and probabilities 1 0.9 0.6 0.3 0.3 0.1: at 1/2, each alone keeps three.
    ranks = ("--method", "count+probability", *options, "-t", "0.5")
    assert kept(folder, *ranks, "--combine", "intersection") == [0, 5]
    assert kept(folder, *ranks, "--combine", "union") == [0, 3, 4, 5]
    sized = ("--method", "count+probability", *options, "--target-size", "0.34")
    assert kept(folder, *sized, "--combine", "intersection") == [0, 5]
    assert kept(folder, *sized, "--combine", "union") == [0, 5]


def test_weights(folder):
    """`the` has a higher count than `house` (5 and 4), and a lower probability (0.6 and 1)."""
    options = ("--keep-top", "0", "--target-size", "0.17")
    assert kept(folder, "--method", "count+probability", *options) == [5]
    assert kept(folder, "--method", "count*4+probability", *options) == [0]
    outcome = prune(folder, "--method", "count*4+probability", *options)
    assert "method:count*4+probability(product)|" in outcome.err


def test_a_threshold_in_the_name_of_the_paper_s_rule(folder, model_folder):
    by_name = kept(folder, "-m", model_folder, "--method", "semantic:0.3", "--keep-top", "0")
    assert by_name == kept(folder, "-m", model_folder, "--threshold", "0.3", "--keep-top", "0")
    assert 0 < len(by_name) < len(TABLE)


def test_protection_is_limited_to_a_share_of_the_size(folder):
    """Protection may take 60 % of the size: at 9 of 20 entries, 5 of the 10 entries of `das` (60 % are 5.4)."""
    lines = [b"das ||| t%02d ||| 0.1 0.1 0.1 0.1 ||| 0-0 ||| 30 30 %d\n" % (i, 15 - i) for i in range(10)]
    lines += [b"zu haus ||| t%02d ||| 0.1 0.1 0.1 0.1 ||| 0-0 ||| 30 30 20\n" % i for i in range(10)]
    write(folder / "table.gz", b"".join(lines))
    outcome = prune(folder, "--method", "count", "--target-size", "0.45")
    assert outcome.code == 0
    assert "always kept: the 5 best of every one-word source" in outcome.err
    assert "+k5+words|" in outcome.err
    assert [lines.index(line) for line in read(folder / "out").splitlines(keepends=True)] == [*range(5), 10, 11, 12, 13]
    # Explicit options are obeyed, or refused.
    assert "+k10+words|" in prune(folder, "--method", "count", "--target-size", "0.5", "--keep-top", "10").err
    assert "+k1+all|" in prune(folder, "--method", "count", "--target-size", "0.1", "--protect", "all").err
    assert "+k10+all|" in prune(folder, "--method", "count", "-t", "3").err
    outcome = prune(folder, "--method", "count", "--target-size", "0.04")
    assert outcome.message.endswith("1 of 20 entries (5.0%) are kept at any threshold, more than the requested 4.0%; "
                                 "--keep-top 0 lets words become unknown")  # fmt: skip


FAILED = ("--method", "count:3+probability:0.5", "--keep-top", "1", "--protect", "words")


@pytest.mark.parametrize("more", [("--threads", "1"), ("--threads", "2", "--block-bytes", "1")])
def test_reasons(folder, more):
    """Entries 1 and 2 fail both criteria, 3 fails probability, 4 fails count; the others are kept."""
    outputs = ("--stats", folder / "s", "--rejected", folder / "gone", "--reasons", folder / "why")
    assert kept(folder, *FAILED, *outputs, *more) == [0, 5]
    rows = pq.read_table(folder / "why").to_pylist()
    assert [(row["line"], row["failed"], row["kept"]) for row in rows] == [
        (2, "count+probability", False), (3, "count+probability", False), (4, "probability", False), (5, "count", False)
    ]  # fmt: skip
    assert (rows[2]["source"], rows[2]["target"]) == ("das haus", "the house")
    assert rows[2]["count"] == 3
    assert rows[2]["probability"] == pytest.approx(0.3)
    statistics = json.loads(read(folder / "s"))
    assert statistics["removed"] == {"below_threshold": 4}
    assert statistics["removed_by"] == {"count": 1, "count+probability": 2, "probability": 1}
    rejected = read(folder / "gone").splitlines(keepends=True)
    assert rejected == [TABLE[row["line"] - 1] for row in rows if not row["kept"]]
    outcome = prune(folder, *FAILED)
    assert "1 removed by count alone\n" in outcome.err
    assert "2 removed by each of count and probability\n" in outcome.err


def test_reasons_are_computed_only_if_reported(folder, monkeypatch):
    expected = kept(folder, *FAILED)
    monkeypatch.setattr("phrasetool.pruning.ranked_table.RankedTable.explain", None)
    assert kept(folder, *FAILED, "-q") == expected
    assert kept(folder, "--method", "count", "-t", "3") != []
    with pytest.raises(TypeError):
        prune(folder, *FAILED, "-q", "--stats", folder / "s")


def test_protected_entries_have_reasons(folder):
    kept(folder, "--method", "count", "-t", "9", "--keep-top", "1", "--protect", "words", "--reasons", folder / "why")
    rows = pq.read_table(folder / "why").to_pylist()
    assert [row["kept"] for row in rows] == [True, False, False, False, False, True]
    assert {row["failed"] for row in rows} == {"count"}


def composable_table():
    """Return a table with a source of 300 entries, all pairs of single words, and many pairs of two words."""
    words = "abcdef"
    pairs = [(f"{a} {b}", f"{x} {y}") for a in words for b in words[:3] for x in words[:3] for y in words[2:]]
    pairs += [(word, translation) for word in words for translation in words] + [
        ("d d d", f"t{i} a {i % 7}") for i in range(300)
    ]
    lines = []
    for i, (source, target) in enumerate(sorted(pairs)):
        scores = " ".join(f"{(i * k * 37 % 89 + 1) / 90:.3f}" for k in (1, 3, 5, 7))
        lines.append(f"{source} ||| {target} ||| {scores} ||| 0-0 ||| 9 9 {i * 31 % 5 + 1}\n")
    # Malformed lines, in the middle of the long source and elsewhere.
    middle = next(i for i, line in enumerate(lines) if line.startswith("d d d ")) + 150
    lines[middle:middle] = ["no entry\n", "d d d ||| x\n"]
    return "".join(["no entry\n", *lines[:20], "\n", *lines[20:]]).encode()


@pytest.mark.parametrize("combine", ["product", "rank"])
def test_a_source_longer_than_a_block_and_resumed_runs(folder, cut_after, monkeypatch, combine):
    """Table, statistics and reasons depend neither on sizes of blocks and parts, nor on how often a run was resumed."""
    data = composable_table()
    write(folder / "table.gz", data)
    pairs = write(folder / "pairs", b"a ||| b ||| 2.5\na b ||| a c ||| 1\n")
    arguments = (
        "prune", folder / "table.gz", "--method", "composition+usage+count", "--combine", combine,
        "--target-size", "0.4", "--moses-ini", folder / "moses.ini", "--forced-pairs", pairs, "--on-error", "keep",
        "--rejected", folder / "gone", "--stats", folder / "stats", "-o", folder / "out",
    )  # fmt: skip
    names = ("out", "gone", "stats")
    outcome = run_inside(*arguments, "--reasons", folder / "why")
    assert outcome.code == 0, outcome.err
    expected = [read(folder / name) for name in (*names, "why")]
    assert sorted((expected[0] + expected[1]).splitlines()) == sorted(data.splitlines())
    assert json.loads(expected[2])["sources"] == 6 + 18 + 1
    monkeypatch.setattr("phrasetool.pruning.measures.MeasuredTable.__init__.__defaults__", (None, 16))
    (folder / "work").mkdir()
    small = ("--block-bytes", "600", "--threads", "2", "--temporary", folder / "work")
    assert run_inside(*arguments, "--reasons", folder / "why", *small).code == 0
    assert [read(folder / name) for name in (*names, "why")] == expected
    stops = 0
    while True:
        cut_after(30)
        try:
            last = run_inside(*arguments, *small, "--resume")
            break
        except PowerCut:
            stops += 1
    assert (last.code, stops > 1) == (0, True)
    assert [read(folder / name) for name in names] == expected[:-1]


def test_room_for_work_files(folder, monkeypatch):
    options = ("--method", "count", "-t", "3")
    monkeypatch.setattr("moses_compat.jobs.prune_ranking._MUCH", 100)
    outcome = prune(folder, *options, "--temporary", folder)
    assert outcome.err.startswith(
        f"phrasetool: some 0.0 GB of temporary files will be in {folder} until the table is written\n"
    )
    monkeypatch.setattr("phrasetool.disk.folders.shutil.disk_usage", lambda path: SimpleNamespace(free=100))
    before = read(folder / "out")
    outcome = prune(folder, *options, "-q")
    assert outcome.code == 1
    assert outcome.message.startswith(
        f"phrasetool: {folder}: 0.0 MB are free on its disk, but what is written there takes"
    )
    assert read(folder / "out") == before
    outcome = prune(folder, *options, "--force", "-q")
    assert (outcome.code, "are free on its disk" in outcome.message) == (0, True)
    assert "does not exist" in prune(folder, *options, "--temporary", folder / "none").err


def test_entries_removed_only_by_the_combination(folder):
    """An entry that is second by both criteria, but third by their product, would be kept by each criterion alone."""
    rows = [(b"0.09", 100), (b"0.1", 10), (b"1", 9), (b"0.01", 3)]
    write(folder / "table.gz", b"".join(b"a ||| x ||| 1 1 %s 1 ||| 0-0 ||| 199 199 %d\n" % row for row in rows))
    outcome = prune(folder, "--method", "count+probability", "--target-size", "0.5", "--keep-top", "0",
                    "--reasons", folder / "why")  # fmt: skip
    assert outcome.code == 0
    assert "1 removed by all criteria together, by none of them alone" in outcome.err
    rows = pq.read_table(folder / "why").to_pylist()
    assert [(row["line"], row["failed"]) for row in rows] == [(2, "together"), (4, "count+probability")]


def test_reasons_of_the_paper_s_rule(folder, model_folder):
    options = ("-m", model_folder, "--threshold", "0.3", "--keep-top", "1", "--protect", "words")
    files = set()
    for more in (("--threads", "1"), ("--threads", "2", "--block-bytes", "1")):
        kept_rows = kept(folder, *options, *more, "--reasons", folder / "why", "--stats", folder / "s")
        files.add((read(folder / "why"), read(folder / "s")))
    assert len(files) == 1
    rows = pq.read_table(folder / "why").to_pylist()
    assert {row["line"] - 1 for row in rows if not row["kept"]} == set(range(len(TABLE))) - set(kept_rows)
    assert all(row["semantic"] < 0.3 and row["failed"] == "semantic" for row in rows)
    assert json.loads(read(folder / "s"))["removed_by"] == {"semantic": len(TABLE) - len(kept_rows)}


def test_failed_runs_write_nothing(folder):
    write(folder / "table.gz", b"".join(TABLE) + b"bad\n")
    before = sorted(path.name for path in folder.iterdir())
    outcome = prune(folder, "--method", "count", "-t", "3", "--reasons", folder / "why")
    assert outcome.code == 1
    assert "table.gz:7: " in outcome.message
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--method", "semantics", "-t", "1"), 2, "did you mean"),
        (("--method", "composition", "-t", "1"), 2, "composition needs the weights of a model: give --moses-ini"),
        (("--method", "significance", "-t", "1"), 2, "give --bitext SOURCE TARGET"),
        (("--method", "usage", "-t", "1"), 2, "usage needs the pairs that forced decoding of the bitext used"),
        (("--method", "usage:1+count:1"), 2, "give --forced-pairs PAIRS"),
        (("--method", "count+count", "-t", "1"), 2, "count"),
        (("--method", "semantic+count", "-t", "1", "--similarities", "none"), 2,
         "none: no such file; --method semantic+count(product) needs existing similarities; first write them with "
         "--threshold 0, without --method and --moses-ini"),
        (("--method", "count", "-t", "1", "--similarities", "none"), 2,
         "--similarities is for methods with similarities, not for count"),
        (("--method", "count", "-t", "1", "-m", "none"), 2, "--model is for methods with similarities, not for count"),
        (("--method", "count+top", "-t", "1", "--moses-ini", "x", "--encoder", "none"), 2,
         "--encoder is for methods with similarities, not for count+top(product)"),
        (("--method", "random", "-t", "1", "--similarity-columns", "1,2"), 2,
         "--similarity-columns is for methods with similarities, not for random"),
        (("--method", "count", "-t", "nan"), 2, "not NaN"),
        (("--method", "count:3", "-t", "3"), 2, "their own thresholds"),
        (("--method", "count:3", "--sweep", "0:1:1"), 2, "their own thresholds"),
        (("--method", "count:3+top", "--moses-ini", "x"), 2, "top has no threshold"),
        (("--method", "count", "-t", "a+e"), 2, "--threshold a+e goes with --method significance alone"),
        (("-t", "a-e",), 2, "--threshold a-e goes with --method significance alone"),
        (("--method", "count", "-t", "b+e"), 2, "'b+e' is not a number, a+e or a-e"),
        (("--method", "count+probability:2",), 2, "count has no threshold"),
        (("--method", "count*2+probability", "--combine", "union", "-t", "1"), 2, "weights have no effect in a union"),
        (("--method", "count", "-t", "1", "--reasons", "why.gz"), 2, "leave out .gz"),
        (("--method", "count", "--sweep", "1:2:1", "--reasons", "why"), 2, "--sweep writes no table"),
        (("--method", "count", "--sweep", "1:2:1", "--resume"), 2, "--resume is for an output"),
        (("--method", "composition", "-t", "1", "--moses-ini", "missing.ini"), 1, "missing.ini: No such file"),
    ],
)  # fmt: skip
def test_bad_requests(folder, options, code, message):
    outcome = prune(folder, *options)
    assert outcome.code == code
    assert message in outcome.err
    assert not (folder / "out").exists()


def test_standard_input_cannot_be_read_twice(folder):
    outcome = run_inside("prune", "--method", "count", "-t", "1", stdin=b"".join(TABLE))
    assert outcome.code == 2
    assert "reads the table twice" in outcome.err


@pytest.mark.parametrize("name", ["moses.ini", "de", "en", "table.gz", "pairs"])
def test_inputs_are_not_overwritten(folder, name):
    write(folder / "pairs", PAIRS)
    before = read(folder / name)
    outcome = run_inside(
        "prune", folder / "table.gz", "--method", "composition+significance+usage", "--forced-pairs", folder / "pairs",
        "--moses-ini", folder / "moses.ini",
        "--bitext", folder / "de", folder / "en", "-t", "1", "-o", folder / name,
    )  # fmt: skip
    assert outcome.code == 1
    assert "the output is the input" in outcome.message
    assert read(folder / name) == before


def test_an_ini_for_another_table(folder):
    write(folder / "other.ini", INI.replace("num-features=4", "num-features=2").replace("= 1 0 1 0", "= 1 0").encode())
    outcome = prune(folder, "--method", "top", "-t", "0", "--moses-ini", folder / "other.ini")
    assert outcome.code == 1
    assert "the entries have 4 scores, but TranslationModel0 has 2 weights" in outcome.message


@pytest.mark.parametrize(
    ("more", "warned"),
    [
        ((), True), (("-q",), False), (("--method", "semantic"), False), (("--moses-ini", "moses.ini"), False),
        (("--target-size", "0.5"), False),
    ],
)  # fmt: skip
def test_similarity_alone_causes_a_warning(folder, monkeypatch, more, warned):
    monkeypatch.chdir(folder)
    outcome = run_inside(
        "prune", "table.gz", "--similarity-columns", "1,2", "--scale", "raw", "--protect", "none", "--target-size",
        "0.1", *more,
        "-o", "warned.gz",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert ("similarity alone loses more than other methods" in outcome.err) == warned


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "count", "--seed", "3"), "--seed is for the method random"),
        (("--method", "count", "--combine", "rank"), "--combine is for several criteria; --method count is one"),
        (("--method", "count", "--bitext", "s", "t"), "--bitext is for the method significance, not for count"),
        (("--method", "count", "--forced-pairs", "p"), "--forced-pairs is for the method usage, not for count"),
        (("--method", "count", "--scale", "raw"), "--scale is for similarities in columns"),
    ],
)
def test_options_of_other_methods_are_refused(tmp_path, options, message):
    table = write(tmp_path / "table", TABLES["seven fields"])
    outcome = run_inside("prune", table, "--target-size", "0.5", "-o", tmp_path / "out", *options)
    assert outcome.code == 2
    assert message in outcome.message
    assert not (tmp_path / "out").exists()
