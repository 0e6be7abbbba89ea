"""Fisher's test of the pairs of a table against exact integers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.corpora.corpus_index import read_index
from moses_compat.measures import pair_test
from moses_compat.measures.pair_test import CorpusCheck, CorpusMismatchError, PairTest
from moses_compat.tables.parser import scan_lines
from tests import naive_filter
from tests.commands import write

TOKEN = st.sampled_from([b"a", b"b", b"c", b"[X]", b"zz"])
PHRASE = st.lists(TOKEN, max_size=4).map(b" ".join)
SENTENCE = st.lists(st.sampled_from([b"a", b"b", b"c", b"[X]"]), max_size=6).map(b" ".join)


def corpora_of(folder, sides):
    return [
        read_index(str(write(folder / name, b"".join(line + b"\n" for line in side))))
        for name, side in zip(("f", "e"), sides, strict=True)
    ]  # fmt: skip


@settings(max_examples=80)
@given(
    st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8), st.lists(st.tuples(PHRASE, PHRASE), max_size=8),
    st.booleans(),
)  # fmt: skip
def test_any_pairs(workspace, bitext, pairs, hierarchical):
    sides = list(zip(*bitext, strict=True))
    test = PairTest(*corpora_of(workspace, sides), hierarchical)
    text = np.frombuffer(b"".join(b"%s ||| %s ||| 1\n" % pair for pair in pairs), np.uint8)
    scan = scan_lines(text, 1, ())
    found = test(text, scan.line_offsets[:-1], scan.source_ends, scan.target_ends)
    corpora = [[line.split() for line in side] for side in sides]
    assert found.counts.shape == (len(pairs), 3)
    assert test.alpha == pytest.approx(math.log(len(bitext)), abs=1e-9)
    for i, pair in enumerate(pairs):
        parts = [naive_filter.runs(field, hierarchical) for field in pair]
        holders = [naive_filter.sentences_of(part, corpus) for part, corpus in zip(parts, corpora, strict=True)]
        assert found.wordless[i] == (not all(parts))
        absent = [found.absent_sources[i], found.absent_targets[i]]
        if not all(parts):
            assert absent == [False, False]
            continue
        counts = len(holders[0] & holders[1]), len(holders[0]), len(holders[1])
        assert tuple(found.counts[i]) == counts
        assert absent == [not counts[1], not counts[2]]
        expected = naive_filter.negative_log_p(*counts, len(bitext))
        assert found.values[i] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_corpora_of_different_sizes(tmp_path):
    with pytest.raises(ValueError, match="the corpora have different numbers of sentences"):
        PairTest(*corpora_of(tmp_path, ([b"a"], [b"a", b"b"])))


def outcome(sources, targets, wordless=0):
    """Entries: a mark for each whose side does not occur; the last ones have no word."""
    size = len(sources)
    none = np.arange(size) >= size - wordless
    marks = [np.array(side, bool) & ~none for side in (sources, targets)]
    return pair_test.Tested(np.zeros((size, 3), np.int64), np.zeros(size), none, *marks)


@pytest.fixture
def check(tmp_path):
    return CorpusCheck("t", PairTest(*corpora_of(tmp_path, ([b"a"], [b"x"]))))


def test_half_of_the_entries_may_be_absent(check):
    check.add(outcome([1, 0, 0, 1], [0, 0, 0, 1]))
    check.check()
    assert check.passed


def test_more_than_half_may_not(check):
    check.add(outcome([1, 0, 0], [0, 1, 0]))
    # What has no word is not among them.
    check.add(outcome([0, 0, 0, 0, 0], [0, 0, 0, 0, 0], wordless=5))
    message = r"of its first 3 entries, 1 have a source that does not occur in .*f, 1 a target that does not occur in"
    with pytest.raises(CorpusMismatchError, match=message):
        check.check()


def test_ten_thousand_decide(check):
    half = outcome([1, 0] * 5000, [0] * 10_000)
    check.add(half)
    assert check.passed
    # Nothing that comes later is looked at.
    check.add(outcome([1] * 10_000, [1] * 10_000))


def test_ten_thousand_decide_at_once(check):
    check.add(outcome([1] * 9_999, [0] * 9_999))
    with pytest.raises(CorpusMismatchError, match="first 10,000 entries, 10,000 have a source"):
        check.add(outcome([1] * 5, [0] * 5))
