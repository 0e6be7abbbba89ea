import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders.text_encoder import detokeniser, encoded, over_long, read_tokenizer
from tests.text_encoder_folders import static_folder
from tests.variants import for_each


class Given:
    dimension = 2
    identity = "given"

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts, side):
        return self.vectors


def test_vectors_of_the_right_shape_pass():
    result = encoded(Given([[1, 2]]), ["a"], "source", "given")
    assert result.dtype == np.float32
    assert result.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1, 2, 3]], r"given: gave an array of shape \(1, 3\), expected 1 vectors of dimension 2"),
        ([[1, 2], [3, 4]], r"shape \(2, 2\)"),
        ([1, 2], r"shape \(2,\)"),
        ([[1, np.nan]], "the vector of 'a' is not finite"),
    ],
)
def test_other_arrays_are_refused(vectors, message):
    with pytest.raises(ModelError, match=message):
        encoded(Given(vectors), ["a"], "source", "given")


pytest.importorskip("tokenizers")


def test_a_tokenizer_neither_truncates_nor_pads(tmp_path):
    folder = static_folder(tmp_path / "e")
    tokenizer = read_tokenizer(folder)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=7)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer = read_tokenizer(folder)
    lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch(["haus dog haus dog", "haus"])]
    assert lengths == [4, 1]
    assert over_long(tokenizer, ["haus " * 20, "haus " * 21, "dog", ""], 20) == 1


def test_missing_and_invalid_tokenizers(tmp_path):
    with pytest.raises(ModelError, match=r"has no tokenizer\.json; save the tokenizer in its fast form"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="not a tokenizer"):
        read_tokenizer(tmp_path)


@for_each(
    ("language", "tokens", "text"),
    [
        ("de", "das haus , das grün ist .", "das haus, das grün ist."),
        ("de", "( ein hund ) !", "(ein hund)!"),
        ("de", "„ ja “ , sagt er", "„ja “, sagt er"),
        ("en", "do n't you 're he 's", "don't you're he's"),
        ("de", "geht 's", "geht 's"),
        ("en", 'he says " yes " twice', 'he says "yes" twice'),
        ("en", "well @-@ known", "well-known"),
        ("fr", "l' homme d' ici", "l'homme d'ici"),
        ("en", "dogs ' tails", "dogs 'tails"),
        ("zh", "经济 发展 ， 很 好", "经济发展，很好"),
        ("zh", "用 Python 3 写 的", "用Python 3写的"),
        ("ja", "犬", "犬"),
        ("en", "", ""),
    ],
)
def test_detokenisation(language, tokens, text):
    assert detokeniser(language)(tokens) == text


@pytest.mark.parametrize("language", ["", "german", "DE", "e", "d-e"])
def test_invalid_language_codes_are_refused(language):
    with pytest.raises(ValueError, match="is not a language code"):
        detokeniser(language)
