import gzip
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.fields import line_offsets_of
from moses_compat.measures import pair_counts
from moses_compat.measures.pair_counts import PairUses
from phrasetool.errors import DataError
from tests import naive
from tests.commands import write
from tests.naive_reordering import pair
from tests.variants import for_each

blank = st.sampled_from([b"", b" ", b"  ", b"\t"])
gap = st.sampled_from([b" ", b"\t ", b"  "])
side = st.lists(st.sampled_from([b"a", b"b", b"ab", b"a|b", b"\xff", b"&#124;"]), max_size=3)
number = st.sampled_from([1, 2, 7, 0, 0.5, 1e-3, 12345])


@st.composite
def with_blanks(draw, words):
    return draw(blank) + draw(gap).join(words) + draw(blank)


@st.composite
def counted(draw):
    """Draw a line of a file of pairs, with its source, target and count."""
    source, target = draw(side), draw(side)
    text = draw(with_blanks(source)) + b"|||" + draw(with_blanks(target))
    form = draw(st.sampled_from(["none", "count", "table", "two counts"]))
    # In a table, a pair has a positive count, at most that of each side.
    count = draw(number if form == "count" else number.filter(bool)) if form in ("count", "table") else 1
    text += {
        "none": b"",
        "count": b"||| %s%s" % (str(count).encode(), draw(blank)),
        "two counts": b"||| 0.5 0.25 0.5 1 ||| 0-0 ||| 2 8",
        "table": b"||| 0.5 0.25 ||| 0-0 ||| 1e11 1e11 %s ||| |||" % str(count).encode(),
    }[form]
    return text + draw(st.sampled_from([b"", b"\r"])), tuple(source), tuple(target), count


@st.composite
def entry(draw):
    return draw(with_blanks(draw(side))) + b"|||" + draw(with_blanks(draw(side))) + b"||| 1 1"


def look_up(counts, text, selected=None):
    array = np.frombuffer(text, np.uint8)
    offsets = line_offsets_of(array)
    return counts.look_up(array, offsets, np.ones(len(offsets) - 1, np.bool_) if selected is None else selected)


@given(st.lists(counted(), min_size=1, max_size=12), st.lists(entry(), max_size=8), st.sampled_from([1, 50, 1 << 20]))
def test_counts_agree_with_dictionaries(workspace, lines, table, block):
    path = write(workspace / "pairs", b"\n".join(line for line, *_ in lines) + b"\n")
    pairs, sources, targets = {}, {}, {}
    for _, source, target, count in lines:
        for sums, key in ((pairs, (source, target)), (sources, source), (targets, target)):
            sums[key] = sums.get(key, 0) + count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_counts, "_BLOCK_BYTES", block)
        counts = PairUses.read(str(path))
    # The lines of the pairs are looked up, too, as entries with the same white space.
    text = b"\n".join([*table, *(line.rstrip(b"\r") + b"||| x" for line, *_ in lines)])
    parsed = [pair(line) for line in naive.parse_table(text)[0]]
    expected = [(pairs.get(key, 0), sources.get(key[0], 0), targets.get(key[1], 0)) for key in parsed]
    result = look_up(counts, text)
    assert (result.dtype, result.shape) == (np.float32, (len(parsed), 3))
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    requested = np.arange(len(parsed)) % 2 == 0
    assert (look_up(counts, text, requested) == np.where(requested[:, None], result, 0)).all()


def test_many_pairs_in_gzip_and_threads(tmp_path):
    lines = b"".join(b"s%d ||| t%d ||| %d\n" % (i % 300, i % 7000, i % 3) for i in range(40_000))
    path = write(tmp_path / "pairs.gz", lines)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    counts = PairUses.read(str(path))
    pairs, sources, targets = {}, {}, {}
    for i in range(40_000):
        for sums, key in ((pairs, (i % 300, i % 7000)), (sources, i % 300), (targets, i % 7000)):
            sums[key] = sums.get(key, 0) + i % 3
    request = [(k % 400, k % 9000) for k in range(20_000)]
    text = b"".join(b"s%d ||| t%d ||| 1\n" % key for key in request)
    expected = [[pairs.get(key, 0), sources.get(key[0], 0), targets.get(key[1], 0)] for key in request]
    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(lambda _: look_up(counts, text), range(6)):
            assert (result == expected).all()


def test_lines_without_a_pair_have_no_uses(tmp_path):
    counts = PairUses.read(str(write(tmp_path / "p", b"a ||| b ||| 2\n ||| ||| 3\n")))
    assert look_up(counts, b"a\n\na ||| b\n ||| \na ||| \n").tolist() == [
        [0, 0, 0], [0, 0, 0], [2, 2, 2], [3, 3, 3], [0, 2, 3],
    ]  # fmt: skip


@for_each(
    ("data", "message"),
    [
        (b"a ||| b ||| 1\nhere is nothing\n", r"pairs:2: expected `source \|\|\| target`, found no"),
        (b"a ||| b ||| 1\n\n", "pairs:2: expected"),
        (b"a ||| b ||| 1\na ||| c ||| x\n", "pairs:2: expected a count"),
        (b"a ||| b ||| 1\na ||| c ||| nan \r\n", "pairs:2: expected a count"),
        (b"a ||| b ||| -1\n", "pairs:1: expected a count"),
        (b"a ||| b ||| inf\n", "pairs:1: expected a count"),
        (b"a ||| b ||| 1 1 ||| ||| 2 1 -1\n", "pairs:1: expected a count"),
        (b"a ||| b ||| 0.5 0.5\n", "pairs:1: the pair has no count; expected"),
        (b"a ||| b ||| 0.5 0.5 ||| 0-0 ||| |||\n", "pairs:1: the pair has no count; expected"),
        (b"a ||| b |||\n", "pairs:1: the pair has no count; expected"),
        (b"", "no phrase pair"),
        (gzip.compress(b"a ||| b ||| 1\n" * 100, mtime=0)[:-10], "pairs: "),
    ],
)
def test_bad_files(tmp_path, monkeypatch, data, message):
    path = tmp_path / "pairs"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        PairUses.read(str(path))
    monkeypatch.setattr(pair_counts, "_BLOCK_BYTES", 1)
    with pytest.raises(DataError, match=message):
        PairUses.read(str(path))


def test_mismatched_arrays(tmp_path):
    counts = PairUses.read(str(write(tmp_path / "p", b"a ||| b\n")))
    text, offsets, expected = np.zeros(3, np.uint8), np.array([0, 3]), np.ones(1, np.bool_)
    for arguments in (
        (text.astype(np.int8), offsets, expected),
        (text, offsets.astype(np.int32), expected),
        (text, offsets, expected.astype(np.int8)),
        (text, offsets, np.ones(2, np.bool_)),
        (text[:2], offsets, expected),
    ):
        with pytest.raises(ValueError):
            counts.look_up(*arguments)
