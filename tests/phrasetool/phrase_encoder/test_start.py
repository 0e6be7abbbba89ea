import dataclasses

import numpy as np
import pytest

from phrasetool.embeddings.training import phrase_sentences
from phrasetool.errors import ModelError
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.start import SIDES, Start, prescribed_settings, start_parameters
from phrasetool.phrases import Phrases
from phrasetool.training.data import PhrasePairs
from phrasetool.vocabulary import Vocabulary

WORDS = [b"<unk>", b"a", b"b", b"c"]


@pytest.fixture
def pairs():
    phrases = Phrases.from_lists([[1, 2], [2], [3, 1]] * 4)
    vocabulary = Vocabulary(WORDS, [0, 8, 8, 4])
    return PhrasePairs(phrases, phrases, np.ones(12, np.int64), vocabulary, vocabulary)


def settings(**changes):
    return TrainingSettings.for_loss("in-batch", dimension=4, **changes)


def test_vectors_of_a_file_come_first(tmp_path, pairs):
    path = tmp_path / "vectors"
    path.write_bytes(b"a 1 2 3 4\nb 4 3 2 1\n")
    recorded = []
    start = Start(lambda: pytest.fail("the text is not read"), str(path))
    source, target = start_parameters(
        pairs, settings(vectors="word2vec"), (start, Start()), lambda *coverage: recorded.append(coverage)
    )
    assert [side for side, _ in recorded] == list(SIDES)
    assert recorded[0] == ("source", pytest.approx(2 / 3))
    result = source.arrays()["word_vectors"]
    # The vectors are centred, so that those of the two known words are opposite, and scaled by one factor.
    np.testing.assert_allclose(result[1], -result[2], rtol=1e-6)
    assert result.shape == target.arrays()["word_vectors"].shape == (4, 4)


def test_vectors_are_trained_on_the_text_or_else_on_the_phrases(pairs):
    shares = []

    def first(text):
        start = Start((lambda: iter(text)) if text else None)
        result = start_parameters(pairs, settings(), (start, Start()), lambda side, share: shares.append(share))
        return result[0].arrays()["word_vectors"]

    phrases = list(phrase_sentences(pairs.sources, pairs.source_vocabulary))
    np.testing.assert_array_equal(first(None), first(phrases))
    assert not np.array_equal(first(None), first([[b"b", b"a"], [b"b"]]))
    # `c` is not in that text.
    assert shares == pytest.approx([1, 1, 1, 1, 1, 1, 2 / 3, 1])


def test_random_vectors_read_no_text_and_report_no_coverage(pairs):
    start = Start(lambda: pytest.fail("the text is not read"))
    source, target = start_parameters(pairs, settings(vectors="random"), (start, start), pytest.fail)
    # The two languages draw different random numbers.
    assert not np.array_equal(source.arrays()["word_vectors"], target.arrays()["word_vectors"])


class Prescribing:
    """The part of an autoencoder that `prescribed_settings` uses."""

    def __init__(self, error=None):
        self._error = error

    def encoder_settings(self):
        if self._error:
            raise ModelError(self._error)
        return {"encoder": "mean-max", "dimension": 24}


@pytest.mark.parametrize("chosen", [{}, {"dimension": None, "heads": 3}, {"dimension": 24, "encoder": "mean-max"}])
def test_settings_prescribed_by_an_autoencoder(chosen):
    assert prescribed_settings(Prescribing(), "folder", chosen) == {"encoder": "mean-max", "dimension": 24}


def test_settings_that_contradict_an_autoencoder_are_refused():
    with pytest.raises(ValueError, match=r"^dimension is 48, but the autoencoder in folder has 24$"):
        prescribed_settings(Prescribing(), "folder", {"dimension": 48})
    with pytest.raises(ModelError, match=r"^folder: no encoder of phrases$"):
        prescribed_settings(Prescribing("no encoder of phrases"), "folder", {})


def test_starts_cannot_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Start().vectors = "file"
