import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.extraction.occurrences import sentence_phrase_pairs
from tests import naive_extraction as naive
from tests.phrasetool.smt.extraction.small_bitexts import sentence_pairs


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
