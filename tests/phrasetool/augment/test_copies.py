import pytest

from phrasetool.augment.copies import Copies, is_number
from phrasetool.augment.word_entries import WordEntries
from tests.phrasetool.augment.toy_words import entry


@pytest.mark.parametrize(
    ("word", "expected"), [("1", True), ("1.000,5", True), ("-3%", True), ("a1", False), ("1.", False), ("2-0", False)]
)
def test_numbers(word, expected):
    assert is_number(word) == expected


@pytest.mark.parametrize(("target", "expected"), [("2.5", "7.25"), ("2,5", "7,25")])
def test_the_form_of_numbers_is_learnt(target, expected):
    copies = Copies(WordEntries({"2,5": [entry(target)], "17": [entry("17")]}, {}))
    assert [one.target for one in copies.proposals("7,25")] == [expected]
    assert [one.target for one in copies.proposals("1999")] == ["1999"]


def test_a_name_is_copied_as_often_as_known_words_are():
    entries = WordEntries({"berlin": [entry("berlin")], "haus": [entry("house")], "baum": [entry("tree")]}, {})
    (name,) = Copies(entries).proposals("oslo")
    assert (name.target, name.weight) == ("oslo", pytest.approx(2 / 5))
