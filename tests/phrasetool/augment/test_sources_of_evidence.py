import pytest

from phrasetool.augment.evidence import EVIDENCE
from phrasetool.augment.sources_of_evidence import learn_augmenter
from tests.phrasetool.augment.toy_words import toy_entries


def test_each_word_gets_what_its_evidence_says():
    augmenter = learn_augmenter(toy_entries())
    assert [source.name for source in augmenter.evidence] == list(EVIDENCE)
    form = augmenter.entries("schnellst")[0]
    assert (form.target, EVIDENCE.index("inflection") in form.sources) == ("fast", True)
    compounds = [entry for entry in augmenter.entries("tischwald") if 0 in entry.sources]
    assert compounds[0].target == "table forest"
    assert "ωωω" in [entry.target for entry in augmenter.entries("ωωω")]


def test_some_sources_alone():
    augmenter = learn_augmenter(toy_entries(), ("copy", "compound"))
    assert [source.name for source in augmenter.evidence] == ["compound", "copy"]
    assert sorted(augmenter.trusts) == ["compound", "copy"]
    with pytest.raises(ValueError, match="unknown source of evidence 'magic'; expected some of compound"):
        learn_augmenter(toy_entries(), ("magic",))


def test_the_same_seed_gives_the_same():
    one, other = (learn_augmenter(toy_entries(), seed=3).entries("blauste") for _ in range(2))
    assert one == other
