import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.streams import Input
from moses_compat.lines.counts import CountTally
from phrasetool.errors import DataError


def read(tmp_path, data, name="pairs", **options):
    path = tmp_path / name
    path.write_bytes(data)
    with Input(str(path)) as source:
        return read_training_pairs(source, **options)


def shown(pairs):
    return [
        (pairs.source_vocabulary.phrase(s), pairs.target_vocabulary.phrase(t), int(c))
        for s, t, c in zip(pairs.sources, pairs.targets, pairs.counts, strict=True)
    ]


def test_every_form_of_a_line(tmp_path):
    data = (
        b"das haus ||| the house\n"
        b"das haus ||| the house ||| 3\n"
        b"ein|ART haus|NN ||| a house ||| 0.5 0.5 1 2.718 ||| 0-0 1-1 ||| 9 8 7 ||| |||\n"
        b"baum ||| tree ||| 0.5 0.5 1 2.718\n"
        b"wald |||forest||| 0.4 0.2 0.5 1 ||| 0-0 ||| 5 4\r\n"
        b" l&apos;eau\t ||| the  water ||| 2"
    )
    assert shown(read(tmp_path, data)) == [
        (b"das haus", b"the house", 4),
        (b"ein|ART haus|NN", b"a house", 7),
        (b"baum", b"tree", 1),
        (b"wald", b"forest", 2),
        (b"l'eau", b"the water", 2),
    ]


def test_gzip_length_and_count_filters_and_vocabulary_order(tmp_path):
    data = b"a b c ||| x ||| 5\na ||| x ||| 2\nb ||| z ||| 1\nq ||| ||| 9\na ||| y ||| 2\n"
    pairs = read(tmp_path, gzip.compress(data), max_length=2, min_count=2)
    assert shown(pairs) == [(b"a", b"x", 2), (b"a", b"y", 2)]
    # Words that occur only in omitted pairs are not in the vocabulary.
    assert pairs.source_vocabulary.words == [b"<unk>", b"a"]
    assert pairs.target_vocabulary.words == [b"<unk>", b"x", b"y"]
    assert pairs.source_vocabulary.counts.tolist() == [0, 2]


def test_given_vocabularies_make_other_words_unknown(tmp_path):
    first = read(tmp_path, b"a b ||| x\n")
    pairs = read(tmp_path, b"a c ||| x y\n", vocabularies=(first.source_vocabulary, first.target_vocabulary))
    assert pairs.sources[0].tolist() == [1, 0]
    assert pairs.targets[0].tolist() == [1, 0]


def test_faults_are_named_with_their_line(tmp_path):
    with pytest.raises(DataError, match=r"pairs:3: expected `source \|\|\| target`"):
        read(tmp_path, b"a ||| b\nc ||| d\nnothing here\n")
    with pytest.raises(DataError, match="no phrase pair"):
        read(tmp_path, b"")
    with pytest.raises(DataError, match="no phrase pair of 1 to 7 words a side with a count of at least 2"):
        read(tmp_path, b"a ||| b\n", min_count=2)


def test_damaged_counts_are_named_and_missing_ones_reported(tmp_path):
    for count in (b"nan", b"1,5", b"inf", b"-0.105", b"many"):
        with pytest.raises(DataError, match=f"pairs:2: expected a count, .* found '{count.decode()}'"):
            read(tmp_path, b"a ||| b ||| 2\nc ||| d ||| %s\r\n" % count)
    for counts in (b"9 8 -1", b"9 8 nan", b"9 x", b"9 8 1,5"):
        with pytest.raises(DataError, match=f"pairs:1: expected a count, .* found '{counts.decode()}'"):
            read(tmp_path, b"c ||| d ||| 0.5 0.5 ||| 0-0 ||| %s ||| |||\n" % counts)
    table = b"a ||| b ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 8 8\na ||| c ||| 0.5 0.5\na ||| d ||| 1 1 ||| ||| |||\n"
    tallies = []
    assert [count for *_, count in shown(read(tmp_path, table, counted=tallies.append))] == [4, 1, 1]
    assert tallies == [CountTally(3, 2, 1)]
    with pytest.raises(DataError, match="pairs:2: the pair has no count, but a count of at least 2 is required"):
        read(tmp_path, table, min_count=2)


words = st.lists(st.sampled_from([b"a", b"bb", b"\xe9", b"&amp;", b"x|y"]), min_size=1, max_size=3)


@given(st.lists(st.tuples(words, words, st.integers(1, 9)), min_size=1, max_size=30))
def test_pairs_come_back_merged(workspace, rows):
    data = b"".join(b"%s ||| %s ||| %d\n" % (b" ".join(s), b" ".join(t), c) for s, t, c in rows)
    expected = {}
    for s, t, c in rows:
        key = (b" ".join(s).replace(b"&amp;", b"&"), b" ".join(t).replace(b"&amp;", b"&"))
        expected[key] = expected.get(key, 0) + c
    pairs = read(workspace, data)
    assert {(s, t): c for s, t, c in shown(pairs)} == expected
    counts = np.bincount(pairs.sources.words, minlength=len(pairs.source_vocabulary))
    np.testing.assert_array_equal(counts, pairs.source_vocabulary.counts)
