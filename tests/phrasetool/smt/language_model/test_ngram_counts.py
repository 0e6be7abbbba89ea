import numpy as np

from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.language_model.ngram_counts import MARKERS, count_ngrams


def test_counts():
    symbols = Symbols(MARKERS)
    counts = count_ngrams(symbols.read_lines(b"a b a b\nb a\n"), 5, 3)
    ids = {word: i for i, word in enumerate(symbols.words)}
    bigrams = counts.orders[1]
    words = counts.words(2, np.arange(len(bigrams)))
    result = {tuple(row): (r, a) for row, r, a in zip(words.tolist(), bigrams.raw, bigrams.adjusted, strict=True)}
    # Raw counts, and adjusted ones: for n-grams without <s>, the number of distinct preceding words.
    expected = {"<s> a": (1, 1), "a b": (2, 2), "b a": (2, 2), "b </s>": (1, 1), "<s> b": (1, 1), "a </s>": (1, 1)}
    assert result == {tuple(ids[w.encode()] for w in gram.split()): value for gram, value in expected.items()}
    assert counts.orders[0].raw.tolist() == [0, 0, 2, 3, 3]
    assert counts.orders[0].adjusted.tolist() == [0, 0, 2, 2, 2]
