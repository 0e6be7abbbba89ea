"""Smoothed probabilities of complete tables, compared with those of Moses and of naive Python."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input
from moses_compat.measures.pair_counts import SMOOTHINGS, SmoothedProbabilities, count_table
from moses_compat.tables.blocks import TableScan, raw_blocks
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from tests import naive_extraction
from tests.commands import read, write
from tests.moses_compat.engine.test_extracted import GOLDEN
from tests.variants import for_each

SCANS = [{}, {"threads": 2, "block_bytes": 1}, {"threads": 2, "block_bytes": 300}]
PLAIN = b"a ||| x ||| 1 ||| 0-0 ||| 3 2 1\na ||| y ||| 1 |||  ||| 1 2 1 ||| |||\nb ||| x ||| 1 ||| ||| 3 2 2\n"


def probabilities(folder, data, method="kneser-ney", on_error="fail", **scan):
    path = str(write(folder / "table", data))
    with Input(path) as source:
        counts = count_table(source, TableScan(on_error, **scan))
    smoothed = SmoothedProbabilities(path, counts, method)
    parts = [np.zeros((0, 2))]
    with Input(path) as source:
        for raw in raw_blocks(source, scan.get("block_bytes", 1 << 20)):
            block, _ = TableParser(scores=raw.scores)(raw.first_entry, raw.text)
            parts.append(smoothed(block))
    return np.concatenate(parts)


def naive(data, method):
    """Return p(e|f) and p(f|e) of each line."""
    pairs, counts = [], []
    for line in data.splitlines():
        fields = line.split(b"|||")
        pairs.append((tuple(fields[0].split()), tuple(fields[1].split())))
        counts.append([float(x) for x in fields[4].split()[:3]])
    joint = {k: c[2] for k, c in enumerate(counts)}
    distinct = [Counter(pair[side] for pair in pairs) for side in (0, 1)]
    collected = []
    for k, (source, target) in enumerate(pairs):
        total_target, total_source = counts[k][:2]
        entries = distinct[0][source], distinct[1][target]
        collected.append(
            (
                naive_extraction.smoothed(method, joint, k, total_source, entries[0], entries[1]) / total_source,
                naive_extraction.smoothed(method, joint, k, total_target, entries[1], entries[0]) / total_target,
            )
        )
    return np.array(collected).reshape(-1, 2)


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("method", SMOOTHINGS)
def test_equals_smoothing_by_moses(tmp_path, method, scan):
    """The table of Moses without smoothing gets the values of its table with smoothing."""
    result = probabilities(tmp_path, read(GOLDEN / "table.7.gz"), method, **scan)
    scores = [line.split(b" ||| ")[2].split() for line in read(GOLDEN / f"table.{method}.gz").splitlines()]
    expected = np.array([[float(score[2]), float(score[0])] for score in scores])
    np.testing.assert_allclose(result, expected, rtol=6e-6)


@pytest.mark.parametrize("method", SMOOTHINGS)
def test_the_order_of_lines_does_not_matter(tmp_path, method):
    lines = read(GOLDEN / "table.3.gz").splitlines(keepends=True)
    expected = dict(zip(lines, probabilities(tmp_path, b"".join(lines), method).tolist(), strict=True))
    random.Random(1).shuffle(lines)
    for scan in SCANS[1:]:
        assert probabilities(tmp_path, b"".join(lines), method, **scan).tolist() == [expected[line] for line in lines]


BLANK = st.sampled_from([b" ", b"  ", b"\t"])


@st.composite
def tables(draw):
    """Draw tables in any order and with any white space, in which some pairs are repeated."""
    joint = [
        (draw(st.sampled_from([b"a", b"b", b"a b", b""])), draw(st.sampled_from([b"x", b"y", b"x y"])), count)
        for count in draw(st.lists(st.integers(1, 12), max_size=12))
    ]
    totals = [Counter(), Counter()]
    for source, target, count in joint:
        totals[0][source] += count
        totals[1][target] += count
    lines = []
    for source, target, count in joint:
        sides = [draw(BLANK) + side.replace(b" ", draw(BLANK)) + draw(BLANK) for side in (source, target)]
        numbers = b"%d %d %d" % (totals[1][target], totals[0][source], count)
        lines.append(b"%s|||%s||| .5 1 ||| 0-0|||%s%s" % (*sides, numbers, draw(st.sampled_from([b"", b" ||| |||"]))))
    return b"".join(line + b"\n" for line in lines)


@given(tables(), st.sampled_from(SMOOTHINGS), st.sampled_from(SCANS))
def test_agrees_with_naive(workspace, data, method, scan):
    result = probabilities(workspace, data, method, **scan)
    assert (result > 0).all()
    expected = naive(data, method)
    # If pairs seen once are missing, which never holds for unpruned tables, discounts of Moses may be negative.
    if method == "good-turing" or not (expected_discounts(data) < 0).any():
        np.testing.assert_allclose(result, expected, rtol=3e-6)


def expected_discounts(data):
    joint = {k: int(line.split(b"|||")[4].split()[2]) for k, line in enumerate(data.splitlines())}
    return np.array(list(naive_extraction.discounts("kneser-ney", joint).values()))


def test_few_rare_pairs_make_no_negative_probability(tmp_path):
    """Two pairs seen twice and many seen three times: D of the former is far below 0."""
    rows = [("a", f"x{k}", 1) for k in range(20)] + [("a", f"y{k}", 2) for k in range(2)]
    rows += [("a", f"z{k}", 3) for k in range(90)]
    total = sum(count for _, _, count in rows)
    data = "".join(f"{s} ||| {t} ||| 1 ||| ||| {count} {total} {count}\n" for s, t, count in rows).encode()
    assert (expected_discounts(data) < 0).any()
    result = probabilities(tmp_path, data)
    assert (result > 0).all()
    # Their probabilities are not discounted.
    np.testing.assert_allclose(result[20:22], [[2 / total, 1]] * 2, rtol=1e-6)


@pytest.mark.parametrize("method", SMOOTHINGS)
def test_fractions(tmp_path, method):
    """Instance weights: counts are rounded up to find the discount of a pair, as in Moses."""
    data = b"a ||| x ||| 1 ||| ||| 2.5 2.1 0.7\na ||| y ||| 1 ||| ||| 1.4 2.1 1.4\nb ||| x ||| 1 ||| ||| 2.5 1.8 1.8\n"
    result = probabilities(tmp_path, data, method)
    # Rounded up, one pair has count 1, and two have count 2.
    if method == "good-turing":
        d1 = 1.0
        assert result[0].tolist() == pytest.approx([0.7 * d1 / 2.1, 0.7 * d1 / 2.5])
        return
    share = 1 / (1 + 2 * 2)
    d1 = min(1 - 2 * share * 2 / 1, 0.9)
    expected = 0.7 - d1 + d1 * 2 * 2 / 3
    assert result[0].tolist() == pytest.approx([expected / 2.1, expected / 2.5])


def test_malformed_lines_are_ignored(tmp_path):
    data = PLAIN.replace(b"b |||", b"no entry\nx ||| y ||| z ||| ||| 1 1 1\nb |||")
    with pytest.raises(DataError, match="table:3: expected at least 3 fields"):
        probabilities(tmp_path, data)
    for scan in SCANS:
        result = probabilities(tmp_path, data, on_error="keep", **scan)
        assert np.array_equal(result[[0, 1, 4]], probabilities(tmp_path, PLAIN))
        assert (result[2:4] == 1).all()


@for_each(
    ("field", "message"),
    [
        (b"", "the entry has no joint count; smoothing needs"),
        (b" ||| 0-0", "the entry has no joint count; smoothing needs"),
        (b" ||| 0-0 ||| 3 2", "the entry has no joint count .found '3 2'.; smoothing needs"),
        (b" ||| 0-0 ||| 3 x 1", "the entry has no joint count .*found '3 x 1'"),
        (b" ||| 0-0 ||| 3 2 0", "the entry has an impossible joint count .found '3 2 0'"),
        (b" ||| 0-0 ||| 3 2 -1", "the entry has no joint count .*found '3 2 -1'"),
        (b" ||| 0-0 ||| inf 2 1", "the entry has no joint count .*found 'inf 2 1'"),
        (b" ||| 0-0 ||| 1 2 2", "the entry has an impossible joint count .found '1 2 2'"),
        (b" ||| 0-0 ||| 5 2 5", "the entry has an impossible joint count .found '5 2 5'"),
    ],
)
def test_tables_without_counts(tmp_path, field, message):
    for scan in SCANS:
        with pytest.raises(DataError, match=f"table:4: {message}"):
            probabilities(tmp_path, PLAIN + b"c ||| z ||| 1" + field + b"\n" + PLAIN, "kneser-ney", "keep", **scan)


def test_counts_of_six_digits(tmp_path):
    """Rounded like in Moses, a total may be smaller than one of its joint counts."""
    line = b"a ||| x ||| 1 ||| ||| %s %s %s\n"
    probabilities(tmp_path, line % (b"1.23457e+06", b"1234567", b"1234568"))


def test_a_table_that_changes(tmp_path):
    with Input(str(write(tmp_path / "table", PLAIN))) as source:
        smoothed = SmoothedProbabilities("t", count_table(source, TableScan()), "kneser-ney")
    changed = np.frombuffer(PLAIN.replace(b"b |||", b"c |||"), np.uint8)
    block, _ = TableParser(scores=1)(10, changed)
    with pytest.raises(DataError, match="t:13: the table changed"):
        smoothed(block)


def test_a_table_without_entries(tmp_path):
    assert probabilities(tmp_path, b"").shape == (0, 2)
    assert probabilities(tmp_path, b"no entry\n", on_error="keep").tolist() == [[1, 1]]


def test_progress_and_refusal(tmp_path):
    line_counts = []
    with Input(str(write(tmp_path / "table", PLAIN))) as source:
        counts = count_table(
            source, TableScan(block_bytes=1, progress=lambda position, entries: line_counts.append(entries))
        )
    assert line_counts == [2, 3]
    assert (np.count_nonzero(counts.sources.slots), np.count_nonzero(counts.targets.slots)) == (2, 2)
    assert counts.statistics.pairs == 3
    with pytest.raises(ValueError, match="unknown smoothing 'loud'"):
        SmoothedProbabilities("t", counts, "loud")
