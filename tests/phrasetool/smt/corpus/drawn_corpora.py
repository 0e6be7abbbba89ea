"""Small corpora of few words."""

from hypothesis import strategies as st

WORDS = 4
SENTENCE = st.lists(st.integers(0, WORDS - 1), max_size=12)
CORPUS = st.lists(SENTENCE, min_size=1, max_size=25)


def numbers_in(sets):
    """Return the sentence numbers of each set of `SentenceSets`."""
    return [
        (sets.own[start : start + count] if start >= 0 else sets.pool[~start : ~start + count]).tolist()
        for start, count in zip(sets.starts.tolist(), sets.counts.tolist(), strict=True)
    ]
