import pytest

from phrasetool.tagger.data import tagger_examples
from phrasetool.tagger.network import TaggerNetwork
from phrasetool.tagger.settings import TaggerSettings
from phrasetool.tagger.tagged_sentences import UPOS
from phrasetool.tagger.tagger_measures import accuracies, tag_accuracy
from phrasetool.tagger.training import TaggerTrainer
from tests.toy_treebanks import FAST, toy_sentences

TAGS = (*UPOS, "ADP+DET")
SHAPE = TaggerSettings(**FAST).shape(len(TAGS))


def test_accuracy_is_the_share_of_right_tags_word_by_word():
    from phrasetool.tagger.word_tags import word_tags

    banks = {language: toy_sentences(language, 30, 1) for language in ("en", "de")}
    settings = TaggerSettings(**{**FAST, "epochs": 1})
    trainer = TaggerTrainer(tagger_examples(banks, TAGS, 997), banks, TAGS, settings)
    list(trainer.run())
    arrays = trainer.network.arrays()
    found = accuracies(arrays, SHAPE, TAGS, banks)
    for language, sentences in banks.items():
        wanted = [tag for sentence in sentences for tag in sentence.tags]
        for lower, accuracy in ((False, found[language].accuracy), (True, found[language].lower_accuracy)):
            tags = [
                tag
                for sentence in sentences
                for tag in word_tags(
                    arrays, SHAPE, UPOS, [[w.lower() if lower else w for w in sentence.words]], language
                )[0]
            ]
            assert accuracy == pytest.approx(sum(a == b for a, b in zip(tags, wanted, strict=True)) / len(wanted))
        assert found[language].words == len(wanted)
        shares = found[language].by_tag
        assert set(shares) == set(wanted)
        total = sum(share * wanted.count(tag) for tag, share in shares.items())
        assert total == pytest.approx(found[language].accuracy * len(wanted))


def test_a_tagger_that_knows_nothing_gets_one_tag_right_at_most():
    sentences = toy_sentences("en", 20, 1)
    found = tag_accuracy(TaggerNetwork(SHAPE).arrays(), SHAPE, TAGS, sentences, "en")
    assert found.accuracy < 0.5
