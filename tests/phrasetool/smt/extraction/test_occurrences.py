import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.aligning.alignments import Alignments
from phrasetool.smt.corpus.bitext import Bitext
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.lexical import count_word_pairs, estimate_lexical_table
from phrasetool.smt.extraction.occurrences import sentence_phrase_pairs
from tests import naive_extraction as naive


def bitext_of(sources, targets, alignments):
    """From lists of lists of words."""
    source_symbols, target_symbols = Symbols(), Symbols()
    read = [
        symbols.read_lines(b"".join(b" ".join(sentence) + b"\n" for sentence in sentences))
        for symbols, sentences in ((source_symbols, sources), (target_symbols, targets))
    ]
    return Bitext(*read, Alignments.from_lists(alignments), source_symbols, target_symbols)


@st.composite
def sentence_pairs(draw, words=(b"a", b"b", b"c"), most=6):
    source = draw(st.lists(st.sampled_from(words), min_size=1, max_size=most))
    target = draw(st.lists(st.sampled_from(words), min_size=1, max_size=most))
    point = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
    return source, target, sorted(draw(st.sets(point, max_size=8)))


@given(sentence_pairs(most=9), st.sampled_from([1, 2, 3, 7, 12]))
def test_one_sentence_agrees_with_naive(pair, max_length):
    source, target, points = pair
    found = sentence_phrase_pairs(len(source), len(target), points, max_length)
    assert sorted(map(tuple, found.tolist())) == naive.spans(len(source), len(target), points, max_length)
    assert found.dtype == np.int32


def test_order_of_one_sentence():
    """Moses: target spans from the left, then source spans that grow to the left and to the right."""
    assert sentence_phrase_pairs(3, 2, [(1, 0)]).tolist() == [
        [1, 1, 0, 0], [1, 2, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0],
        [1, 1, 0, 1], [1, 2, 0, 1], [0, 1, 0, 1], [0, 2, 0, 1],
    ]  # fmt: skip


def test_one_sentence_refuses():
    with pytest.raises(ValueError, match="outside of 2 and 1 words"):
        sentence_phrase_pairs(2, 1, [(0, 1)])
    assert len(sentence_phrase_pairs(2, 1, [])) == 0


def test_bitext_refuses():
    good = [[b"a"]], [[b"b"]], [[(0, 0)]]
    bitext_of(*good)
    for wrong, message in (
        (([[b"a"], [b"a"]], *good[1:]), "2 source sentences, 1 target sentences, 1 alignments"),
        (([[]], *good[1:]), "source sentence 0 is empty"),
        ((*good[:2], [[(1, 0)]]), "alignment 0 has a point outside"),
        (([[b"|||"]], *good[1:]), "separates the fields"),
    ):
        with pytest.raises(ValueError, match=message):
            bitext_of(*wrong)


@given(st.lists(sentence_pairs(), min_size=1, max_size=5))
def test_lexical_table_agrees_with_naive(pairs):
    bitext = bitext_of(*zip(*pairs, strict=True))
    forward, backward = naive.lexical(*zip(*pairs, strict=True))
    table = estimate_lexical_table(bitext)
    source, target = ([None, *symbols.words] for symbols in (bitext.source_symbols, bitext.target_symbols))
    found = [(source[s], target[t]) for s, t in zip(table.sources, table.targets, strict=True)]
    assert dict(zip(found, table.target_given_source.tolist(), strict=True)) == forward
    assert dict(zip(found, table.source_given_target.tolist(), strict=True)) == backward


@given(st.lists(sentence_pairs(), min_size=1, max_size=5))
def test_counts_in_chunks(pairs):
    bitext = bitext_of(*zip(*pairs, strict=True))
    whole = count_word_pairs(bitext)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("phrasetool.smt.extraction.lexical._CHUNK", 1)
        parts = count_word_pairs(bitext)
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))


def test_rounding_of_halves():
    """1/256 = 0.00390625 lies between two numbers of seven decimals; the C library takes the even one."""
    empty = Phrases(np.zeros(1, np.int64), np.zeros(0, np.int32))
    assert not len(
        estimate_lexical_table(Bitext(empty, empty, Alignments.from_lists([]), Symbols(), Symbols())).targets
    )
    words = [[b"w%d" % i] for i in range(256)]
    table = estimate_lexical_table(bitext_of([[b"a"]] * 256, words, [[(0, 0)]] * 256))
    assert set(table.target_given_source.tolist()) == {0.0039062}
    assert set(table.source_given_target.tolist()) == {1.0}
