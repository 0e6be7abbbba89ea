import zlib

import numpy as np
import pytest

from phrasetool.tagger.data import (
    FEATURES,
    NO_TAG,
    UPOS,
    TaggedSentence,
    count_examples,
    feature_rows,
    feature_texts,
    learnt_tags,
    lower_cased,
    moses_pieces,
    shape,
    tagger_examples,
)


@pytest.mark.parametrize(
    ("form", "language", "pieces"),
    [
        ("isn't", "en", ["isn", "'t"]), ("l'homme", "fr", ["l'", "homme"]), ("geht's", "de", ["geht", "'", "s"]),
        ("rock'n'roll", "en", ["rock", "'n", "'roll"]), ("'s", "en", ["'s"]), ("10'a", "en", ["10'a"]),
        ("im", "de", ["im"]),
    ],
)  # fmt: skip
def test_pieces_are_those_of_moses(form, language, pieces):
    assert moses_pieces(form, language) == pieces


def sentence(tokens, words, tags):
    return TaggedSentence(tuple(words.split()), tuple(tags.split()), tokens)


def test_tokens_of_several_words_have_joined_tags_and_pieces_have_separate_tags():
    tagged = sentence((("Im", 2), ("Haus", 1)), "In dem Haus", "ADP DET NOUN")
    assert tagged.as_moses("de") == (["Im", "Haus"], ["ADP+DET", "NOUN"])
    assert tagged.as_words() == (["In", "dem", "Haus"], ["ADP", "DET", "NOUN"])
    tagged = sentence((("She", 1), ("isn't", 2), ("O'Hara", 1)), "She is n't O'Hara", "PRON AUX PART PROPN")
    assert tagged.as_moses("en") == (["She", "isn", "'t", "O", "'Hara"], ["PRON", "AUX", "PART", "PROPN", "PROPN"])


def test_no_moses_form_if_the_pieces_of_a_token_are_not_its_words():
    assert sentence((("geht's", 2),), "geht es", "VERB PRON").as_moses("de") is None


def test_lower_case():
    assert lower_cased(["Das", "IST", "x1"]) == ["das", "ist", "x1"]


def test_features_of_a_word():
    assert feature_texts("Haus", "de") == [
        "=haus", "<h", "<ha", "<hau", "", "s>", "us>", "aus>", "", "", "#Xx", "@de",
    ]  # fmt: skip
    assert len(feature_texts("", "de")) == FEATURES


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("Haus", "Xx"), ("USA", "X"), ("10.25", "0.0"), ("e-Mail", "x-Xx"), ("中文", "c"), ("...", "."), ("", "")],
)
def test_shapes(word, wanted):
    assert shape(word) == wanted


def test_long_shapes_are_cut():
    assert len(shape("aB" * 20)) == 8


def test_rows_are_hashes_of_the_texts_and_row_0_of_none():
    words = ["Haus", "a", "中文", "\udcff"]
    rows = feature_rows(words, "de", 1000)
    assert rows.dtype == np.int32
    for row, word in zip(rows.tolist(), words, strict=True):
        for number, text in zip(row, feature_texts(word, "de"), strict=True):
            assert number == (zlib.crc32(text.encode("utf-8", "surrogateescape")) % 999 + 1 if text else 0)
    assert feature_rows([], "de", 1000).shape == (0, FEATURES)


IM = TaggedSentence(("In", "dem", "Haus"), ("ADP", "DET", "NOUN"), (("Im", 2), ("Haus", 1)))
PLAIN = TaggedSentence(("Das", "Haus"), ("DET", "NOUN"), (("Das", 1), ("Haus", 1)))
ISNT = TaggedSentence(("is", "n't"), ("AUX", "PART"), (("isn't", 2),))


def test_joined_tags_are_learnt_where_they_are_frequent():
    banks = {"de": [IM, IM, PLAIN], "en": [ISNT]}
    assert learnt_tags(banks, 2) == (*UPOS, "ADP+DET")
    assert learnt_tags(banks, 3) == UPOS


def test_sentences_are_given_as_words_and_also_as_moses_splits_them_if_different():
    banks = {"de": [IM, PLAIN], "en": [ISNT]}
    result = tagger_examples(banks, (*UPOS, "ADP+DET"), 101)
    words = ["In dem Haus", "Im Haus", "Das Haus", "is n't", "isn 't"]
    languages = ["de"] * 3 + ["en"] * 2
    tags = ["ADP DET NOUN", "ADP+DET NOUN", "DET NOUN", "AUX PART", "AUX PART"]
    assert result.lengths.tolist() == [3, 2, 2, 2, 2]
    assert len(result) == count_examples(banks) == 5
    for number, (text, language, expected_tags) in enumerate(zip(words, languages, tags, strict=True)):
        part = slice(result.offsets[number], result.offsets[number + 1])
        assert np.array_equal(result.rows[result.words[part]], feature_rows(text.split(), language, 101))
        assert np.array_equal(result.rows[result.lower[part]], feature_rows(text.lower().split(), language, 101))
        assert [(*UPOS, "ADP+DET")[i] for i in result.tags[part]] == expected_tags.split()


def test_a_tag_that_is_not_learnt_has_no_number():
    result = tagger_examples({"de": [IM]}, UPOS, 101)
    assert result.tags.tolist()[3:] == [NO_TAG, UPOS.index("NOUN")]
