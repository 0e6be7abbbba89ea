import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings
from phrasetool.training.text_vocabulary import frequent_words, in_vocabulary, training_texts

WORDS = [b"rare", b"usual", b"b"]
TEXTS = Phrases.from_lists([[1, 2], [1, 1, 0], [2, 1, 1, 1, 2]])


def settings(**changes):
    return AutoencoderSettings.from_options({"min_count": 1, **changes})


def test_short_texts_and_frequent_words():
    data = training_texts(TEXTS, WORDS, settings(max_length=3, min_count=2))
    assert data.left_out == 1
    assert data.vocabulary.words == [b"<unk>", b"usual"]
    assert data.vocabulary.counts.tolist() == [2, 3]
    assert data.unknown == pytest.approx(2 / 5)
    assert [one.tolist() for one in data.texts] == [[1, 0], [1, 1, 0]]


def test_all_texts_and_all_words():
    data = training_texts(TEXTS, WORDS, settings(max_length=5))
    assert (data.left_out, data.unknown) == (0, 0)
    assert data.vocabulary.words == [b"<unk>", b"usual", b"b", b"rare"]
    assert np.array_equal(data.texts.offsets, TEXTS.offsets)


def test_no_text_is_short_enough():
    with pytest.raises(ValueError, match=r"^no line has 1 words or fewer$"):
        training_texts(TEXTS, WORDS, settings(max_length=1))


def test_the_vocabulary_is_the_frequent_words():
    words = [b"rare", b"often", b"<unk>", b"twice"]
    texts = Phrases.from_lists([[1, 0, 1], [2, 3, 1, 3]])
    vocabulary = frequent_words(texts, words, 2, 0)
    assert vocabulary.words == [b"<unk>", b"often", b"twice"]
    assert vocabulary.counts.tolist() == [2, 3, 2]
    assert frequent_words(texts, words, 1, 1).words == [b"<unk>", b"often"]
    assert frequent_words(texts, words, 1, 0).words == [b"<unk>", b"often", b"twice", b"rare"]
    assert [text.tolist() for text in in_vocabulary(texts, words, vocabulary)] == [[1, 0, 1], [0, 2, 1, 2]]
    assert len(frequent_words(Phrases.from_lists([[]]), [], 1, 0)) == 1
