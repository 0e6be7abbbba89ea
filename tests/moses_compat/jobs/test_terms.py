"""Selection of term pairs for a lexicon."""

from moses_compat.jobs.dictionaries import TermPair, best_terms, is_term, spread
from tests.variants import for_each


@for_each(
    ("words", "found"),
    [
        ("haus", True), ("der", True), (",", False), ("3 000", False), ("b2", True), ("haus ,", False),
        ("der hund", False), ("hund der", False), ("haus der kunst", True), ("200 meter", True),
    ],
)  # fmt: skip
def test_is_term(words, found):
    assert is_term(words.split(), {"der"}) == found


def pair(source, target, score):
    return TermPair(source, target, score, score, score, 1)


def test_pairs_that_only_add_or_lack_words_are_left_out():
    good = pair("haus", "house", 0.9), pair("haus", "home", 0.5), pair("rotes haus", "red house", 0.4)
    bad = pair("haus", "the house", 0.3), pair("altes haus", "house", 0.2), pair("rotes haus", "red", 0.1)
    assert best_terms([*bad, *good], 3) == list(good)
    assert best_terms([*bad, *good], 1) == [good[0], good[2]]
    # Part of a word does not count as part of a phrase.
    assert len(best_terms([pair("haus", "house", 0.5), pair("haus", "houses", 0.4)], 3)) == 2


def test_spread():
    pairs = [pair(str(k), "x", 1) for k in range(10)]
    assert [term.source for term in spread(pairs, 4)] == ["0", "3", "6", "9"]
    assert spread(pairs, 1) == pairs[:1]
    assert spread(pairs, 20) == pairs
