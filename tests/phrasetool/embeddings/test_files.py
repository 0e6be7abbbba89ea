import struct

import numpy as np
import pytest

from phrasetool.embeddings.files import load_vectors
from phrasetool.errors import DataError
from tests.commands import write

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
    [text(True), text(False), text(True).replace(b"\n", b" \n"), binary(), binary(b"\n")],
    ids=["word2vec text", "glove", "trailing spaces", "word2vec binary", "word2vec binary with line feeds"],
)
def test_every_format_gives_the_same_vectors(tmp_path, data):
    path = tmp_path / "vectors"
    path.write_bytes(data)
    result = load_vectors(str(path), WORDS, 3)
    assert set(result) == {b"haus", "grün".encode()}
    for word, vector in result.items():
        np.testing.assert_array_equal(vector, np.float32(VECTORS[word]))


def test_words_may_contain_spaces(tmp_path):
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
    result = load_vectors(str(path), [b"haus", b"hausboot"], 4)
    np.testing.assert_allclose(result[b"haus"], model.wv["haus"], rtol=1e-5)
    assert result[b"hausboot"].shape == (4,)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (text(True)[:-20] + b"x\n", "expected 3 numbers|expected a word"),
        (binary()[:-5], "the file ends after 2 of 3"),
        (text(True), "have dimension 3, but dimension 50"),
        (struct.pack("<i", 793712314) + b"\0" * 30, "damaged fastText"),
        (b"word\n", "expected a word and its vector"),
        (b"", "the file contains no vectors"),
        (text(True).replace(b"3 3", b"4 3"), "the file ends after 3 of 4 vectors"),
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


@pytest.mark.parametrize("data", [text(True), text(False), binary(), b"2 3\n<unk> 1 2 3\nxx 1 2 3\n", b"0 3\n"])
def test_a_file_without_any_requested_word_is_refused(tmp_path, data):
    path = write(tmp_path / "vectors", data)
    with pytest.raises(DataError, match="has vectors for none of the 2 words that need one"):
        load_vectors(str(path), [b"<unk>", b"zebra", b"gnu"], 3)
    # The dimension is checked nevertheless.
    with pytest.raises(DataError, match="have dimension 3, but dimension 50"):
        load_vectors(str(path), [b"<unk>", b"zebra", b"gnu"], 50)
