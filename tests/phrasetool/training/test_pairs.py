import numpy as np

from phrasetool.phrases import Phrases
from phrasetool.training.pairs import PhrasePairs
from tests.phrasetool.training.toy_language import vocabulary


def test_merging_adds_counts_and_keeps_the_order():
    sources, targets = [[1], [1, 2], [1], [3]], [[2, 3], [3], [2, 3], [2, 3]]
    pairs = Phrases.from_lists(sources), Phrases.from_lists(targets)
    merged = PhrasePairs(*pairs, np.array([1, 2, 4, 8]), vocabulary(b"f"), vocabulary(b"e")).merged()
    assert [phrase.tolist() for phrase in merged.sources] == [[1], [1, 2], [3]]
    assert merged.counts.tolist() == [5, 2, 8]
