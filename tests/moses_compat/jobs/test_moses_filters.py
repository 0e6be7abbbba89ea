"""filter-pt and threshold filters compared with naive versions on many kinds of tables."""

import io
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.moses_filters import Significance, filter_table, parse_thresholds, threshold_table
from moses_compat.lines.numbers import DIRECT_COLUMN
from moses_compat.measures.pair_test import CorpusMismatchError, PairTest, read_index
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.pruning.thresholds import Threshold
from tests import naive, naive_filter
from tests.commands import read, write
from tests.pairwise import pairwise
from tests.tables import MALFORMED, TABLES
from tests.variants import for_each

# Words of `tests.tables`, so that phrases of its tables occur.
SOURCE = b"""das haus ist gr\xfcn !
das haus ist nicht gr\xfcn
ist das haus gr\xfcn

nie gesehen : das &apos;s &quot; das &quot; xyz
&#91; haus &#93; ! &lt; ist &gt; ART NN
haus
das [X] haus
"""
TARGET = b"""the house is green !
the house is not green
is the house green
a house
never seen : the &apos;s the &quot; zyx
&bra; house &ket; ! is DT NN
house
the house is
"""


def words(text):
    return [line.split() for line in text.split(b"\n")[:-1]]


@pytest.fixture(scope="session")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    return [read_index(str(write(folder / name, text))) for name, text in (("f", SOURCE), ("e.gz", TARGET))]


def run_filter(folder, data, *, top=0, column=DIRECT_COLUMN, significance=None, **scan):
    path, out = write(folder / "table", data), folder / "out"
    with Input(str(path)) as source, Output(str(out)) as output:
        counts = filter_table(source, output, TableScan(**scan), top=top, column=column, significance=significance)
    return read(out), counts


def both(folder, data, corpora, *, threshold=None, top=0, column=0, counts=False, values=False, rules=False, **scan):
    """Return the output of the filter and the expected output."""
    significance = None
    if threshold is not None or counts or values:
        significance = Significance(PairTest(*corpora, rules), threshold or 0.0, counts, values, force=True)
    result, _ = run_filter(folder, data, top=top, column=column, significance=significance, **scan)
    expected = naive_filter.filter_table(
        data, words(SOURCE), words(TARGET), threshold=threshold, top=top, column=column, counts=counts, values=values,
        rules=rules,
    )  # fmt: skip
    return result, expected


OPTIONS = [
    {"top": 1}, {"top": 3, "threshold": 1.0}, {"threshold": 2.0794}, {"threshold": 2.0, "counts": True},
    {"values": True}, {"counts": True, "values": True, "rules": True, "threshold": 0.5},
]  # fmt: skip
SCANS = [{}, {"threads": 2, "block_bytes": 1}, {"threads": 3, "block_bytes": 300}]


@for_each(("name", "options", "scan"), pairwise(sorted(TABLES), OPTIONS, SCANS))
def test_equals_the_naive_filter(tmp_path, name, options, scan, corpora):
    result, expected = both(tmp_path, TABLES[name], corpora, **options, **scan)
    assert result == expected


_TOKEN = st.sampled_from([b"das", b"haus", b"ist", b"the", b"house", b"zzz", b"[X]", b"[X][X]"])
_FIELD = st.lists(_TOKEN, max_size=4).map(b" ".join)
_LINE = st.tuples(_FIELD.filter(len), _FIELD, st.sampled_from([b"0.5 1", b"0.25 0.1", b"1 0.5 "]))


@given(
    st.lists(_LINE, max_size=20), st.integers(0, 2), st.sampled_from([None, 0.0, 1.0, 2.5]), st.booleans(),
    st.booleans(), st.booleans(), st.integers(1, 200),
)  # fmt: skip
def test_equals_the_naive_filter_on_any_table(workspace, corpora, lines, top, threshold, counts, values, rules, size):
    data = b"".join(b" ||| ".join(line) + b"\n" for line in lines)
    result, expected = both(
        workspace, data, corpora, threshold=threshold, top=top, counts=counts, values=values, rules=rules,
        threads=2, block_bytes=size,
    )  # fmt: skip
    assert result == expected


def test_thresholds_for_a_pair_seen_once(tmp_path, corpora):
    """xyz and zyx occur once, in the same sentence pair: -ln p is ln 8."""
    data = b"xyz ||| zyx ||| 1\n"
    alpha = np.log(8)
    for text, kept in (("a+e", b""), ("a-e", data), ("2.07", data), ("2.08", b"")):
        significance = Significance(PairTest(*corpora), Threshold(text).value(alpha))
        assert run_filter(tmp_path, data, significance=significance)[0] == kept
    significance = Significance(PairTest(*corpora), append_counts=True, append_values=True)
    assert run_filter(tmp_path, data, significance=significance)[0] == b"xyz ||| zyx ||| 1 ||| 1 1 1 ||| 2.079442\n"


def test_labels_are_words_unless_the_table_has_rules(tmp_path, corpora):
    data = b"das [X] haus ||| the house ||| 1\n"
    for rules, numbers in ((False, b"1 1 4"), (True, b"4 4 4")):
        significance = Significance(PairTest(*corpora, rules), append_counts=True)
        assert run_filter(tmp_path, data, significance=significance)[0] == data[:-1] + b" ||| " + numbers + b"\n"


def test_entries_without_words_are_kept_and_counted(tmp_path, corpora):
    data = b"das |||  ||| 1\ndas ||| zyx ||| 1\n[X][X] [X] ||| [X][X] [X] ||| 1\n"
    out, counts = run_filter(
        tmp_path, data, significance=Significance(PairTest(*corpora, hierarchical=True), threshold=3.0, force=True)
    )
    assert out.splitlines() == [data.splitlines()[0], data.splitlines()[2]]
    assert (counts.wordless, counts.tested, counts.insignificant, counts.kept) == (2, 1, 1, 2)


@pytest.mark.parametrize(("on_error", "malformed"), [("skip", False), ("keep", True)])
def test_malformed_lines(tmp_path, corpora, on_error, malformed):
    significance = Significance(PairTest(*corpora), append_counts=True)
    out, counts = run_filter(tmp_path, MALFORMED, significance=significance, on_error=on_error, top=1, column=1)
    lines = MALFORMED.splitlines()
    assert out.splitlines() == [
        lines[0] + b" ||| 5 5 5",
        *(lines[1:8] if malformed else []),
        lines[8] + b" ||| 6 6 7",
    ]
    assert (counts.malformed_kept, counts.malformed_skipped) == ((7, 0) if malformed else (0, 7))
    with pytest.raises(DataError, match="table:2: a score is not a number"):
        run_filter(tmp_path, MALFORMED, significance=significance)


def test_a_missing_column(tmp_path):
    with pytest.raises(DataError, match=r"table:1: column 5 \(from 0\) was requested, but entries have 5 scores"):
        run_filter(tmp_path, TABLES["latin-1"], top=2, column=5)


def test_corpora_that_do_not_match(tmp_path, corpora):
    good = b"das ||| the ||| 1\n"
    data = good * 5 + b"unknown ||| the ||| 1\n" * 4 + b"das ||| unheard ||| 1\n" * 2
    significance = Significance(PairTest(*corpora), threshold=0.0)
    with pytest.raises(CorpusMismatchError, match=r"first 11 entries, 4 have a source .* 2 a target"):
        run_filter(tmp_path, data, significance=significance)
    out, counts = run_filter(tmp_path, data + good, significance=significance)
    assert out == data + good
    assert (counts.tested, counts.absent_sources, counts.absent_targets) == (12, 4, 2)
    forced = Significance(PairTest(*corpora), threshold=0.0, force=True)
    assert run_filter(tmp_path, data, significance=forced)[0] == data


@pytest.mark.parametrize("size", [50, 1 << 20])
def test_a_mismatch_leaves_nothing_half_written(tmp_path, corpora, size):
    data = b"".join(b"nie %d ||| never ||| 1\n" % i for i in range(12_000))
    stream = io.BytesIO()

    class Collected(Output):
        def write(self, piece):
            stream.write(piece)

    path = write(tmp_path / "table", data)
    with (
        pytest.raises(CorpusMismatchError, match="first 10,000 entries, 10,000 have"),
        Input(str(path)) as source,
        Collected(str(tmp_path / "out")) as output,
    ):
        filter_table(
            source, output, TableScan(block_bytes=size, threads=2), significance=Significance(PairTest(*corpora))
        )
    assert not stream.getvalue()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["nan", "a", "", "a+e1"])
def test_malformed_thresholds(text):
    with pytest.raises(ValueError, match="a number"):
        Threshold(text)


@pytest.mark.parametrize("threshold", [-1.0, float("nan")])
def test_a_threshold_must_be_a_non_negative_number(corpora, threshold):
    with pytest.raises(ValueError, match="0 or more"):
        Significance(PairTest(*corpora), threshold)


@pytest.mark.parametrize(
    ("text", "thresholds"),
    [("0.0001", {0: 0.0001, 2: 0.0001}), (".5", {0: 0.5, 2: 0.5}), ("2:0.0001", {2: 0.0001}),
     ("1:1e-3,0:2", {0: 2, 1: 0.001})],
)  # fmt: skip
def test_threshold_specs(text, thresholds):
    assert parse_thresholds(text) == thresholds


@for_each("text", ["", "0", "2:", "2:0", "x:1", "2:1,", "2:1,2:2", "2:nan", "-1:1", "1e-4", "0:inf"])
def test_wrong_threshold_specs(text):
    with pytest.raises(ValueError):
        parse_thresholds(text)


COMBINATIONS = pairwise(
    sorted(TABLES), [(0.3,), (1e-4, 0.5), (2.0,)], [False, True], [{}, {"threads": 2, "block_bytes": 1}]
)


@for_each(("name", "limits", "keep_words", "scan"), COMBINATIONS)
def test_threshold_equals_the_naive_filter(tmp_path, name, limits, keep_words, scan):
    table = TABLES[name]
    thresholds = dict(enumerate(limits[: max(naive.first_score_count(table), 1)]))
    path, out = write(tmp_path / "table", table), tmp_path / "out.gz"
    with Input(str(path)) as source, Output(str(out)) as output:
        counts = threshold_table(source, output, thresholds, TableScan(**scan), keep_words=keep_words)
    expected = naive_filter.threshold_lines(table, thresholds, keep_words)
    assert read(out) == expected
    assert counts.kept == len(naive.split_lines(expected))


@for_each("limits", [{1: -0.5}, {0: -0.01, 1: -0.5}, {0: 0.6, 1: -0.5}, {0: 0.6, 1: 0.5}, {1: 0.0}])
def test_the_kept_entry_of_a_word_is_the_nearest_to_its_thresholds(tmp_path, limits):
    """Logarithmic scores are negative, as are their thresholds."""
    rng = random.Random(4)
    rows = [(f"w{k // 4}", f"t{k % 4}", rng.uniform(-1, 0.5), rng.uniform(-2, 0.4)) for k in range(400)]
    table = "".join(f"{source} ||| {target} ||| {a:.3f} {b:.3f}\n" for source, target, a, b in rows).encode()
    path, out = write(tmp_path / "table", table), tmp_path / "out"
    with Input(str(path)) as source, Output(str(out)) as output:
        counts = threshold_table(source, output, limits, TableScan(), keep_words=True)
    assert read(out) == naive_filter.threshold_lines(table, limits, True)
    assert counts.protected > 5


def test_a_score_equal_to_its_threshold_is_kept(tmp_path):
    numbers = ["0.1", "0.3", "0.35", "0.7", "0.0001", "5.25e-24", "1.63446e-06", "0.0133333", "123456", "0.982353"]
    for number in numbers:
        data = f"a ||| b ||| {number}\n".encode()
        path, out = write(tmp_path / "table", data), tmp_path / "out"
        with Input(str(path)) as source, Output(str(out)) as output:
            threshold_table(source, output, {0: float(number)}, TableScan())
        assert read(out) == data
