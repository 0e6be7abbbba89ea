"""`phrasetool annotate --forced-pairs`: phrase probabilities from the counts of forced decoding."""

import random

import pytest

from moses_compat.ini.reading import read_moses_ini
from tests import naive
from tests.commands import read, run_inside, write
from tests.naive_reordering import pair
from tests.tables import INI, MALFORMED, MALFORMED_LINES, TABLES, seven_fields
from tests.test_promise import WAYS

PAIRS = (
    b"das ||| the ||| 3\ndas\t||| house ||| 1\nhaus ||| house\nist ||| is ||| 2\n das  |||the||| 2\nnie ||| a ||| 9\n"
)
# Values of p(f|e) and p(e|f) that training never produces, and very small ones.
EXTREME = (
    b"das ||| the ||| 1 1 0 1 ||| 0-0\r\n"
    b"das ||| house ||| 0 1 1e-9 1\n"
    b"neu ||| new|x ||| 1.5e-5 1 2.34567891e-05 1 ||| \n"
    b"neu ||| neuer ||| 7 1 inf 1\n"
)


@pytest.fixture
def pairs(tmp_path):
    return write(tmp_path / "forced.gz", PAIRS)


def annotate(table, pairs, *options):
    return run_inside(
        "annotate", table, "--forced-pairs", pairs, "--smoothing", "none", "-q", "--allow-empty", *options
    )


def naive_columns(table, data=PAIRS):
    """Return the two columns of each line; None for a malformed line."""
    joint, source_uses, target_uses = {}, {}, {}
    for line in data.splitlines():
        fields = line.split(b"|||")
        source, target = tuple(fields[0].split()), tuple(fields[1].split())
        count = int(fields[2]) if len(fields) > 2 else 1
        for uses, key in ((joint, (source, target)), (source_uses, source), (target_uses, target)):
            uses[key] = uses.get(key, 0) + count
    columns = []
    for line in naive.parse_table(table, naive.first_score_count(table))[0]:
        if line.fault != "ok":
            columns.append(None)
            continue
        scores = [float(score) for score in table[line.start : line.end].split(b"|||")[2].split()]
        key = pair(line)
        used = joint.get(key, 0)
        values = [
            (used + scores[2]) / (source_uses.get(key[0], 0) + 1),
            (used + scores[0]) / (target_uses.get(key[1], 0) + 1),
        ]
        columns.append([min(max(value, 1e-6), 1) for value in values])
    return columns


def equal_in_six_digits(texts, values):
    """Return whether these are the values in six digits; halves of the last digit may be rounded either way."""
    return len(texts) == len(values) and all(
        text in {b"%g" % (value * (1 + nudge)) for nudge in (-1e-15, 0, 1e-15)}
        for text, value in zip(texts, values, strict=True)
    )


def check_columns(annotated, table):
    for texts, values in zip(written_columns(annotated), naive_columns(table), strict=True):
        assert equal_in_six_digits(texts, values)


def written_columns(annotated):
    return [line.split(b"|||")[2].split()[-2:] for line in naive.split_lines(annotated)]


def big_table():
    rng = random.Random(1)
    sources, targets = [b"das", b"haus", b"das haus", b"ist", b"nie"], [b"the", b"house", b"the house", b"is", b"a"]
    return b"".join(seven_fields(rng, s, t) + b"\n" for s in sources for t in targets for _ in range(9))


@pytest.mark.parametrize("table", [TABLES["seven fields"], EXTREME, big_table(), b""],
                         ids=["seven fields", "extreme", "big", "empty"])  # fmt: skip
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_columns_are_as_the_formula_says(table, pairs, tmp_path, way):
    ending, options = way
    source, out = write(tmp_path / f"in{ending}", table), tmp_path / f"out{ending}"
    assert annotate(source, pairs, "-o", out, *options).code == 0
    annotated = read(out)
    assert naive.cut_columns(annotated, 2) == table
    check_columns(annotated, table)
    piped = run_inside(
        "annotate",
        "-",
        "--forced-pairs",
        pairs,
        "--smoothing",
        "none",
        "-q",
        "--allow-empty",
        *options,
        stdin=source.read_bytes(),
    )
    assert (piped.code, piped.out) == (0, annotated)


def test_small_probabilities_are_not_0(pairs, tmp_path):
    table = write(tmp_path / "t", EXTREME)
    assert written_columns(annotate(table, pairs, "-o", "-").out) == [
        [b"0.714286", b"1"], [b"0.142857", b"0.333333"], [b"2.34568e-05", b"1.5e-05"], [b"1", b"1"],
    ]  # fmt: skip
    # Forced decoding used no entry: the columns are the table's own probabilities, but at least 1e-6.
    other_pairs = write(tmp_path / "other", b"x ||| y\n")
    assert written_columns(annotate(table, other_pairs, "-o", "-").out)[:2] == [[b"1e-06", b"1"], [b"1e-06", b"1e-06"]]


def test_similarities_come_first(model_folder, pairs, tmp_path):
    table = write(tmp_path / "t", TABLES["seven fields"])
    both = annotate(table, pairs, "-o", "-", "-m", model_folder, "-m", model_folder).out
    alone = annotate(table, pairs, "-o", "-").out
    similar = run_inside("annotate", table, "-q", "-o", "-", "-m", model_folder, "-m", model_folder).out
    assert naive.cut_columns(both, 6) == TABLES["seven fields"]
    assert naive.cut_columns(both, 2) == similar
    assert written_columns(both) == written_columns(alone)


def test_no_model_is_needed_or_loaded(pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("PHRASETOOL_MODEL", str(tmp_path / "nowhere"))
    table = write(tmp_path / "t", TABLES["seven fields"])
    outcome = run_inside("annotate", table, "--forced-pairs", pairs, "--smoothing", "none")
    assert outcome.code == 0
    assert "entries; " not in outcome.err
    assert "forced decoding used " in outcome.err
    assert "6 scores instead of 4" in outcome.err
    check_columns(read(tmp_path / "t.annotated.gz"), TABLES["seven fields"])
    other_pairs = write(tmp_path / "p", b"x ||| y\n")
    unused = run_inside("annotate", table, "--forced-pairs", other_pairs, "--smoothing", "none", "-o", tmp_path / "out")
    assert unused.code == 1
    assert f"{other_pairs}: none of its pairs with a count above 0 is in {table}" in unused.err
    assert not (tmp_path / "out").exists()
    assert (
        run_inside(
            "annotate", table, "--forced-pairs", other_pairs, "--smoothing", "none", "-o", tmp_path / "out", "--force"
        ).code
        == 0
    )


def test_a_table_as_forced_pairs_provides_its_joint_counts(tmp_path):
    table = write(tmp_path / "t", b"a ||| b ||| 0.5 1 0.25 1 ||| 0-0 ||| 4 8 2 ||| |||\n")
    assert written_columns(annotate(table, table, "-o", "-").out) == [[b"0.75", b"0.833333"]]


def test_malformed_lines(pairs, tmp_path):
    table = MALFORMED.replace(b" 0.25", b" 0.25 0.125 1")
    source = write(tmp_path / "t", table)
    failed = annotate(source, pairs, "-o", tmp_path / "o")
    assert failed.code == 1
    assert failed.message.startswith(f"phrasetool: {source}:2: ")
    kept = annotate(source, pairs, "-o", "-", "--on-error", "keep").out
    lines = zip(naive.split_lines(table), naive.split_lines(kept), naive_columns(table), strict=True)
    for number, (before, after, columns) in enumerate(lines, 1):
        assert (columns is None) == (number in MALFORMED_LINES)
        assert (naive.cut_columns(after, 2) if columns else after) == before
        assert not columns or equal_in_six_digits(after.split(b"|||")[2].split()[-2:], columns)
    skipped = annotate(source, pairs, "-o", "-", "--on-error", "skip").out
    good = [line for line, columns in zip(naive.split_lines(kept), naive_columns(table), strict=True) if columns]
    assert naive.split_lines(skipped) == good
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forced.gz", "t"]


@pytest.mark.parametrize("scores", [1, 3])
def test_too_few_scores(pairs, tmp_path, scores):
    table = write(tmp_path / "t", b"a ||| b |||" + b" 0.5" * scores + b"\n")
    failed = annotate(table, pairs, "-o", tmp_path / "o")
    assert failed.code == 1
    assert f"{table}:1: the entries have {scores} scores; for probabilities of forced decoding they" in failed.message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forced.gz", "t"]


def test_pairs_that_cannot_be_read(tmp_path):
    table, bad = write(tmp_path / "t", TABLES["seven fields"]), write(tmp_path / "p", b"a ||| b ||| 1\nnothing\n")
    failed = annotate(table, bad, "-o", tmp_path / "o")
    assert failed.code == 1
    assert f"{bad}:2: expected `source ||| target`" in failed.message
    assert annotate(table, tmp_path / "none", "-o", tmp_path / "o").code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "t"]


def test_bad_usage(pairs, tmp_path):
    table = write(tmp_path / "t", TABLES["seven fields"])
    scale = annotate(table, pairs, "-o", tmp_path / "o", "--scale", "raw")
    assert (scale.code, "--scale is for the similarities" in scale.err) == (2, True)
    twice = run_inside("annotate", "-", "--forced-pairs", "-", "--smoothing", "none", "-q", stdin=b"")
    assert (twice.code, "only one input can be standard input" in twice.err) == (2, True)
    over = annotate(table, pairs, "-o", pairs)
    assert over.code == 1
    assert f"{pairs}: the output is the input {pairs}" in over.message
    assert read(pairs) == PAIRS


@pytest.mark.parametrize("models", [0, 1])
def test_the_ini_has_a_weight_for_every_column(model_folder, pairs, tmp_path, monkeypatch, models):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t", TABLES["seven fields"])
    write(tmp_path / "ini", INI.encode())
    files = ["t", pairs, "--moses-ini", "ini", "--moses-ini-out", "more.ini"]
    outcome = annotate(*files, *(["-m", model_folder] * models))
    assert outcome.code == 0
    after = read_moses_ini("more.ini")
    columns = 2 + 2 * models
    assert after.features[0].arguments["num-features"] == str(4 + columns)
    assert after.weights["TranslationModel0"] == [0.1, 0.2, 0.3, 0.4] + [0] * columns
    assert naive.cut_columns(read(tmp_path / "t.annotated.gz"), columns) == TABLES["seven fields"]
    over = annotate("t", pairs, "--moses-ini", "ini", "--moses-ini-out", pairs)
    assert over.code == 1
    assert "the output is the input" in over.message
