import json
import os
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from tests import naive
from tests.commands import read, run_inside, write
from tests.conftest import SOURCE_WORDS, TARGET_WORDS
from tests.pairwise import pairwise
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES, seven_fields
from tests.variants import for_each


def prune(table, model_folder, *options):
    model = ["-m", model_folder] if model_folder else []
    return run_inside("prune", table, *model, "-q", *options)


def naive_scores(model, table):
    """Return lines, groups, similarities (by the scorer, so that ties are exact), and which lines are scored."""
    lines, groups = naive.parse_table(table, naive.first_score_count(table))
    pairs = []
    for key, a, b in zip(naive.group_sources(lines, groups), groups, groups[1:], strict=False):
        pairs += [
            (naive.word_ids(key, SOURCE_WORDS), naive.word_ids(line.target or b"", TARGET_WORDS)) for line in lines[a:b]
        ]
    similarities = model.scorer().score_pairs(*(Phrases.from_lists([pair[side] for pair in pairs]) for side in (0, 1)))
    return lines, groups, similarities, [any(source) and any(target) for source, target in pairs]


def expected_output(model, table, threshold, keep_top, protect):
    lines, groups, similarities, scored = naive_scores(model, table)
    removed = naive.pruned_lines(lines, groups, similarities, scored, threshold, keep_top, protect)
    return b"".join(table[line.start : line.end] for i, line in enumerate(lines) if i not in removed)


@st.composite
def tables_with_ties(draw):
    """Draw tables of few words, so that pairs repeat within a group and similarities are exactly equal."""
    source = st.lists(st.sampled_from([b"das", b"haus", b"qq"]), min_size=1, max_size=2).map(b" ".join)
    target = st.lists(st.sampled_from([b"the", b"house", b"not", b"zz"]), max_size=2).map(b" ".join)
    lines = []
    for key in draw(st.lists(source, min_size=1, max_size=6)):
        size = draw(st.sampled_from([1, 1, 2, 4, 13]))
        for text in draw(st.lists(target, min_size=size, max_size=size)):
            lines.append(b"%s ||| %s ||| 1 0.5" % (key, text))
        if draw(st.integers(0, 5)) == 0:
            lines.append(draw(st.sampled_from([b"", b"%s ||| the" % key, b"%s ||| the ||| x y" % key])))
    return b"".join(line + b"\n" for line in lines)


@settings(max_examples=150)
@given(tables_with_ties(), st.sampled_from([0, 1, 3, 10]), st.sampled_from(["all", "words", "none"]), st.data())
def test_rule_agrees_with_naive(model, model_folder, workspace, table, keep_top, protect, data):
    # Thresholds that equal similarities of the table distinguish `below` from `not above`.
    similarities = naive_scores(model, table)[2].ravel().tolist()
    threshold = data.draw(st.one_of(st.sampled_from([-1.0, 0.0, 0.2, 1.0]), st.sampled_from(similarities)))
    source, out = write(workspace / "rule-in", table), workspace / "rule-out"
    outcome = prune(
        source,
        model_folder,
        "-t",
        repr(threshold),
        "--keep-top",
        keep_top,
        "--protect",
        protect,
        "--on-error",
        "keep",
        "--force",
        "--allow-empty",
        "-o",
        out,
        "--block-bytes",
        data.draw(st.sampled_from([1, 300, 1 << 21])),
    )
    assert outcome.code == 0
    assert out.read_bytes() == expected_output(model, table, threshold, keep_top, protect)


# Some tables are empty; in some, the lines of a source are not contiguous.
ANYTHING = ("--allow-empty", "--force")


# No similarity reaches 1: entries kept at this threshold are protected.
@for_each(
    ("name", "protect", "keep_top", "threshold"),
    pairwise(sorted(TABLES), ["all", "words", "none"], [0, 1, 3, 10], [0.25, 1.0]),
)
def test_rule_on_moses_tables(model, model_folder, tmp_path, name, protect, keep_top, threshold):
    table = TABLES[name]
    source = write(tmp_path / "t", table)
    result = prune(source, model_folder, "-t", threshold, "--keep-top", keep_top, "--protect", protect, *ANYTHING)
    assert result.out == expected_output(model, table, threshold, keep_top, protect)


def test_protect_words_keeps_every_word_translatable(model_folder, tmp_path):
    table = TABLES["seven fields"]
    kept = prune(write(tmp_path / "t", table), model_folder, "-t", "1", "--keep-top", "1", "--protect", "words").out
    words = {line.source.strip() for line in naive.parse_table(table)[0] if len(line.source.split()) == 1}
    assert {line.source.strip() for line in naive.parse_table(kept)[0]} >= words
    # Such a source keeps only the entry with the best mean, and entries without a score.
    assert [line.source for line in naive.parse_table(kept)[0]].count(b"ist ") < 3


def big_table(lines=2000):
    """Return a table of many distinct phrase pairs that all have a score."""
    import random

    rng = random.Random(5)
    rows = set()
    while len(rows) < lines:
        source = b" ".join(rng.choices(SOURCE_WORDS[1:6], k=rng.randint(1, 5)))
        target = b" ".join(rng.choices(TARGET_WORDS[1:6], k=rng.randint(1, 5)))
        rows.add((source, target))
    return b"".join(seven_fields(rng, *row) + b"\n" for row in sorted(rows))


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    return write(tmp_path_factory.mktemp("big") / "big.gz", big_table())


RULE = ("-t", "0.35", "--keep-top", "2")


def test_saved_scores_give_the_same_table(model_folder, big, tmp_path):
    expected = prune(big, model_folder, *RULE)
    assert 100 < expected.out.count(b"\n") < 1900
    scores = tmp_path / "scores.parquet"
    first = prune(big, model_folder, *RULE, "--similarities", scores, "--stats", tmp_path / "a", "--block-bytes", 3000)
    kept = scores.read_bytes()
    nowhere = tmp_path / "no-model"
    second = prune(
        big, nowhere, *RULE, "--similarities", scores, "--stats", tmp_path / "b", "--block-bytes", 500, "--threads", 2
    )
    assert first.out == second.out == expected.out
    assert scores.read_bytes() == kept
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    # Another threshold from the same file.
    outcome = prune(big, nowhere, "-t", "0.6", "--keep-top", "0", "--similarities", scores)
    assert outcome.out == prune(big, model_folder, "-t", "0.6", "--keep-top", "0").out
    assert pq.ParquetFile(scores).metadata.num_rows == 2000


@pytest.mark.parametrize("name", ["seven fields", "lexicalised", "groups that come back", "no spaces", "tags"])
@pytest.mark.parametrize("rule", [RULE, ("-t", "0.6", "--keep-top", "1", "--protect", "words")])
def test_saved_scores_apply_to_unchanged_and_to_changed_lines(model_folder, tmp_path, name, rule):
    """Saved scores apply to the same table, to other columns of the same pairs, and to a table with a changed line."""
    table, scores = write(tmp_path / "t", TABLES[name]), tmp_path / "scores"
    prune(table, model_folder, *rule, "--force", "--similarities", scores, "-o", tmp_path / "out", "--block-bytes", 400)
    lines = naive.split_lines(TABLES[name])
    head, _, last = lines[-1].rpartition(b" ||| ")
    changed = write(tmp_path / "changed", b"".join([*lines[:-1], head + b" |||  " + last]))
    annotated = tmp_path / "annotated"
    assert run_inside("annotate", table, "-m", model_folder, "-o", annotated, "-q", "--force").code == 0
    for path in (table, changed, annotated):
        expected = prune(path, model_folder, *rule, "--force", "--stats", tmp_path / "a")
        for size in (400, 700, 1 << 21):
            more = ("--force", "--block-bytes", size, "--threads", 2, "--stats", tmp_path / "b")
            result = prune(path, tmp_path / "none", *rule, *more, "--similarities", scores)
            assert (result.code, result.out) == (expected.code, expected.out)
            assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("on_error", ["keep", "skip"])
def test_saved_scores_of_a_table_with_malformed_lines(model_folder, tmp_path, on_error):
    table, scores = write(tmp_path / "t", MALFORMED * 3), tmp_path / "s"
    options = ("-t", "0.9", "--keep-top", "1", "--on-error", on_error)
    expected = prune(table, model_folder, *options)
    assert expected.out
    for _ in range(2):
        assert prune(table, tmp_path / "none", *options, "--similarities", scores).code == (0 if scores.exists() else 1)
        assert prune(table, model_folder, *options, "--similarities", scores).out == expected.out


@pytest.fixture
def scores(model_folder, tmp_path):
    path = tmp_path / "scores.parquet"
    table = write(tmp_path / "scored", TABLES["seven fields"])
    assert prune(table, model_folder, *RULE, "--similarities", path, "-o", tmp_path / "out").code == 0
    return path


@pytest.mark.parametrize("block", [300, 1 << 21])
@pytest.mark.parametrize("change", ["other", "fewer rows", "more rows", "one word", "order"])
def test_saved_scores_of_another_table(model_folder, tmp_path, scores, change, block):
    lines = naive.split_lines(TABLES["seven fields"])
    changed, wrong = {
        "other": (naive.split_lines(TABLES["tags"]), 1),
        "fewer rows": ([*lines, lines[-1]], len(lines) + 1),
        "more rows": (lines[:-1], None),
        "one word": ([*lines[:50], lines[50].replace(b" ||| ", b"s ||| ", 1), *lines[51:]], 51),
        "order": ([*lines[:70], lines[71], lines[70], *lines[72:]], 71),
    }[change]
    table, out = write(tmp_path / "t", b"".join(changed)), tmp_path / "new"
    outcome = prune(table, model_folder, *RULE, "--similarities", scores, "-o", out, "--block-bytes", block)
    assert outcome.code == 1
    assert str(scores) in outcome.message
    assert str(table) in outcome.message
    if wrong:
        assert outcome.message.startswith(f"phrasetool: {table}:{wrong}: ")
    assert not out.exists()


def test_damaged_files_of_saved_scores(model_folder, tmp_path, scores):
    table = write(tmp_path / "t", TABLES["seven fields"])
    whole = scores.read_bytes()
    for data in (
        b"",
        b"das ||| the ||| 0.5\n",
        whole[:-1],
        whole[: len(whole) // 2],
        whole[:4] + b"\xff" * 40 + whole[44:],
    ):
        scores.write_bytes(data)
        outcome = prune(table, model_folder, *RULE, "--similarities", scores, "-o", tmp_path / "new")
        assert outcome.code == 1
        assert str(scores) in outcome.message
        assert not (tmp_path / "new").exists()


def test_failed_run_leaves_no_scores(model_folder, tmp_path):
    table = write(tmp_path / "t", TABLES["lattice"] + b"bad\n")
    outputs = ["o", "r", "s.json", "p.parquet"]
    options = zip(["-o", "--rejected", "--stats", "--similarities"], outputs, strict=True)
    outcome = prune(table, model_folder, *RULE, *(part for flag, name in options for part in (flag, tmp_path / name)))
    assert outcome.code == 1
    assert f"{table}:4: " in outcome.message
    assert os.listdir(tmp_path) == ["t"]


@pytest.mark.parametrize("scale", ["exp", "probability"])
def test_columns_give_the_table_of_the_model(model_folder, tmp_path, big, scale, model):
    table = read(big)
    annotated = tmp_path / "annotated"
    assert run_inside("annotate", big, "-m", model_folder, "-q", "--scale", scale, "-o", annotated).code == 0
    similarities = naive_scores(model, table)[2].max(axis=1)
    used = 0
    for threshold in np.linspace(-0.9, 0.9, 13):
        if np.abs(similarities - threshold).min() < 2e-5:
            continue
        used += 1
        # keep-top 0, because columns of six decimals do not determine the order of the best entries.
        rule = ("-t", threshold, "--keep-top", "0")
        by_columns = run_inside("prune", annotated, "-q", *rule, "--similarity-columns", "5,6", "--scale", scale)
        assert by_columns.code == 0
        assert naive.cut_columns(by_columns.out, 2) == prune(big, model_folder, *rule).out
    assert used > 3
    swapped = run_inside(
        "prune", annotated, "-q", "-t", "0.3", "--keep-top", "0", "--similarity-columns", "6,5", "--scale", scale
    )
    straight = run_inside(
        "prune", annotated, "-q", "-t", "0.3", "--keep-top", "0", "--similarity-columns", "5,6", "--scale", scale
    )
    assert swapped.out == straight.out


def test_columns_with_the_best_k(tmp_path):
    # Moses' own scores, read as similarities; column 3 reverses the order of column 1.
    table = write(tmp_path / "t", b"".join(b"das ||| w%d ||| 0.%d 0.9 0.%d\n" % (i, i, 9 - i) for i in range(10)))
    outcome = run_inside(
        "prune", table, "-q", "-t", "0.95", "--keep-top", "3", "--similarity-columns", "1,2", "--scale", "raw"
    )
    assert [line.split()[2] for line in outcome.out.splitlines()] == [b"w7", b"w8", b"w9"]
    outcome = run_inside(
        "prune", table, "-q", "-t", "0.95", "--keep-top", "3", "--similarity-columns", "3,2", "--scale", "raw"
    )
    assert [line.split()[2] for line in outcome.out.splitlines()] == [b"w0", b"w1", b"w2"]


@pytest.mark.parametrize(
    ("scale", "good", "bad", "message"),
    [
        (
            "exp",
            ("0.135335", "1"),
            ("2.718", "0.5"),
            "score 5 is 2.718; a similarity on the scale exp lies between 0.135",
        ),
        ("exp", ("0.2", "0.9"), ("0.9", "0.1"), "score 6 is 0.1; a similarity on the scale exp lies between 0.135335"),
        ("probability", ("0", "1"), ("1.001", "0"), "score 5 is 1.001; a similarity on the scale probability lies"),
        ("raw", ("-1", "1"), ("0", "-1.001"), "score 6 is -1.001; a similarity on the scale raw lies between -1 and 1"),
    ],
)
def test_columns_with_values_that_no_similarity_has(tmp_path, scale, good, bad, message):
    def table(*rows):
        lines = (f"a {i} ||| x ||| 0.9 0.9 0.9 0.9 {' '.join(row)} ||| 0-0 ||| 1 1 1\n" for i, row in enumerate(rows))
        return write(tmp_path / "t", "".join(lines).encode())

    prune = ("prune", "-t", "-1", "--similarity-columns", "5,6", "--scale", scale, "--protect", "none", "-q")
    whole = table(good, good)
    assert run_inside(*prune, whole).out == read(whole)
    name = table(good, good, bad)
    outcome = run_inside(*prune, name, "--block-bytes", "60", "-o", tmp_path / "out")
    assert (outcome.code, outcome.message.startswith(f"phrasetool: {name}:3: {message}")) == (1, True), outcome.err
    columns = ("--similarity-columns", "5,6", "--scale", scale)
    lexicon = run_inside("export", name, "--to", "lexicon", "--min-probability", 0, *columns, "-o", tmp_path / "out")
    assert (lexicon.code, f":3: {message}" in lexicon.message) == (1, True), lexicon.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("columns", ["7,8", "1,5", "5,1"])
def test_missing_columns(tmp_path, columns):
    table = write(tmp_path / "t", TABLES["seven fields"])
    outcome = run_inside("prune", table, "-q", "-t", "0.5", "--similarity-columns", columns, "-o", tmp_path / "o")
    assert outcome.code in (1, 2)
    assert "Traceback" not in outcome.err
    assert max(columns.split(",")) in outcome.err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "options", [("--keep-top", "0"), ("--keep-top", "3"), ("--protect", "words", "--keep-top", "1")], ids=str
)
def test_sweep_counts_are_sizes_of_prunes(model_folder, big, options):
    swept = prune(big, model_folder, "--sweep", "-0.2:0.8:0.2", *options)
    header, *rows = [line.split("\t") for line in swept.out.decode().splitlines()]
    assert header == ["threshold", "entries", "share"]
    assert [row[0] for row in rows] == ["-0.2", "0", "0.2", "0.4", "0.6", "0.8"]
    for threshold, entries, share in rows:
        out = prune(big, model_folder, "-t", threshold, *options).out
        assert int(entries) == out.count(b"\n")
        assert float(share) == pytest.approx(int(entries) / 2000, abs=5.1e-5)


def test_sweep_saves_scores(model_folder, big, tmp_path):
    scores = tmp_path / "s.parquet"
    swept = prune(big, model_folder, "--sweep", "0:1:0.5", "--similarities", scores)
    again = prune(big, tmp_path / "none", "--sweep", "0:1:0.5", "--similarities", scores)
    assert swept.out == again.out
    assert os.listdir(tmp_path) == ["s.parquet"]


def test_the_reported_threshold_of_a_size_is_the_one_that_was_used(tmp_path):
    rows = [f"s{i} ||| t ||| {0.8 if i < 6 else 0.9}00 0.500\n" for i in range(9)]
    table = write(tmp_path / "t", "".join(rows).encode())
    options = ("--similarity-columns", "1,2", "--scale", "raw", "--protect", "none")
    sized = run_inside("prune", table, *options, "--target-size", "0.5", "--stats", tmp_path / "stats")
    assert sized.out.decode() == "".join(rows[6:])
    reported = re.search(r"threshold (\S+) leaves at most 50.0%", sized.err)[1]
    assert f"|rule:t{reported}+" in json.loads((tmp_path / "stats").read_text())["signature"]
    assert run_inside("prune", table, *options, "-t", reported, "-q").out == sized.out


def test_an_unsorted_small_table_causes_one_warning(tmp_path):
    lines = b"a ||| x ||| 0.8 0.8\nb ||| x ||| 0.7 0.7\na ||| y ||| 0.6 0.6\n"
    options = ("--similarity-columns", "1,2", "--scale", "raw", "--target-size", "1")
    outcome = run_inside("prune", write(tmp_path / "t", lines), *options)
    assert (outcome.code, outcome.err.count("the source 'a' occurs again")) == (0, 1), outcome.err


@pytest.mark.parametrize("share", [0.05, 0.3, 0.777, 0.999])
@pytest.mark.parametrize("source", ["model", "new scores", "scores", "columns"])
def test_target_size(model_folder, big, tmp_path, share, source):
    table, out, scores = big, tmp_path / "out", tmp_path / "scores"
    options, model = [], model_folder
    if source == "columns":
        table = tmp_path / "annotated"
        run_inside("annotate", big, "-m", model_folder, "-q", "-o", table)
        options, model = ["--similarity-columns", "5,6"], None
    elif source != "model":
        options = ["--similarities", scores]
        if source == "scores":
            prune(big, model_folder, "--sweep", "0:1:1", "--similarities", scores)
    outcome = prune(table, model, "--target-size", share, "--keep-top", "0", "-o", out, *options)
    assert outcome.code == 0
    kept = out.read_bytes().count(b"\n")
    assert kept <= share * 2000
    # Few similarities are equal, so the share is met almost exactly.
    strengths = sorted({round(float(line.split(b"|||")[2].split()[0]), 9) for line in out.read_bytes().splitlines()})
    assert strengths
    assert kept >= share * 2000 - (25 if source == "columns" else 2)
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []
    assert scores.exists() == ("scores" in source)


def test_target_size_is_the_largest_that_fits(model, model_folder, big, tmp_path):
    strengths = np.sort(naive_scores(model, read(big))[2].max(axis=1).astype(np.float64))
    for share in (0.1, 0.5, 0.9):
        kept = prune(big, model_folder, "--target-size", share, "--keep-top", "0").out.count(b"\n")
        allowed = int(share * 2000)
        assert kept <= allowed
        # Adding the entries with the next lower strength (equal to six decimals) would exceed the allowed number.
        following = strengths[-kept - 1]
        assert kept + int((np.abs(strengths[: -kept or None] - following) < 2e-6).sum()) > allowed


def test_target_that_cannot_be_met(model_folder, big, tmp_path):
    rule = ("--keep-top", "2", "--protect", "all")
    outcome = prune(big, model_folder, "--target-size", "0.01", *rule, "-o", tmp_path / "o")
    assert outcome.code == 1
    smallest = prune(big, model_folder, "-t", "1", "--keep-top", "2").out.count(b"\n")
    assert f"{smallest:,} of 2,000 entries ({smallest / 2000:.1%})" in outcome.message
    assert str(big) in outcome.message
    assert not list(tmp_path.iterdir())


def check_statistics(report, lines, kept, removed):
    assert report["schema_version"] == 1
    assert report["signature"].startswith("model:rae-")
    assert report["entries"] == lines
    assert report["kept"] == kept
    assert sum(report["removed"].values()) == removed
    assert report["kept"] + sum(report["removed"].values()) + report["malformed"]["skipped"] == report["entries"]
    lengths = report["by_source_length"].values()
    assert sum(row["entries"] for row in lengths) == report["entries"]
    assert sum(row["kept"] for row in lengths) == report["kept"]


@pytest.mark.parametrize("on_error", ["skip", "keep"])
def test_statistics(model_folder, tmp_path, on_error):
    data = TABLES["seven fields"] + MALFORMED.replace(b"0.5 0.25", b"0.5 0.25 1 1") + b"qq ||| the ||| 1 1 1 1\n"
    table = write(tmp_path / "t", data)
    lines = naive.split_lines(data)

    def run(name, *options):
        stats, rejected = tmp_path / name, tmp_path / "gone"
        outcome = prune(
            table,
            model_folder,
            "-t",
            "0.3",
            "--keep-top",
            "2",
            "--force",
            "--on-error",
            on_error,
            "--stats",
            stats,
            "--rejected",
            rejected,
            *options,
        )
        assert outcome.code == 0
        return stats.read_bytes(), outcome.out.count(b"\n"), read(rejected).count(b"\n")

    text, kept, removed = run("a")
    report = json.loads(text)
    check_statistics(report, len(lines), kept, removed)
    assert removed > 10
    assert report["protected_by_best_k"] > 5
    malformed = sum(line.fault != "ok" for line in naive.parse_table(data, 4)[0])
    assert malformed >= len(MALFORMED_LINES)
    assert report["malformed"] == {
        "kept": malformed * (on_error == "keep"),
        "skipped": malformed * (on_error == "skip"),
    }
    assert report["sources"] == len(naive.parse_table(data)[1]) - 1
    assert "rule:t0.3+k2+all" in report["signature"]
    assert run("b")[0] == text
    assert run("c", "--threads", 2, "--block-bytes", 300)[0] == text


def test_statistics_of_unknown_phrases(model_folder, tmp_path):
    table = write(tmp_path / "t", b"qq ||| the ||| 1\nqq ||| zz ||| 1\ndas ||| zz ||| 1\ndas ||| the ||| 1\n")
    result = prune(table, model_folder, "-t", "1", "--keep-top", "0", "--stats", tmp_path / "s")
    assert result.out == b"qq ||| the ||| 1\nqq ||| zz ||| 1\ndas ||| zz ||| 1\n"
    report = json.loads((tmp_path / "s").read_text())
    assert report["unscored"] == 3
    assert report["removed"] == {"below_threshold": 1}


def test_messages(model_folder, tmp_path):
    table = write(tmp_path / "t", MALFORMED)
    outcome = run_inside(
        "prune", table, "-m", model_folder, "-t", "0.99", "--keep-top", "1", "--on-error", "skip", "-o", os.devnull
    )
    assert "kept 2 of 9 entries (22.2%)" in outcome.err
    assert "7 malformed lines were left out" in outcome.err
    assert all(line.startswith("phrasetool: ") for line in outcome.err.splitlines())
    assert "signature model:rae-" in outcome.err


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-t", "0.5", "--sweep", "0:1:1"),
        ("-t", "0.5", "--target-size", "0.5"),
        ("-t", "half"),
        ("-t",),
        ("-t", "0.5", "--keep-top", "-1"),
        ("-t", "0.5", "--protect", "some"),
        ("--target-size", "0"),
        ("--target-size", "1.5"),
        ("--sweep", "0:1"),
        ("--sweep", "1:0:0.1"),
        ("--sweep", "0:1:0"),
        ("--sweep", "a:b:c"),
        ("--sweep", "0:1:-1"),
        ("--sweep", "nan:1:1"),
        ("--sweep", "0:inf:1"),
        ("--sweep", "0:1:1e-9"),
        ("--sweep", "0:1:1", "-o", "x"),
        ("--sweep", "0:1:1", "--stats", "x"),
        ("-t", "0.5", "--similarity-columns", "0,1"),
        ("-t", "0.5", "--similarity-columns", "1"),
        ("-t", "0.5", "--similarity-columns", "1,2,3"),
        ("-t", "0.5", "--similarity-columns", "a,b"),
        ("-t", "0.5", "--similarity-columns", "1,2", "--similarities", "x"),
        ("-t", "0.5", "--scale", "log"),
        ("-t", "0.5", "--threads", "0"),
        ("-t", "0.5", "--block-bytes", "0"),
        ("-t", "0.5", "--on-error", "ignore"),
        ("-t", "0.5", "--no-such-option"),
        ("-t", "0.5", "another-table"),
        ("-t", "nan"),
        ("--target-size", "nan"),
        ("-t", "0.5", "--similarity-columns", "1,\u00b2"),
    ],
    ids=" ".join,
)
def test_bad_usage(model_folder, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "t", TABLES["lattice"])
    outcome = prune(table, model_folder, *options)
    assert outcome.code == 2
    assert outcome.out == b""
    assert outcome.message.startswith("phrasetool: ")
    assert os.listdir(tmp_path) == ["t"]


def test_target_size_of_standard_input(model_folder):
    outcome = run_inside("prune", "-m", model_folder, "--target-size", "0.5", stdin=TABLES["lattice"])
    assert outcome.code == 2
    assert "standard input" in outcome.err


@pytest.mark.parametrize("flag", ["-o", "--rejected", "--stats", "--similarities"])
@pytest.mark.parametrize("link", [False, True])
def test_output_over_the_input(model_folder, tmp_path, flag, link):
    table = write(tmp_path / "t", TABLES["lattice"])
    (tmp_path / "link").symlink_to(table)
    outcome = prune(table, model_folder, "-t", "0.5", flag, tmp_path / "link" if link else table)
    assert outcome.code == 1
    outcome.message
    assert table.read_bytes() == TABLES["lattice"]


@for_each("second", ["same", "./same", "sub/../same"])
@for_each("flag", ["--rejected", "--stats", "--similarities"])
def test_two_outputs_in_one_file(model_folder, tmp_path, monkeypatch, flag, second):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    table = write(tmp_path / "t", TABLES["lattice"])
    outcome = prune(table, model_folder, "-t", "0.5", "-o", "same", flag, second)
    assert outcome.code == 1
    assert "two outputs" in outcome.message
    assert not (tmp_path / "same").exists()


def test_two_outputs_to_standard_output(model_folder, tmp_path):
    table = write(tmp_path / "t", TABLES["lattice"])
    assert "two outputs" in prune(table, model_folder, "-t", "0.5", "--rejected", "-").message


def test_an_output_over_the_saved_scores(model_folder, tmp_path, scores):
    table = tmp_path / "scored"
    before = scores.read_bytes()
    outcome = prune(table, model_folder, "-t", "0.5", "--similarities", scores, "-o", scores)
    assert outcome.code == 1
    outcome.message
    assert scores.read_bytes() == before


def test_empty_tables(model_folder, tmp_path):
    table = write(tmp_path / "t", b"")
    for options in (("-t", "0.5"), ("--target-size", "0.5")):
        refused = prune(table, model_folder, *options, "-o", tmp_path / "o.gz", "--stats", tmp_path / "s")
        assert refused.code == 1
        assert refused.message.endswith("t: is empty; expected a phrase table; --allow-empty continues anyway")
        assert not (tmp_path / "o.gz").exists()
        options += ("--allow-empty",)
        outcome = prune(table, model_folder, *options, "-o", tmp_path / "o.gz", "--stats", tmp_path / "s")
        assert outcome.code == 0
        assert read(tmp_path / "o.gz") == b""
        assert json.loads((tmp_path / "s").read_text())["entries"] == 0
        (tmp_path / "o.gz").unlink()


def test_model_is_read_only_when_needed(model_folder, tmp_path, monkeypatch):
    folder = shutil.copytree(model_folder, tmp_path / "broken")
    (folder / "config.json").write_text("{")
    table = write(tmp_path / "t", TABLES["lattice"])
    assert run_inside("prune", table, "-m", folder, "-t", "0", "-q").code == 1
    monkeypatch.setenv("PHRASETOOL_MODEL", str(folder))
    assert run_inside("prune", table, "-t", "0", "-q").code == 1
    assert run_inside("prune", table, "-t", "0", "-q", "--similarity-columns", "1,2", "--scale", "raw").code == 0


@pytest.mark.parametrize("rule", [("-t", "7"), ("-t", "-1.5"), ("--sweep", "0:2:0.5"), ("--method", "semantic:7")])
def test_thresholds_outside_of_similarities(model_folder, tmp_path, rule):
    outcome = prune(write(tmp_path / "t", TABLES["lattice"]), model_folder, *rule)
    assert (outcome.code, outcome.out) == (2, b"")
    assert "is outside the range of semantic, -1 to 1" in outcome.message


def test_messages_about_protection(model_folder, tmp_path):
    table = write(tmp_path / "t", TABLES["lattice"])
    free = run_inside(
        "prune", table, "-m", model_folder, "-t", "1", "--keep-top", "0", "--json", tmp_path / "free.json"
    )
    expected = json.loads((tmp_path / "free.json").read_text())["removed"]["below_threshold"]
    assert "protection" not in free.err
    outcome = run_inside("prune", table, "-m", model_folder, "-t", "1")
    assert outcome.out == TABLES["lattice"]
    # No source has more than ten entries.
    entries = TABLES["lattice"].count(b"\n")
    assert f"  {entries:,} kept unscored: their sources have no more than 10 entries" in outcome.err
    assert f"protection (the 10 best of every source) leaves 0 of {entries:,} entries to the threshold" in outcome.err
    # With --json, all entries are scored and counted.
    outcome = run_inside("prune", table, "-m", model_folder, "-t", "1", "--json", tmp_path / "counts.json")
    assert json.loads((tmp_path / "counts.json").read_text())["protected_by_best_k"] == expected
    assert "unscored" not in outcome.err
    assert (
        f"  {expected:,} of {expected:,} below the threshold were kept as one of the best of their source"
        in outcome.err
    )
    assert "protection (the 10 best of every source) kept 100.0% of the entries below the threshold" in outcome.err
    assert "--protect words protects those of one-word sources only" in outcome.err
    # With --protect words, the message does not suggest this option.
    outcome = run_inside("prune", table, "-m", model_folder, "-t", "1", "--protect", "words")
    assert "--protect words" not in outcome.err


def test_messages_about_protection_in_a_sweep(model_folder, tmp_path):
    table = write(tmp_path / "t", TABLES["lattice"])
    outcome = run_inside("prune", table, "-m", model_folder, "--sweep", "0:1:1", "--json", tmp_path / "found.json")
    report = json.loads((tmp_path / "found.json").read_text())
    last = report["thresholds"][-1]
    assert last["protected"] == last["below_threshold"] > 0
    assert last["kept"] == report["entries"] == TABLES["lattice"].count(b"\n")
    assert f"of {last['protected']:,} entries below 1, {last['protected']:,} are kept" in outcome.err
    assert "--protect words" in outcome.err
    assert run_inside("prune", table, "-m", model_folder, "--sweep", "0:1:1", "-q").err == ""
    printed = run_inside("prune", table, "-m", model_folder, "--sweep", "0:1:1", "--json", "-")
    assert json.loads(printed.out) == report


def test_dry_run(model_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "t", TABLES["lattice"])
    write(tmp_path / "r", TABLES["reordering"])
    write(tmp_path / "out", b"old")
    files = ("--rejected", "x", "--reasons", "y", "--stats", "z", "--similarities", "s", "--reordering-table", "r",
             "--reordering-out", "o", "-o", "out")  # fmt: skip
    # --force, because no line of the reordering table is of a pair that is kept.
    rule = ("--target-size", "50%", "--keep-top", "0", "--force")
    dry_run = run_inside("prune", table, "-m", model_folder, *rule, *files, "--dry-run", "--json", "-")
    assert dry_run.code == 0, dry_run.err
    assert dry_run.err.splitlines()[-1] == "phrasetool: dry run: nothing was written"
    assert sorted(os.listdir()) == ["out", "r", "t"]
    assert read(tmp_path / "out") == b"old"
    outcome = run_inside("prune", table, "-m", model_folder, *rule, *files)
    messages = [line for line in dry_run.err.splitlines() if "dry run" not in line]
    assert messages == outcome.err.splitlines()
    assert json.loads(dry_run.out) == json.loads((tmp_path / "z").read_text())


def test_protection_for_a_size(tmp_path):
    """By default, words are protected, as far as that fits the size; only explicit protection is refused."""
    rows = [f"a ||| x{i:02} ||| 0.{90 - i} 0.{90 - i}\n" for i in range(40)]
    rows += [f"b c{i:02} ||| y ||| 0.{10 + i} 0.{10 + i}\n" for i in range(20)]
    table = write(tmp_path / "t", "".join(rows).encode())
    cut = ("--similarity-columns", "1,2", "--scale", "raw")
    for share in ("0.4", "0.6"):
        outcome = run_inside("prune", table, *cut, "--target-size", share)
        # The most similar entries are those of the word, so protection changes nothing.
        assert (outcome.code, outcome.out.decode()) == (0, "".join(rows[: int(60 * float(share))])), share
        assert "always kept: the 10 best of every one-word source" in outcome.err
        assert "+k10+words|" in outcome.err
    # Three fifths of 6 entries are 3.
    assert "always kept: the 3 best of every one-word source" in run_inside(
        "prune", table, *cut, "--target-size", "0.1"
    ).err  # fmt: skip
    everything = run_inside("prune", table, *cut, "--target-size", "0.6", "--protect", "all", "--keep-top", "10")
    assert everything.out.decode() == "".join([*rows[:16], *rows[40:]])
    for protection in (("--protect", "all"), ("--keep-top", "10")):
        refused = run_inside("prune", table, *cut, "--target-size", "0.1", *protection, "-q", "-o", tmp_path / "o")
        assert (refused.code, "kept at any threshold" in refused.message) == (1, True), protection


def test_a_similarity_equal_to_the_threshold_is_kept(tmp_path):
    """0.7 is below the double-precision 0.7 in single precision."""
    table = write(tmp_path / "t", b"a ||| u ||| 0.7 0.7\na ||| v ||| 0.69 0.69\n")
    cut = ("--similarity-columns", "1,2", "--scale", "raw", "--protect", "none")
    assert run_inside("prune", table, *cut, "-t", "0.7").out == b"a ||| u ||| 0.7 0.7\n"
    swept = run_inside("prune", table, *cut, "--sweep", "0.7:0.7:0.1", "--json", "-")
    assert [row["kept"] for row in json.loads(swept.out)["thresholds"]] == [1]


def test_a_size_does_not_count_malformed_lines_that_are_skipped(tmp_path):
    rows = [f"s{i} t ||| x ||| 0.{i}5 0.{i}5 0.5 0.5 ||| 0-0 ||| 9 9 {i} ||| |||\n" for i in range(1, 6)]
    table = write(tmp_path / "t", ("".join(rows) + "z ||| x ||| 0.5 0.5\n" * 5).encode())
    for method in (("--method", "count"), ("--similarity-columns", "1,2", "--scale", "raw")):
        command = ("prune", table, *method, "--target-size", "0.4")
        skipped = run_inside(*command, "--on-error", "skip")
        assert skipped.out.decode() == "".join(rows[-2:]), method
        # Lines that are kept count, because they are written.
        kept = run_inside(*command, "--on-error", "keep", "--protect", "none")
        assert (kept.code, "5 of 10 entries (50.0%) are kept" in kept.message) == (1, True), kept
