import pytest

from phrasetool.augment.augmenter import LEAST_SHARE, MOST, Augmenter, Copies, is_number, learn_augmenter, measure_trust
from phrasetool.augment.evidence import EVIDENCE, Proposal, WordEntries
from tests.phrasetool.augment.toy_words import entry, toy_entries


@pytest.mark.parametrize(
    ("word", "expected"), [("1", True), ("1.000,5", True), ("-3%", True), ("a1", False), ("1.", False), ("2-0", False)]
)
def test_numbers(word, expected):
    assert is_number(word) == expected


@pytest.mark.parametrize(("target", "expected"), [("2.5", "7.25"), ("2,5", "7,25")])
def test_the_form_of_numbers_is_learnt(target, expected):
    copies = Copies(WordEntries({"2,5": [entry(target)], "17": [entry("17")]}, {}))
    assert [proposal.target for proposal in copies.proposals("7,25")] == [expected]
    assert [proposal.target for proposal in copies.proposals("1999")] == ["1999"]


def test_a_name_is_copied_as_often_as_known_words_are():
    entries = WordEntries({"berlin": [entry("berlin")], "haus": [entry("house")], "baum": [entry("tree")]}, {})
    (name,) = Copies(entries).proposals("oslo")
    assert (name.target, name.weight) == ("oslo", pytest.approx(2 / 5))


class Said:
    """Source of evidence with predefined proposals."""

    def __init__(self, name, found):
        self.name, self._found = name, found

    def proposals(self, word):
        return [
            Proposal(target, weight, 0.5, (0.25, 0.125), f"{self.name} of {word}")
            for target, weight in self._found(word)
        ]


ENTRIES = WordEntries(
    {f"w{i}": [entry(f"t{i}", 0.7), entry("rare", 0.05), entry("other", 0.25)] for i in range(40)}, {}
)
WORDS = ENTRIES.ordered
RIGHT = Said("right", lambda word: [(word.replace("w", "t"), 0.9), ("rare", 0.1)])
WRONG = Said("wrong", lambda word: [("bad", 0.9), ("worse", 0.1)])


def test_trust_is_the_share_of_correct_proposals():
    right, wrong = (measure_trust(source, ENTRIES, WORDS) for source in (RIGHT, WRONG))
    assert (right.words, right.first, wrong.first) == (40, 1.0, 0.0)
    first, second = right.of(RIGHT.proposals("w1"))
    assert first > 0.9
    assert second < 0.1
    assert max(wrong.of(WRONG.proposals("w1"))) < 0.1
    assert right.of([]) == []
    silent = measure_trust(Said("silent", lambda word: []), ENTRIES, WORDS)
    assert (silent.words, silent.first) == (0, 0.0)


def test_proposals_of_several_sources_are_more_probable():
    half = Said("half", lambda word: [(word.replace("w", "t") if int(word[1:]) % 2 else "bad", 0.5)])
    sources = [half, Said("again", half._found), WRONG]
    trusts = {source.name: measure_trust(source, ENTRIES, WORDS) for source in sources}
    one, both = (Augmenter(some, trusts).entries("w1")[0] for some in (sources[:1], sources[:2]))
    (trust,) = trusts["half"].of(half.proposals("w1"))
    assert trust == pytest.approx(0.5, abs=0.1)
    assert one.scores == pytest.approx((0.5, 0.25, trust, 0.125))
    assert both.scores[2] == pytest.approx(1 - (1 - trust) ** 2)
    assert (one.sources, both.sources) == ({0}, {0, 1})
    assert both.origin == "half of w1"
    # Entries less than half as probable as the best are left out.
    for word in ("w1", "w2"):
        every = {one.target for source in sources for one in source.proposals(word)}
        result = Augmenter(sources, trusts).entries(word)
        assert result[0].scores[2] > 0
        assert {entry.target for entry in result} < every
        assert all(entry.scores[2] >= LEAST_SHARE * result[0].scores[2] for entry in result)


def test_the_number_of_entries_and_their_total_probability_are_limited():
    many = Said("many", lambda word: [(f"x{i}", 1.0) for i in range(MOST + 9)])
    trusts = {"many": measure_trust(Said("many", lambda word: [(word.replace("w", "t"), 1.0)]), ENTRIES, WORDS)}
    result = Augmenter([many], trusts).entries("new")
    assert len(result) == MOST
    assert sum(entry.scores[2] for entry in result) <= 1 + 1e-9
    assert Augmenter([Said("silent", lambda word: [])], {"silent": trusts["many"]}).entries("new") == []


def test_each_word_gets_entries_of_its_evidence():
    augmenter = learn_augmenter(toy_entries())
    assert [source.name for source in augmenter.evidence] == list(EVIDENCE)
    form = augmenter.entries("schnellst")[0]
    assert (form.target, EVIDENCE.index("inflection") in form.sources) == ("fast", True)
    compounds = [entry for entry in augmenter.entries("tischwald") if 0 in entry.sources]
    assert compounds[0].target == "table forest"
    assert "ωωω" in [entry.target for entry in augmenter.entries("ωωω")]


def test_a_selection_of_sources():
    augmenter = learn_augmenter(toy_entries(), ("copy", "compound"))
    assert [source.name for source in augmenter.evidence] == ["compound", "copy"]
    assert sorted(augmenter.trusts) == ["compound", "copy"]
    with pytest.raises(ValueError, match="unknown source of evidence 'magic'; expected some of compound"):
        learn_augmenter(toy_entries(), ("magic",))


def test_the_same_seed_gives_the_same_entries():
    first, second = (learn_augmenter(toy_entries(), seed=3).entries("blauste") for _ in range(2))
    assert first == second
