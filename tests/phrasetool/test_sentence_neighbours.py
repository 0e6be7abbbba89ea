import numpy as np
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.reconstruction import encode_texts
from phrasetool.sentence_neighbours import NearestSentences, sentence_words
from tests.phrasetool.models.test_autoencoder import make

# The model knows a, b, c and 's; the others are one unknown word to it.
WORDS = [b"new", b"a", b"b", b"c", b"'s", b"old"]
SENTENCES = [[1, 2], [3, 4], [0], [1, 2, 3], [2, 1], [1, 2], [5]]


def cosine(first, second):
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_the_nearest_by_cosine_without_the_sentence_itself():
    model, ticks = make(), []
    found = NearestSentences(model, Phrases.from_lists(SENTENCES), WORDS, tick=ticks.append).nearest([b"a", b"b"], 9)
    assert sum(ticks) == len(SENTENCES)
    known = {b"a": 1, b"b": 2, b"'s": 3, b"c": 4}
    ids = [[known.get(WORDS[word], 0) for word in sentence] for sentence in SENTENCES]
    vectors = encode_texts(model, Phrases.from_lists(ids)).astype(np.float64)
    others = [i for i, sentence in enumerate(SENTENCES) if sentence != [1, 2]]
    order = sorted(others, key=lambda i: -round(cosine(vectors[i], vectors[0]), 5))
    assert [one.text for one in found] == [b" ".join(WORDS[word] for word in SENTENCES[i]) for i in order]
    expected = [cosine(vectors[i], vectors[0]) for i in order]
    np.testing.assert_allclose([one.similarity for one in found], expected, atol=1e-5)


def test_words_that_the_model_lacks_tell_sentences_apart():
    nearest = NearestSentences(make(), Phrases.from_lists(SENTENCES), WORDS)
    first = nearest.nearest([b"new"], 1)[0]
    assert (first.text, first.similarity) == (b"old", pytest.approx(1, abs=1e-6))
    assert len(nearest.nearest([b"new"], 2)) == 2
    assert nearest.nearest([b"new"], 2)[0] == first


def test_words_of_a_sentence():
    model = make()
    assert sentence_words(model, b"a &apos;s new") == [b"a", b"'s", b"new"]
    with pytest.raises(PhraseToolError, match=r"^the model knows no word of 'new <unk>'$"):
        sentence_words(model, b"new <unk>")
    assert len(sentence_words(model, b"a " * 511)) == 511
    with pytest.raises(PhraseToolError, match="the sentence has 512 words; an autoencoder encodes at most 511"):
        sentence_words(model, b"a " * 512)
