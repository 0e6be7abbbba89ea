import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders.tokenizing import over_long, read_tokenizer
from tests.text_encoder_folders import static_folder

pytest.importorskip("tokenizers")


def test_a_tokenizer_neither_cuts_nor_fills_up(tmp_path):
    folder = static_folder(tmp_path / "e")
    tokenizer = read_tokenizer(folder)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=7)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer = read_tokenizer(folder)
    lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch(["haus dog haus dog", "haus"])]
    assert lengths == [4, 1]
    assert over_long(tokenizer, ["haus " * 20, "haus " * 21, "dog", ""], 20) == 1


def test_what_is_no_tokenizer(tmp_path):
    with pytest.raises(ModelError, match=r"has no tokenizer\.json; save the tokenizer in its fast form"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="not a tokenizer"):
        read_tokenizer(tmp_path)
