from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.unique_phrases import distinct_phrases, number_distinct

PHRASES = st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=30)


@given(PHRASES)
def test_number_distinct(lists):
    numbers, firsts = number_distinct(Phrases.from_lists(lists))
    distinct = []
    for phrase in lists:
        if phrase not in distinct:
            distinct.append(phrase)
    assert numbers.tolist() == [distinct.index(phrase) for phrase in lists]
    assert firsts.tolist() == [lists.index(phrase) for phrase in distinct]


@given(PHRASES)
def test_distinct_phrases(lists):
    phrases = Phrases.from_lists(lists)
    numbers, distinct = distinct_phrases(phrases)
    assert [distinct[number].tolist() for number in numbers] == lists
    assert numbers.tolist() == number_distinct(phrases)[0].tolist()
    assert len(distinct) == len({tuple(phrase) for phrase in lists})
