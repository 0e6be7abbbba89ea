"""Small corpora of few words."""

from hypothesis import strategies as st

WORDS = 4
SENTENCE = st.lists(st.integers(0, WORDS - 1), max_size=12)
CORPUS = st.lists(SENTENCE, min_size=1, max_size=25)
