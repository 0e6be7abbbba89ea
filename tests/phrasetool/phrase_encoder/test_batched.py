from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrase_encoder.encoder import BatchedEncoder
from phrasetool.phrases import Phrases

VOCABULARY = 9


class Summing(BatchedEncoder):
    """Encode a phrase as its length and the sum of its word ids; record the batches."""

    def __init__(self, batch_positions, more_positions):
        super().__init__(VOCABULARY, 2)
        self.batch_positions, self.more_positions = batch_positions, more_positions
        self.batches = []

    def _encode_batch(self, offsets, words, unit, encoded, transformed):
        assert offsets[0] == 0
        assert offsets[-1] == len(words)
        self.batches.append(np.diff(offsets).tolist())
        for i, (first, last) in enumerate(pairwise(offsets)):
            encoded[i] = last - first, words[first:last].sum()
        transformed[:] = -encoded


PHRASES = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=9), max_size=20)


@given(PHRASES, st.integers(1, 25), st.integers(0, 2))
def test_every_phrase_is_in_one_batch_and_batches_are_as_full_as_possible(lists, most, more):
    encoder = Summing(most, more)
    encoded, transformed = encoder.encode(Phrases.from_lists(lists))
    assert encoded.tolist() == [[len(phrase), sum(phrase)] for phrase in lists]
    assert (transformed == -encoded).all()
    assert [length for batch in encoder.batches for length in batch] == [len(phrase) for phrase in lists]
    sizes = [[length + more for length in batch] for batch in encoder.batches]
    assert all(len(batch) == 1 or sum(batch) <= most for batch in sizes)
    # The next phrase would have exceeded the limit.
    assert all(sum(batch) + following[0] > most for batch, following in pairwise(sizes))


@pytest.mark.parametrize("word", [-1, VOCABULARY])
def test_words_outside_the_vocabulary_are_refused_before_anything_is_encoded(word):
    encoder = Summing(3, 0)
    with pytest.raises(ValueError, match="a word id is outside the vocabulary"):
        encoder.encode(Phrases.from_lists([[1, 2], [word]]))
    assert encoder.batches == []
