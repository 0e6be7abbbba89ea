import gzip
import struct

import numpy as np
import pytest

from phrasetool.embeddings.files import load_vectors
from phrasetool.embeddings.initial import components_to_remove, initial_vectors, without_first_components
from phrasetool.embeddings.word2vec import phrase_sentences, train_word2vec
from phrasetool.errors import DataError
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import Vocabulary

VECTORS = {b"haus": [1.0, -2.0, 0.5], "grün".encode(): [0.25, 0.0, 3.0], b"Berlin": [4.0, 5.0, 6.0]}
WORDS = [b"haus", "grün".encode(), b"absent"]


def text(header):
    lines = [b"3 3"] if header else []
    lines += [word + b" " + b" ".join(b"%g" % v for v in vector) for word, vector in VECTORS.items()]
    return b"\n".join(lines) + b"\n"


def binary(end=b""):
    entries = (word + b" " + struct.pack("<3f", *vector) + end for word, vector in VECTORS.items())
    return b"3 3\n" + b"".join(entries)


@pytest.mark.parametrize(
    "data",
    [text(True), text(False), text(True).replace(b"\n", b" \n"), binary(), binary(b"\n"), gzip.compress(text(True))],
    ids=["word2vec text", "glove", "trailing spaces", "word2vec binary", "word2vec binary with line feeds", "gzip"],
)
def test_every_form_gives_the_same_vectors(tmp_path, data):
    path = tmp_path / "vectors"
    path.write_bytes(data)
    found = load_vectors(str(path), WORDS, 3)
    assert set(found) == {b"haus", "grün".encode()}
    for word, vector in found.items():
        np.testing.assert_array_equal(vector, np.float32(VECTORS[word]))


def test_words_with_spaces_count_from_the_end(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_bytes(b"at 1 2\n. . 3 4\nmore 5 6\n")
    assert load_vectors(str(path), [b". ."])[b". ."].tolist() == [3, 4]


def test_fasttext_binary_files_are_read_through_gensim(tmp_path):
    from gensim.models.fasttext import FastText, save_facebook_model

    sentences = [["haus", "ist", "klein"], ["haus", "ist", "gross"]] * 5
    model = FastText(vector_size=4, min_count=1, bucket=50, workers=1, seed=1)
    model.build_vocab(sentences)
    model.train(sentences, total_examples=10, epochs=1)
    path = tmp_path / "vectors.bin"
    save_facebook_model(model, str(path))
    found = load_vectors(str(path), [b"haus", b"hausboot"], 4)
    np.testing.assert_allclose(found[b"haus"], model.wv["haus"], rtol=1e-5)
    assert found[b"hausboot"].shape == (4,)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (text(True)[:-20] + b"x\n", "expected 3 numbers|expected a word"),
        (binary()[:-5], "the file ends after 2 of 3"),
        (text(True), "have dimension 3, but dimension 50"),
        (struct.pack("<i", 793712314) + b"\0" * 30, "damaged fastText"),
        (b"word\n", "expected a word and its vector"),
    ],
)
def test_damaged_files_are_named(tmp_path, data, message):
    path = tmp_path / "vectors"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message) as error:
        load_vectors(str(path), [b"haus", b"Berlin"], 50 if "50" in message else 3)
    assert str(path) in str(error.value)
    with pytest.raises(DataError, match="cannot read"):
        load_vectors(str(tmp_path / "none"), [b"haus"])


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
    # All words have a share of the same direction, of differing size, as frequency gives word2vec's.
    common = rng.normal(size=6)
    known = {word: (rng.normal(size=6) + 9 * rng.random() * common).astype(np.float32) for word in words}
    kept, spread = (initial_vectors(vocabulary, known, 6, 0.3, np.random.default_rng(0), c) for c in (0, 1))
    for made in (kept, spread):
        np.testing.assert_allclose(made[1:51].mean(0), 0, atol=1e-6)
        assert np.sqrt((made[1:51] ** 2).mean()) == pytest.approx(0.3, rel=1e-5)
        np.testing.assert_array_equal(made[[0, 51]], kept[[0, 51]])
    values = [np.linalg.svd(made[1:51], compute_uv=False) for made in (kept, spread)]
    assert values[0][0] > 5 * values[0][1]
    assert values[1][-1] < 1e-5
    np.testing.assert_allclose(values[1][:5] / values[1][0], values[0][1:] / values[0][1], rtol=1e-4)


def test_one_component_in_a_hundred_is_removed_but_at_least_one():
    assert [components_to_remove(n) for n in (2, 50, 128, 200, 512)] == [1, 1, 1, 2, 5]


def test_word2vec_is_fixed_by_its_seed_and_takes_any_bytes():
    vocabulary = Vocabulary([b"<unk>", b"gr\xfcn", b"haus", b"baum"])
    phrases = Phrases.from_lists([[1, 2], [1, 3], [2, 3]] * 10)
    made = [train_word2vec(phrase_sentences(phrases, vocabulary), 5, seed) for seed in (1, 1, 2)]
    assert set(made[0]) == {b"gr\xfcn", b"haus", b"baum"}
    np.testing.assert_array_equal(made[0][b"gr\xfcn"], made[1][b"gr\xfcn"])
    assert (made[0][b"haus"] != made[2][b"haus"]).any()
    assert train_word2vec([], 5, 1) == {}
