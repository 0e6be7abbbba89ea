import numpy as np
import pytest

from phrasetool.pair_classifier.search_vectors import SearchVectors
from phrasetool.pair_classifier.sentence_units import lexicon_units
from phrasetool.sentences import read_words

TABLE = np.random.default_rng(1).standard_normal((256, 5)).astype(np.float16)


def test_a_vector_is_the_sum_over_all_units():
    lines = ["the dog sleeps", "", "the the dog", "unknown 42", "dog"]
    texts, words = read_words(lines)
    found = SearchVectors(TABLE).encode(texts, words)
    for line, vector in zip(lines, found, strict=True):
        units = [unit for word in line.split() for unit in lexicon_units([word.encode()], 256)[0]]
        total = TABLE.astype(np.float64)[units].sum(0)
        np.testing.assert_allclose(vector, total / max(np.linalg.norm(total), 1e-12), atol=1e-6)
    # What else is encoded changes nothing.
    alone = [SearchVectors(TABLE).encode(*read_words([line])) for line in lines]
    np.testing.assert_array_equal(np.concatenate(alone), found)


@pytest.mark.parametrize("shape", [(0, 4), (100, 4), (4,)])
def test_tables_that_cannot_be(shape):
    with pytest.raises(ValueError, match="a power of two"):
        SearchVectors(np.zeros(shape, np.float16))
