"""Conversion between words and ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.corpus.symbols import Symbols

_WORD = st.binary(min_size=1, max_size=9).filter(lambda w: not set(w) & set(b" \t\r\n"))


def test_ids_are_in_order_of_first_occurrence():
    symbols = Symbols([b"b"])
    phrases = symbols.read_lines(b"a b  a\r\n\n\tc &apos;s 's\n")
    assert [list(p) for p in phrases] == [[1, 0, 1], [], [2, 3, 4]]
    assert symbols.words == [b"b", b"a", b"c", b"&apos;s", b"'s"]
    assert symbols.id(b"c") == 2
    assert symbols.id(b"zz") == -1
    assert symbols.join([1, 0]) == b"a b"


def test_unknown_words_read_as_minus_one_when_not_added():
    symbols = Symbols([b"a"])
    assert symbols.read_lines(b"a x\nx a", add=False)[1].tolist() == [-1, 0]
    assert len(symbols) == 1


@pytest.mark.parametrize(("text", "count"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2), (b"\na", 2)])
def test_a_line_feed_ends_a_line(text, count):
    assert len(Symbols().read_lines(text)) == count


@pytest.mark.parametrize("word", [b"", b"a b", b"a\n"])
def test_what_is_not_one_word_is_refused(word):
    with pytest.raises(ValueError, match="not one word"):
        Symbols().add(word)


@given(st.lists(st.lists(_WORD, max_size=6), max_size=30))
def test_equals_a_dictionary(lines):
    known: dict[bytes, int] = {}
    expected = [[known.setdefault(word, len(known)) for word in line] for line in lines]
    symbols = Symbols()
    assert [p.tolist() for p in symbols.read_lines(b"".join(b" ".join(line) + b"\n" for line in lines))] == expected
    assert symbols.words == list(known)


def test_tables_grow_with_many_and_with_long_words():
    rng = np.random.default_rng(1)
    words = [str(i).encode() for i in rng.permutation(20_000)] + [b"x" * 100_000, b"y" * 9000]
    symbols = Symbols()
    text = b"\n".join(words[i] + b" " + words[-1 - i] for i in range(len(words)))
    phrases = symbols.read_lines(text)
    assert [symbols.join(p) for p in phrases] == text.split(b"\n")
    assert len(symbols) == len(words)
    assert [symbols.id(w) for w in symbols.words] == list(range(len(words)))


@pytest.mark.parametrize("word", [b"a\rb", b"a\r", b"\x0b", "\u2028".encode()])
def test_added_words_equal_words_that_are_read(word):
    """A carriage return is part of a word, except directly before the end of a line."""
    symbols = Symbols()
    assert symbols.read_lines(b"x " + word + b" y\r\n" + word + b" z").lengths.tolist() == [3, 2]
    assert symbols.add(word) == 1
    assert symbols.words == [b"x", word, b"y", b"z"]
    assert Symbols([word]).words == [word]
