import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.aligning.alignments import Bitext
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.lexical import count_word_pairs, estimate_lexical_table
from tests import naive_extraction as naive
from tests.listed_alignments import alignments_of
from tests.phrasetool.smt.extraction.small_bitexts import bitext_of, extract_phrase_pairs, sentence_pairs


@given(st.lists(sentence_pairs(), min_size=1, max_size=5))
def test_lexical_table_agrees_with_naive(pairs):
    bitext = bitext_of(*zip(*pairs, strict=True))
    forward, backward = naive.lexical(*zip(*pairs, strict=True))
    table = estimate_lexical_table(bitext)
    source, target = ([None, *symbols.words] for symbols in (bitext.source_symbols, bitext.target_symbols))
    result = [(source[s], target[t]) for s, t in zip(table.sources, table.targets, strict=True)]
    assert dict(zip(result, table.target_given_source.tolist(), strict=True)) == forward
    assert dict(zip(result, table.source_given_target.tolist(), strict=True)) == backward


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


def test_ties_are_broken_in_each_direction():
    """Of two alignments seen once each, the larger one by target words is not the larger one by source words."""
    bitext = bitext_of([[b"a", b"b"]] * 2, [[b"x", b"y"]] * 2, [[(0, 0), (0, 1)], [(0, 0), (1, 0)]])
    entries = extract_phrase_pairs(bitext)
    whole = next(i for i in range(len(entries)) if len(entries.sources[i]) == len(entries.targets[i]) == 2)
    # By target words ({0}, {0}) is smaller than ({0, 1}, {}); by source words ({0, 1}, {}) is larger than ({0}, {0}).
    assert entries.alignments[whole] == [(0, 0), (1, 0)]
    # lex(s|t) uses the other alignment: a is aligned with x and y, b with nothing.
    w = {("a", "x"): 2 / 3, ("a", "y"): 0.5, ("b", None): 1.0}
    expected = (round(w["a", "x"], 7) + w["a", "y"]) / 2 * w["b", None]
    assert entries.scores[whole, 1] == pytest.approx(expected, rel=1e-6)
