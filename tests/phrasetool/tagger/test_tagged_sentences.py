import pytest

from phrasetool.tagger.tagged_sentences import TaggedSentence, lower_cased, moses_pieces


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


def test_tokens_of_several_words_have_joined_tags_and_pieces_their_own():
    one = sentence((("Im", 2), ("Haus", 1)), "In dem Haus", "ADP DET NOUN")
    assert one.as_moses("de") == (["Im", "Haus"], ["ADP+DET", "NOUN"])
    assert one.as_words() == (["In", "dem", "Haus"], ["ADP", "DET", "NOUN"])
    one = sentence((("She", 1), ("isn't", 2), ("O'Hara", 1)), "She is n't O'Hara", "PRON AUX PART PROPN")
    assert one.as_moses("en") == (["She", "isn", "'t", "O", "'Hara"], ["PRON", "AUX", "PART", "PROPN", "PROPN"])


def test_a_token_whose_pieces_are_not_its_words_gives_no_copy():
    assert sentence((("geht's", 2),), "geht es", "VERB PRON").as_moses("de") is None


def test_lower_case():
    assert lower_cased(["Das", "IST", "x1"]) == ["das", "ist", "x1"]
