import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.training.text_pairs import TextPairs, held_out
from tests.phrasetool.translator.small_pairs import texts


def test_lengths_and_vocabularies():
    sources, targets = Phrases.from_lists([[0, 1], [1, 1, 1], [2]]), Phrases.from_lists([[0], [1], [1, 0, 2]])
    pairs = TextPairs(sources, targets, [b"a", b"b", b"c"], [b"x", b"y", b"z"], True)
    short = pairs.up_to(2)
    assert (len(short), short.escaped) == (1, True)
    assert len(pairs.up_to(3)) == 3
    with pytest.raises(ValueError, match="no pair has 0 words"):
        pairs.up_to(0)
    source = pairs.source_vocabulary(2, 0)
    assert source.words == [b"<unk>", b"b"]
    assert source.counts.tolist() == [2, 4]
    assert pairs.target_vocabulary(1, 2).words == [b"<unk>", b"x", b"y"]
    known = pairs.target_vocabulary(1, 0, {b"y", b"other"})
    assert known.words == [b"<unk>", b"y"]
    assert known.counts.tolist() == [3, 2]
    ids = pairs.in_ids(source, known)
    assert [s.tolist() for s in ids.sources] == [[0, 1], [1, 1, 1], [0]]
    assert [t.tolist() for t in ids.targets] == [[0], [1], [1, 0, 0]]


@pytest.mark.parametrize("count", [4, 100, 3000])
def test_whole_groups_are_held_out(count):
    pairs = texts(count, longest=3)
    train, development = held_out(pairs, 1)
    assert len(train) + len(development) == count
    assert 1 <= len(development) <= min(2000, max(count // 2, 1))
    sides = [{tuple(source.tolist()) for source in part.sources} for part in (train, development)]
    assert not sides[0] & sides[1]
    again = held_out(pairs, 1)[1]
    assert np.array_equal(again.sources.words, development.sources.words)
    if count == 3000:
        assert abs(len(sides[1]) - (len(sides[0]) + len(sides[1])) / 20) < 2
        other = held_out(pairs, 2)[1]
        assert not np.array_equal(other.sources.words, development.sources.words)


def test_one_source_alone_cannot_be_held_out():
    pairs = texts(1)
    with pytest.raises(ValueError, match="one source"):
        held_out(pairs.select(np.zeros(5, np.int64)), 1)
