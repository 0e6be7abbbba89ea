import numpy as np

from phrasetool.tagger.data import NO_TAG, learnt_tags, tagger_examples
from phrasetool.tagger.tagged_sentences import UPOS, TaggedSentence
from phrasetool.tagger.word_features import feature_rows

IM = TaggedSentence(("In", "dem", "Haus"), ("ADP", "DET", "NOUN"), (("Im", 2), ("Haus", 1)))
PLAIN = TaggedSentence(("Das", "Haus"), ("DET", "NOUN"), (("Das", 1), ("Haus", 1)))
ISNT = TaggedSentence(("is", "n't"), ("AUX", "PART"), (("isn't", 2),))


def test_joined_tags_are_learnt_where_they_are_frequent():
    banks = {"de": [IM, IM, PLAIN], "en": [ISNT]}
    assert learnt_tags(banks, 2) == (*UPOS, "ADP+DET")
    assert learnt_tags(banks, 3) == UPOS


def test_sentences_come_as_words_and_where_they_differ_as_moses_has_them():
    found = tagger_examples({"de": [IM, PLAIN], "en": [ISNT]}, (*UPOS, "ADP+DET"), 101)
    words = ["In dem Haus", "Im Haus", "Das Haus", "is n't", "isn 't"]
    languages = ["de"] * 3 + ["en"] * 2
    tags = ["ADP DET NOUN", "ADP+DET NOUN", "DET NOUN", "AUX PART", "AUX PART"]
    assert found.lengths.tolist() == [3, 2, 2, 2, 2]
    assert len(found) == 5
    for number, (text, language, wanted) in enumerate(zip(words, languages, tags, strict=True)):
        part = slice(found.offsets[number], found.offsets[number + 1])
        assert np.array_equal(found.rows[found.words[part]], feature_rows(text.split(), language, 101))
        assert np.array_equal(found.rows[found.lower[part]], feature_rows(text.lower().split(), language, 101))
        assert [(*UPOS, "ADP+DET")[i] for i in found.tags[part]] == wanted.split()


def test_a_tag_that_is_not_learnt_has_no_number():
    found = tagger_examples({"de": [IM]}, UPOS, 101)
    assert found.tags.tolist()[3:] == [NO_TAG, UPOS.index("NOUN")]
