import numpy as np
import pytest

from phrasetool.errors import LengthError, ModelError
from phrasetool.library.models import PhraseModel, load_model
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.vocabulary import Vocabulary
from tests.conftest import KINDS, random_encoder
from tests.phrasetool.autoencoder.test_model import make

SOURCES, TARGETS = ["das haus", "haus", "nicht", ""], ["the house", "house", "not", "green is"]


@pytest.fixture(scope="module")
def phrase_model(model):
    return PhraseModel(model)


def cosines(first, second):
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    return np.sum(first * second, axis=-1) / np.maximum(lengths, 1e-9)


def test_a_model_is_loaded_from_its_folder(model, model_folder):
    loaded = load_model(str(model_folder))
    assert (loaded.dimension, loaded.signature) == (10, model.signature)
    assert repr(loaded) == f"<PhraseModel {model.signature}, 14 source and 14 target words>"


def test_vectors_have_length_one_and_those_of_empty_phrases_are_zero(phrase_model):
    for side, phrases in (("source", SOURCES), ("target", [*TARGETS[:3], ""])):
        for transformed in (False, True):
            vectors = phrase_model.encode(phrases, side, transformed=transformed)
            assert vectors.dtype == np.float32
            np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0], atol=1e-6)
    assert phrase_model.encode([], "source").shape == (0, 10)


def test_similarities_are_cosines_in_the_space_of_the_other_language(phrase_model):
    result = phrase_model.similarity(SOURCES, TARGETS)
    forth = cosines(phrase_model.encode(SOURCES, "source", transformed=True), phrase_model.encode(TARGETS, "target"))
    back = cosines(phrase_model.encode(TARGETS, "target", transformed=True), phrase_model.encode(SOURCES, "source"))
    np.testing.assert_allclose(result, np.stack([forth, back], axis=1), atol=1e-6)
    assert len({round(float(value), 4) for value in result[:3].ravel()}) == 6


def test_known_words_are_those_of_the_side(phrase_model):
    assert phrase_model.knows(["das", "the", "the haus", "", "qq"], "source").tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert phrase_model.knows(["das", "the"], "target").tolist() == [False, True]


@pytest.mark.parametrize("among", ["source", "target"])
def test_the_nearest_come_first_and_ties_in_their_order(phrase_model, among):
    # All words that a side does not know are the same unknown word, so there are ties.
    candidates = ["house", "das", "haus", "the", "not", "house", "the house"]
    result = phrase_model.nearest("das haus", candidates, 5, among=among)
    query = phrase_model.encode(["das haus"], "source", transformed=among == "target")[0]
    expected = cosines(phrase_model.encode(candidates, among), query)
    order = sorted(range(7), key=lambda i: (-expected[i], i))[:5]
    assert result.columns.tolist() == ["phrase", "similarity"]
    assert result.phrase.tolist() == [candidates[i] for i in order]
    np.testing.assert_allclose(result.similarity, expected[order], atol=1e-6)
    assert result.index.tolist() == list(range(5))
    assert len(phrase_model.nearest("house", [], side="target")) == 0


def test_one_string_is_not_several_phrases(phrase_model):
    for call in (
        lambda: phrase_model.encode("das haus", "source"),
        lambda: phrase_model.knows("das haus", "source"),
        lambda: phrase_model.similarity("das", ["the"]),
        lambda: phrase_model.similarity(["das"], "the"),
    ):
        with pytest.raises(TypeError, match=r"^expected several phrases, found one string$"):
            call()


def test_unknown_sides_are_refused(phrase_model):
    for call in (
        lambda: phrase_model.encode(["das"], "german"),
        lambda: phrase_model.knows(["das"], "german"),
        lambda: phrase_model.nearest("das", ["the"], among="german"),
        lambda: phrase_model.nearest("das", ["the"], side="german"),
    ):
        with pytest.raises(ValueError, match=r"^unknown side 'german'; expected source or target$"):
            call()


def test_a_negative_number_of_neighbours(phrase_model):
    assert len(phrase_model.nearest("das", ["the", "a"], count=0)) == 0
    with pytest.raises(ValueError, match=r"^count is -1, expected at least 0$"):
        phrase_model.nearest("das", ["the", "a"], count=-1)


def test_pairs_need_both_sides(phrase_model):
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        phrase_model.similarity(["das", "haus"], ["the"])


def test_a_phrase_that_is_too_long():
    kind, vocabulary = KINDS["mean-max"], Vocabulary([b"<unk>", b"a"])
    sides = [random_encoder(kind, 2, 12, seed) for seed in (1, 2)]
    with pytest.raises(LengthError, match="a text of 512 words is longer"):
        PhraseModel(BilingualModel(vocabulary, vocabulary, *sides, kind)).encode(["a " * 512], "source")


def test_models_of_other_families_are_refused(tmp_path):
    make().save(tmp_path / "autoencoder")
    with pytest.raises(ModelError, match="this needs a model of phrase pairs"):
        PhraseModel.load(tmp_path / "autoencoder")
    with pytest.raises(ModelError, match="no such model folder"):
        load_model(tmp_path / "nothing")
