from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier.sentence_units import lexicon_units, sentence_units, word_units
from phrasetool.phrases import Phrases


def test_units_of_words():
    assert word_units(b"Ab") == [b"wab", b"g\x02ab", b"gab\x03", b"g\x02ab\x03"]
    assert word_units("狗好".encode()) == [
        *(unit.encode() for unit in ("w狗好", "c狗", "c好", "g\x02狗好", "g狗好\x03", "g\x02狗好\x03")),
    ]
    # A word of a character has no ends to tell from itself but one, and no byte is refused.
    assert word_units(b"a") == [b"wa", b"g\x02a\x03"]
    assert word_units(b"\xff") == [b"w\xff", b"g\x02\xff\x03"]


@given(st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=4))
def test_a_sentence_has_the_units_of_its_words(texts):
    words = [b"one", b"two", "三".encode(), b"FOUR", b"x"]
    lexicon = lexicon_units(words, 64)
    assert lexicon.words.max() < 64
    found = sentence_units(Phrases.from_lists(texts), lexicon)
    assert [row.tolist() for row in found] == [[unit for word in text for unit in lexicon[word]] for text in texts]
