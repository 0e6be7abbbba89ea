import numpy as np
import pytest

from phrasetool.errors import DataError
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.start import Start, with_known_words
from phrasetool.phrases import Phrases
from phrasetool.training.data import PhrasePairs
from phrasetool.vocabulary import Vocabulary

SOURCE = Vocabulary([b"<unk>", b"Haus", b"neu", b"null", b"rot"], [2, 5, 4, 3, 1])
TARGET = Vocabulary([b"<unk>", b"house", b"new"], [0, 5, 4])
PAIRS = PhrasePairs(
    Phrases.from_lists([[1, 2], [3], [4, 1]]),
    Phrases.from_lists([[1, 2], [2], [1]]),
    np.ones(3, np.int64),
    SOURCE,
    TARGET,
)
SETTINGS = TrainingSettings.for_loss("in-batch", "mean", dimension=3)
FIXED = TrainingSettings.for_loss("in-batch", "mean", dimension=3, transformation="identity")


def start(tmp_path, name="v", **vectors):
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in vectors.items()]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    return Start(vectors=str(tmp_path / name), name=name)


def test_words_without_a_vector_are_unknown(tmp_path):
    inputs = start(tmp_path, haus=(1, 0, 0), null=(0, 0, 0), rot=(0, 1, 0), more=(1, 1, 1))
    result, starts = with_known_words(PAIRS, SETTINGS, (inputs, Start()))
    # `Haus` has the vector of its lower-cased form; a zero vector counts as no vector.
    assert result.source_vocabulary.words == [b"<unk>", b"Haus", b"rot"]
    assert result.source_vocabulary.counts.tolist() == [9, 5, 1]
    assert [phrase.tolist() for phrase in result.sources] == [[1, 0], [0], [2, 1]]
    assert (result.targets, result.target_vocabulary) == (PAIRS.targets, TARGET)
    assert set(starts[0].loaded) >= {b"haus", b"rot"}
    assert starts[1].loaded is None


def test_words_whose_vectors_are_trained_are_kept(tmp_path):
    rae = TrainingSettings.for_loss("in-batch", "rae", dimension=3)
    starts = start(tmp_path, haus=(1, 0, 0)), Start()
    assert with_known_words(PAIRS, rae, starts) == (PAIRS, starts)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ({"haus": (1, 0)}, "dimension 2, but dimension 3 was requested"),
        ({"haus": (1, "nan", 0)}, "the vector of 'haus' has a number that is not finite"),
        ({"house": (1, 0, 0)}, "has vectors for none of the 4 words that need one"),
        ({"haus": (0, 0, 0)}, "has no word of the source"),
    ],
)
def test_unusable_vector_files_are_refused(vectors, message, tmp_path):
    with pytest.raises(DataError, match=message):
        with_known_words(PAIRS, SETTINGS, (start(tmp_path, **vectors), Start()))


def test_a_shared_space_needs_vector_files_of_both_languages(tmp_path):
    with pytest.raises(ValueError, match="both languages need word vectors of one space"):
        with_known_words(PAIRS, FIXED, (start(tmp_path, haus=(1, 0, 0)), Start()))
