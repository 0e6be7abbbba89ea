import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.kernels.bytes import common_prefix, copy_bytes, same_bytes, skip_blanks, token_end

TEXT = st.text("ab \t", max_size=12).map(str.encode)


def array(text):
    return np.frombuffer(text, np.uint8)


@given(TEXT)
def test_a_walk_over_blanks_and_tokens_finds_the_words(text):
    words, i = [], skip_blanks(array(text), 0, len(text))
    while i < len(text):
        first, i = i, token_end(array(text), i, len(text))
        words.append(text[first:i])
        i = skip_blanks(array(text), i, len(text))
    assert words == text.split()


@given(TEXT, TEXT)
def test_equal_beginnings(a, b):
    size = min(len(a), len(b))
    same = next((k for k in range(size) if a[k] != b[k]), size)
    assert common_prefix(array(b"." + a), 1, array(b), 0, size) == same
    assert same_bytes(array(a), 0, array(b), 0, size) == (a[:size] == b[:size])


@given(TEXT, st.integers(0, 3))
def test_bytes_are_copied_to_their_place(text, place):
    out = np.zeros(place + len(text) + 1, np.uint8)
    assert copy_bytes(array(text), 0, len(text), out, place) == place + len(text)
    assert out.tobytes() == bytes(place) + text + b"\0"
