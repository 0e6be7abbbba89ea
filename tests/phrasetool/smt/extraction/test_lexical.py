import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.bitext import Bitext
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.lexical import count_word_pairs, estimate_lexical_table
from tests import naive_extraction as naive
from tests.listed_alignments import alignments_of
from tests.phrasetool.smt.extraction.small_bitexts import bitext_of, sentence_pairs


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
    assert not len(estimate_lexical_table(Bitext(empty, empty, alignments_of([]), Symbols(), Symbols())).targets)
    words = [[b"w%d" % i] for i in range(256)]
    table = estimate_lexical_table(bitext_of([[b"a"]] * 256, words, [[(0, 0)]] * 256))
    assert set(table.target_given_source.tolist()) == {0.0039062}
    assert set(table.source_given_target.tolist()) == {1.0}
