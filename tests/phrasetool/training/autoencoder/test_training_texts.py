import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings
from phrasetool.training.autoencoder.training_texts import training_texts

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
