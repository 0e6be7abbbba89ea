"""Words as numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.word_hashes import hash_words
from tests import naive

BLANKS = st.sampled_from([b" ", b"\t", b"  ", b""])
FIELD = st.lists(st.tuples(BLANKS, st.sampled_from([b"a", b"b", b"&amp;", b"[X]", b"\xff"])), max_size=5).map(
    lambda pairs: b"".join(blank + word for blank, word in pairs)
)


@given(st.lists(FIELD, max_size=6))
def test_a_word_is_one_number_and_no_other_word_is_that(fields):
    text = np.frombuffer(b"|".join(fields) + b"|", np.uint8)
    ends = np.cumsum([len(field) + 1 for field in fields], dtype=np.int64) - 1
    starts = ends - [len(field) for field in fields]
    found = hash_words(text, starts.astype(np.int64), ends)
    words = [word for field in fields for word in naive.tokens(field)]
    assert found.lengths.tolist() == [len(naive.tokens(field)) for field in fields]
    assert len(found.words) == len(words)
    assert len(dict(zip(words, found.words.tolist(), strict=True))) == len(set(found.words.tolist()))


def test_numbers_are_spread():
    """Words of one byte differ in half of their bits, the highest and the lowest among them."""
    text = np.arange(33, 127, dtype=np.uint8)
    words = hash_words(text, np.arange(94), np.arange(1, 95)).words
    bits = np.unpackbits(words.view(np.uint8).reshape(94, 8), axis=1)
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.25).all()
