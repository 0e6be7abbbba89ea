"""Word vectors trained with gensim, and initial vectors made from them."""

import subprocess
import sys

import numpy as np
import pytest

from phrasetool.embeddings.training import (
    components_to_remove,
    initial_vectors,
    phrase_sentences,
    train_fasttext,
    train_word2vec,
    without_first_components,
)
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import Vocabulary
from tests.commands import clean_environment

TEXT = [[b"the", b"cat", b"sees", b"a", b"dog"], [b"the", b"caf\xe9", b"is", b"old"], []] * 30


def test_word2vec_is_determined_by_its_seed_and_accepts_any_bytes():
    vocabulary = Vocabulary([b"<unk>", b"gr\xfcn", b"haus", b"baum"])
    phrases = Phrases.from_lists([[1, 2], [1, 3], [2, 3]] * 10)
    runs = [train_word2vec(phrase_sentences(phrases, vocabulary), 5, seed) for seed in (1, 1, 2)]
    assert set(runs[0]) == {b"gr\xfcn", b"haus", b"baum"}
    np.testing.assert_array_equal(runs[0][b"gr\xfcn"], runs[1][b"gr\xfcn"])
    assert (runs[0][b"haus"] != runs[2][b"haus"]).any()
    assert train_word2vec([], 5, 1) == {}


def test_every_word_has_a_vector_determined_by_the_seed():
    result = train_fasttext(TEXT, 8, 1)
    assert set(result) == {word for sentence in TEXT for word in sentence}
    assert all(vector.shape == (8,) and vector.dtype == np.float32 for vector in result.values())
    repeated, other_seed = train_fasttext(iter(TEXT), 8, 1), train_fasttext(TEXT, 8, 2)
    assert all(np.array_equal(result[word], repeated[word]) for word in result)
    assert not np.array_equal(result[b"cat"], other_seed[b"cat"])
    assert train_fasttext([], 8, 1) == {}


def test_vectors_are_the_same_in_another_process():
    code = (
        "import sys; from tests.phrasetool.embeddings.test_training import TEXT, train_fasttext; "
        "sys.stdout.write(train_fasttext(TEXT, 8, 1)[b'cat'].tobytes().hex())"
    )
    result = [
        subprocess.run([sys.executable, "-c", code], env=clean_environment(PYTHONHASHSEED=seed), capture_output=True,
                       text=True, check=True)
        for seed in ("1", "2")
    ]  # fmt: skip
    assert result[0].stdout == result[1].stdout == train_fasttext(TEXT, 8, 1)[b"cat"].tobytes().hex()


def test_initial_vectors_are_centred_scaled_and_fall_back_to_lower_case():
    vocabulary = Vocabulary([b"<unk>", b"Haus", b"baum", b"fremd"])
    known = {b"haus": np.float32([1, 3]), b"baum": np.float32([3, 1]), b"<unk>": np.float32([9, 9])}
    vectors = initial_vectors(vocabulary, known, 2, 0.1, np.random.default_rng(0))
    np.testing.assert_allclose(vectors[1:3], [[-0.1, 0.1], [0.1, -0.1]], atol=1e-7)
    assert np.abs(vectors[[0, 3]]).max() < 1
    with pytest.raises(ValueError, match="dimension 2, but 3"):
        initial_vectors(vocabulary, known, 3, 0.1, np.random.default_rng(0))


@pytest.mark.parametrize("components", [1, 3])
def test_the_first_components_are_those_of_a_singular_value_decomposition(components):
    rng = np.random.default_rng(1)
    vectors = (rng.normal(size=(200, 8)) * 2.0 ** -np.arange(8) @ rng.normal(size=(8, 8))).astype(np.float32)
    vectors -= vectors.mean(0)
    left, values, right = np.linalg.svd(vectors.astype(np.float64), full_matrices=False)
    expected = (left[:, components:] * values[components:]) @ right[components:]
    np.testing.assert_allclose(without_first_components(vectors, components), expected, atol=1e-5)
    with pytest.raises(ValueError, match="8 components cannot be removed from vectors of dimension 8"):
        without_first_components(vectors, 8)


def test_initial_vectors_without_their_first_component():
    rng = np.random.default_rng(2)
    words = [b"w%d" % i for i in range(50)]
    vocabulary = Vocabulary([b"<unk>", *words, b"fremd"])
    # All vectors share one direction, to different degrees, as those of word2vec do because of word frequency.
    common = rng.normal(size=6)
    known = {word: (rng.normal(size=6) + 9 * rng.random() * common).astype(np.float32) for word in words}
    complete, reduced = (initial_vectors(vocabulary, known, 6, 0.3, np.random.default_rng(0), c) for c in (0, 1))
    for vectors in (complete, reduced):
        np.testing.assert_allclose(vectors[1:51].mean(0), 0, atol=1e-6)
        assert np.sqrt((vectors[1:51] ** 2).mean()) == pytest.approx(0.3, rel=1e-5)
        np.testing.assert_array_equal(vectors[[0, 51]], complete[[0, 51]])
    values = [np.linalg.svd(vectors[1:51], compute_uv=False) for vectors in (complete, reduced)]
    assert values[0][0] > 5 * values[0][1]
    assert values[1][-1] < 1e-5
    np.testing.assert_allclose(values[1][:5] / values[1][0], values[0][1:] / values[0][1], rtol=1e-4)


def test_one_component_in_a_hundred_is_removed_but_at_least_one():
    assert [components_to_remove(n) for n in (2, 50, 128, 200, 512)] == [1, 1, 1, 2, 5]
