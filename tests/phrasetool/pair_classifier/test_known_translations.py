import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier.known_translations import KnownTranslations
from phrasetool.phrases import Phrases

TEXT = st.lists(st.integers(0, 2), max_size=2).map(tuple)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12), st.data())
def test_against_a_set_of_pairs(pairs, data):
    known = KnownTranslations(*(Phrases.from_lists(side) for side in zip(*pairs, strict=True)))
    batch = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=6)))
    wanted = [[(pairs[i][0], pairs[j][1]) in set(pairs) for j in batch] for i in batch]
    assert known.among(batch).tolist() == wanted
    assert known.translates(batch, batch[::-1]).tolist() == [
        (pairs[i][0], pairs[j][1]) in set(pairs) for i, j in zip(batch, batch[::-1], strict=True)
    ]
    target = data.draw(TEXT)
    for i in batch.tolist():
        assert known.has(i, np.array(target, np.int32)) == ((pairs[i][0], target) in set(pairs))
