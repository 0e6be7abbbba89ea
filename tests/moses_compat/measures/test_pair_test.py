"""Indexes of corpora, saved indexes, and significance tests with them."""

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.measures import pair_test
from moses_compat.measures.pair_test import (
    CorpusCheck,
    CorpusMismatchError,
    PairTest,
    kept_index,
    read_index,
    read_indexes,
)
from moses_compat.tables.parser import scan_lines
from phrasetool.errors import DataError, PhraseToolError
from tests import naive_filter
from tests.commands import write

TEXT = b"a b  a\r\n\nc\ta b\n\xff &apos;s\n"

TOKEN = st.sampled_from([b"a", b"b", b"c", b"[X]", b"zz"])
PHRASE = st.lists(TOKEN, max_size=4).map(b" ".join)
SENTENCE = st.lists(st.sampled_from([b"a", b"b", b"c", b"[X]"]), max_size=6).map(b" ".join)


def counts(index, *phrases):
    lines = index.symbols.read_lines(b"\n".join(phrases), add=False)
    return index.sentences.find(lines).counts.tolist()


@pytest.mark.parametrize("name", ["corpus", "corpus.gz"])
@pytest.mark.parametrize("threads", [1, 2])
def test_reads_a_corpus(tmp_path, name, threads):
    index = read_index(str(write(tmp_path / name, TEXT)), threads)
    assert index.sentences.sentences == 4
    assert counts(index, b"a b", b"b a", b"c a", b"\xff", b"&apos;s", b"'s", b"b c") == [2, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "is empty"), (None, "No such file"), (b"\x1f\x8b\x08", "gzip data end")]
)
def test_invalid_corpora(tmp_path, data, message):
    path = tmp_path / "corpus"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DataError, match=f"corpus: .*{message}"):
        read_index(str(path))


def test_a_stem_of_salm_is_recognised(tmp_path):
    (tmp_path / "train.en.sa_suffix").write_bytes(b"\0")
    with pytest.raises(DataError, match="SALM files of this name, but a plain corpus"):
        read_index(str(tmp_path / "train.en"))


def test_a_saved_index_is_used_until_the_corpus_changes(tmp_path):
    path, folder = write(tmp_path / "corpus.gz", TEXT), tmp_path / "index"
    new = kept_index(str(path), str(folder), "source")
    assert new.note.endswith("was made")
    for _ in range(2):
        loaded = kept_index(str(path), str(folder), "source")
        assert loaded.note.endswith("using the index")
        for name in ("text", "suffixes", "starts"):
            np.testing.assert_array_equal(getattr(loaded.sentences, name), getattr(new.sentences, name))
        assert loaded.symbols.words == new.symbols.words
        # A new modification time with the same bytes is no change.
        os.utime(path, ns=(1, 1))
    write(path, TEXT + b"a a\n")
    again = kept_index(str(path), str(folder), "source")
    assert again.note.endswith("out of date and has been rebuilt")
    assert counts(again, b"a", b"a a") == [3, 1]
    assert sorted(name.split("-")[0] for name in os.listdir(folder)) == ["source", "source.json"]


def test_both_sides_are_saved_in_one_folder(tmp_path):
    folder = tmp_path / "index"
    paths = [write(tmp_path / name, text) for name, text in (("f", b"x y\n"), ("e", b"y\n"))]
    for _ in range(2):
        for path, side in zip(paths, ("source", "target"), strict=True):
            index = kept_index(str(path), str(folder), side)
            assert counts(index, b"y", b"x") == [1, int(side == "source")]


@pytest.mark.parametrize("harm", ["array", "cut", "missing", "key", "json", "format"])
def test_a_damaged_index_is_rebuilt(tmp_path, harm):
    path, folder = write(tmp_path / "corpus", TEXT), tmp_path / "index"
    kept_index(str(path), str(folder), "target")
    data = next(folder.glob("target-*"))
    key = folder / "target.json"
    if harm == "array":
        np.save(data / "suffixes.npy", np.arange(3.0))
    elif harm == "cut":
        os.truncate(data / "text.npy", 100)
    elif harm == "missing":
        (data / "words.npy").unlink()
    elif harm == "key":
        key.write_text("[]")
    elif harm == "json":
        key.write_bytes(b"\xff{")
    else:
        key.write_text(json.dumps({**json.loads(key.read_text()), "format": 0}))
    assert kept_index(str(path), str(folder), "target").note.endswith((" was made", " has been rebuilt"))
    assert kept_index(str(path), str(folder), "target").note.endswith("using the index")


def test_indexes_that_cannot_be_saved(tmp_path):
    with pytest.raises(DataError, match="standard input: an index can be kept of a file only"):
        kept_index("-", str(tmp_path), "source")
    path = write(tmp_path / "corpus", TEXT)
    with pytest.raises(PhraseToolError, match="cannot write the index"):
        kept_index(str(path), str(path), "source")
    with pytest.raises(DataError, match="No such file"):
        kept_index(str(tmp_path / "missing"), str(tmp_path / "index"), "source")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("kept", [False, True])
def test_both_sides_of_a_bitext(tmp_path, threads, kept):
    source, target = (str(write(tmp_path / name, TEXT + name.encode())) for name in ("s", "t"))
    folder = str(tmp_path / "index") if kept else None
    first, second = read_indexes(source, target, threads, folder)
    assert (counts(first, b"s", b"t"), counts(second, b"s", b"t")) == ([1, 0], [0, 1])
    assert bool(first.note) is bool(second.note) is kept
    assert sorted(path.name for path in tmp_path.glob("index/*.json")) == ["source.json", "target.json"] * kept
    with pytest.raises(DataError, match=f"{source}:6: the file ends after 5 lines, but .*longer has 6"):
        read_indexes(source, str(write(tmp_path / "longer", TEXT + b"1\n2\n")), threads)


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
    result = test(text, scan.line_offsets[:-1], scan.source_ends, scan.target_ends)
    corpora = [[line.split() for line in side] for side in sides]
    assert result.counts.shape == (len(pairs), 3)
    assert test.alpha == pytest.approx(math.log(len(bitext)), abs=1e-9)
    for i, pair in enumerate(pairs):
        parts = [naive_filter.runs(field, hierarchical) for field in pair]
        holders = [naive_filter.sentences_of(part, corpus) for part, corpus in zip(parts, corpora, strict=True)]
        assert result.wordless[i] == (not all(parts))
        absent = [result.absent_sources[i], result.absent_targets[i]]
        if not all(parts):
            assert absent == [False, False]
            continue
        counts = len(holders[0] & holders[1]), len(holders[0]), len(holders[1])
        assert tuple(result.counts[i]) == counts
        assert absent == [not counts[1], not counts[2]]
        expected = naive_filter.negative_log_p(*counts, len(bitext))
        assert result.values[i] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_corpora_of_different_sizes(tmp_path):
    with pytest.raises(ValueError, match="the corpora have different numbers of sentences"):
        PairTest(*corpora_of(tmp_path, ([b"a"], [b"a", b"b"])))


def outcome(sources, targets, wordless=0):
    """Return the result for entries with marks for absent sides, of which the last `wordless` have no word."""
    size = len(sources)
    none = np.arange(size) >= size - wordless
    marks = [np.array(side, bool) & ~none for side in (sources, targets)]
    return pair_test.PairTestResults(np.zeros((size, 3), np.int64), np.zeros(size), none, *marks)


@pytest.fixture
def check(tmp_path):
    return CorpusCheck("t", PairTest(*corpora_of(tmp_path, ([b"a"], [b"x"]))))


def test_half_of_the_entries_may_be_absent(check):
    check.add(outcome([1, 0, 0, 1], [0, 0, 0, 1]))
    check.check()
    assert check.passed


def test_more_than_half_may_not(check):
    check.add(outcome([1, 0, 0], [0, 1, 0]))
    # Entries without words do not count.
    check.add(outcome([0, 0, 0, 0, 0], [0, 0, 0, 0, 0], wordless=5))
    message = r"of its first 3 entries, 1 have a source that does not occur in .*f, 1 a target that does not occur in"
    with pytest.raises(CorpusMismatchError, match=message):
        check.check()


def test_the_check_ends_after_ten_thousand_entries(check):
    half = outcome([1, 0] * 5000, [0] * 10_000)
    check.add(half)
    assert check.passed
    # Later entries are not checked.
    check.add(outcome([1] * 10_000, [1] * 10_000))


def test_the_check_fails_as_soon_as_ten_thousand_entries_are_added(check):
    check.add(outcome([1] * 9_999, [0] * 9_999))
    with pytest.raises(CorpusMismatchError, match="first 10,000 entries, 10,000 have a source"):
        check.add(outcome([1] * 5, [0] * 5))
