import pytest

from phrasetool.augment.compounds import CompoundRules, Compounds, Link, learn_compounds
from phrasetool.augment.evidence import WordEntries
from tests.phrasetool.augment.toy_words import entry, toy_entries


@pytest.mark.parametrize("turned", [False, True])
def test_links_and_order_are_learnt_from_translations(turned):
    rules = learn_compounds(toy_entries(turned))
    assert set(rules.links) == {Link(), Link("", "s"), Link("e", "")}
    assert sum(rules.links.values()) == pytest.approx(1)
    assert rules.links[Link()] > max(rules.links[Link("", "s")], rules.links[Link("e", "")])
    assert (rules.turned, rules.least) == (turned, 3)


def test_an_unknown_compound_gets_the_product_of_its_parts():
    entries = toy_entries()
    compounds = Compounds(entries, learn_compounds(entries))
    assert compounds.splits("steinwald") == [("stein", "wald")]
    assert compounds.splits("bootssteinhaus")[0] in {("boot", "steinhaus"), ("boot", "stein", "haus")}
    assert compounds.splits("schulhund") == [("schule", "hund")]
    best = compounds.proposals("steinwald")[0]
    assert (best.target, best.origin) == ("stone forest", "stein + wald")
    assert (best.weight, best.inverse, *best.lexical) == pytest.approx((0.8 / 0.9 * 0.8 / 0.9, 0.25, 1 / 16, 1 / 64))
    weights = [proposal.weight for proposal in compounds.proposals("steinwald")]
    assert weights == sorted(weights, reverse=True)


def test_neither_the_word_itself_nor_short_words_are_parts():
    entries = WordEntries({"ab": [entry("x")], "abc": [entry("y")], "haus": [entry("house")]}, {})
    compounds = Compounds(entries, CompoundRules())
    assert compounds.splits("haus") == compounds.splits("abhaus") == compounds.proposals("unknown") == []
    assert compounds.splits("abchaus") == [("abc", "haus")]


def test_translations_of_turned_compounds_start_with_the_last_part():
    compounds = Compounds(toy_entries(), CompoundRules(turned=True))
    assert compounds.proposals("steinwald")[0].target == "forest stone"


def test_counts_decide_between_splits():
    entries = WordEntries(
        {word: [entry(word)] for word in ("abc", "defghi", "abcdef", "ghi")},
        {"abc": 1, "defghi": 1, "abcdef": 9, "ghi": 9},
    )
    assert Compounds(entries, CompoundRules()).splits("abcdefghi") == [("abcdef", "ghi"), ("abc", "defghi")]


def test_words_without_spaces_have_parts_of_one_letter():
    entries = WordEntries({"中": [entry("middle")], "国": [entry("country")], "山": [entry("mountain")]}, {})
    rules = learn_compounds(entries)
    assert rules == CompoundRules(least=1)
    assert Compounds(entries, rules).proposals("中国")[0].target == "middle country"
