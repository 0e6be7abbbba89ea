import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier.lexicon import LexiconMaker, known_parts, word_parts
from phrasetool.vocabulary import Vocabulary


def marked(parts):
    return [part.replace(b"\x02", b"<").replace(b"\x03", b">").decode() for part in parts]


def test_the_parts_of_a_word():
    assert marked(word_parts(b"aba", 2)) == ["a", "b", "<a", "ab", "ba", "a>"]
    assert marked(word_parts("电车".encode(), 3)) == ["电", "车", "<电", "电车", "车>", "<电车", "电车>"]


@given(st.binary(min_size=1, max_size=8), st.integers(1, 6))
def test_parts_of_any_bytes(word, longest):
    parts = word_parts(word, longest)
    whole = b"\x02" + word + b"\x03"
    assert len(set(parts)) == len(parts)
    assert all(part in whole for part in parts)
    assert all(1 <= len(part.decode("utf-8", "surrogateescape")) <= longest for part in parts)
    # Every character is a part.
    assert set(parts) >= {c.encode("utf-8", "surrogateescape") for c in word.decode("utf-8", "surrogateescape")} - {
        b"\x02", b"\x03"
    }  # fmt: skip


def test_parts_that_words_share_the_most_frequent_first():
    found = known_parts([b"ab", b"ac", b"bc"], 2, 100)
    assert marked(found.words) == ["<unk>", "<a", "a", "b", "c", "c>"]
    assert found.counts.tolist() == [0, 2, 2, 2, 2, 2]
    assert marked(known_parts([b"ab", b"ac", b"ad", b"cd"], 2, 3).words) == ["<unk>", "<a", "a", "c"]
    assert known_parts([b"ab", b"ac"], 0, 100).words == [b"<unk>"]


def test_what_is_known_of_words():
    vocabulary, parts = Vocabulary([b"<unk>", b"ab", b"c"]), Vocabulary([b"<unk>", b"a", b"c"])
    found = LexiconMaker(vocabulary, parts, 2)([b"ab", b"c", b"ac", b"x", b"<unk>"])
    assert found.ids.tolist() == [1, 2, 0, 0, 0]
    assert [text.tolist() for text in found.parts] == [[1], [2], [1, 2], [], []]
    assert found.known.tolist() == [True, True, True, False, False]
    assert len(found) == 5
    without = LexiconMaker(vocabulary, parts, 0)([b"ab", b"ac"])
    assert without.ids.tolist() == [1, 0]
    assert without.known.tolist() == [True, False]
    assert np.array_equal(without.parts.lengths, [0, 0])
