"""Counting and smoothing with files: the model of those in memory, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.language_model.counts_on_disk import DiskText
from phrasetool.smt.language_model.kneser_ney import estimate_language_model
from phrasetool.smt.language_model.ngram_counts import MARKERS
from phrasetool.smt.language_model.smoothing_on_disk import estimate_on_disk


@given(
    st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=1, max_size=40), st.integers(1, 4),
    st.lists(st.integers(0, 2), max_size=4).map(sorted), st.sampled_from([1, 3000, 1 << 30]),
    st.sampled_from([1, 7, 1000]),
)  # fmt: skip
def test_the_same_model(corpus, order, prune, memory, block):
    symbols = Symbols(MARKERS)
    sentences = symbols.read_lines("".join(" ".join(sentence) + "\n" for sentence in corpus).encode())
    expected = estimate_language_model(symbols.words, sentences, order, prune[:order])
    text = DiskText(None, memory)
    text.block = block
    half = len(sentences) // 2
    text.append(sentences.part(0, half))
    text.append(sentences.part(half, len(sentences)))
    found = estimate_on_disk(symbols.words, text, order, prune[:order])
    assert found.discounts == expected.discounts
    assert found.counted == expected.counted
    assert found.model.words == expected.model.words
    for ours, table in zip(found.model.tables, expected.model.tables, strict=True):
        whole = ours.part(0, len(ours))
        np.testing.assert_array_equal(whole.words, table.words)
        np.testing.assert_array_equal(whole.log_probabilities, table.log_probabilities)
        np.testing.assert_array_equal(whole.backoffs, table.backoffs)
