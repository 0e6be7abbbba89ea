"""Tag sequences that occur together in sentence pairs, compared with an exhaustive search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.tagger import tag_support
from phrasetool.tagger.tag_support import TagSupport

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=12, unique_by=tuple)
SENTENCES = st.lists(st.tuples(*[st.lists(st.integers(0, 2), max_size=7)] * 2), max_size=40)


def has(sentence, wanted):
    return any(sentence[i : i + len(wanted)] == wanted for i in range(len(sentence)))


@given(SEQUENCES, SEQUENCES, SENTENCES, st.integers(1, 3))
def test_supported_pairs_occur_in_some_sentence_pair(sources, targets, sentences, parts):
    pairs = [(s, t) for s in range(len(sources)) for t in range(len(targets))]
    expected = [
        any(has(source, sources[s]) and has(target, targets[t]) for source, target in sentences) for s, t in pairs
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tag_support, "_CELLS", 64)
        patch.setattr(tag_support, "_PAIRS", 5)
        support = TagSupport(Phrases.from_lists(sources), Phrases.from_lists(targets), np.array(pairs))
        for part in np.array_split(np.arange(len(sentences)), parts):
            support.add(*(Phrases.from_lists([sentences[row][side] for row in part]) for side in range(2)))
    assert support.supported.tolist() == expected
