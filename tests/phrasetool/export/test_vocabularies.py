"""Subword units: vocabulary and segmenter files, and segmented phrases."""

import json

import numpy as np
import pytest

from phrasetool.errors import DataError
from phrasetool.export.units import UnitTable, Words, may_be_glued
from phrasetool.export.vocabularies import read_vocabulary
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from tests.variants import for_each


def vocabulary(tmp_path, text):
    (tmp_path / "file").write_text(text, encoding="utf-8")
    return read_vocabulary(str(tmp_path / "file"))


@pytest.mark.parametrize(
    "text",
    ["</s>\nhaus\t-3.5\nhund 12\n", '["</s>", "haus", "hund"]', '{"haus": 1, "hund": 2, "</s>": 0}',
     '</s>: 0\n"haus": 1\nhund: 2\n'],
)  # fmt: skip
def test_lists_number_their_tokens(tmp_path, text):
    result = vocabulary(tmp_path, text)
    assert isinstance(result.segmenter, Words)
    assert result.numbers == {"</s>": 0, "haus": 1, "hund": 2}


def test_merges_split_as_subword_nmt_does(tmp_path):
    # From the description of subword-nmt: the most frequent pairs of low, lower, newest, widest.
    split = vocabulary(tmp_path, "#version: 0.2\ne s\nes t</w>\nl o\nlo w</w>\nlo w\n").segmenter
    assert [split(word) for word in ("low", "lowest", "west", "x")] == [
        ["low"], ["low@@", "est"], ["w@@", "est"], ["x"],
    ]  # fmt: skip
    old = vocabulary(tmp_path, "#version: 0.1\nl o\nlo w\nlow </w>\n").segmenter
    assert old.text("low lowl") == ["low", "low@@", "l"]


def unigram(tmp_path, pieces):
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.Tokenizer(tokenizers.models.Unigram([(piece, -1.0) for piece in ["<unk>", *pieces]], 0))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    return vocabulary(tmp_path, model.to_str())


def table_of(segmenter, words, **options):
    symbols = Symbols(word.encode() for word in words)
    return UnitTable(symbols, bytes.decode, segmenter, **options)


def test_words_that_may_follow_without_a_space_have_two_forms(tmp_path):
    result = unigram(tmp_path, ["▁", "▁ha", "us", "▁,", ",", "'", "s", "▁'s"])
    assert result.segmenter.glued(",") == (",",)
    assert result.segmenter.glued("'s") == ("'", "s")
    assert result.segmenter.glued("haus") == ["▁ha", "us"]
    units = table_of(result.segmenter, ["haus", ","], known=result.numbers)
    keys, rows = units.keys(Phrases.from_lists([[0], [0, 1], [1]]))
    texts = [keys.text[a:b].tobytes().decode() for a, b in zip(keys.offsets, keys.offsets[1:], strict=False)]
    assert list(zip(rows.tolist(), texts, strict=True)) == [
        (0, "▁ha us"), (1, "▁ha us ▁,"), (1, "▁ha us ,"), (2, "▁,"), (2, ","),
    ]  # fmt: skip
    both = table_of(result.segmenter, ["haus", ","], known=result.numbers, both=True)
    assert both.units.join(both.expand(Phrases.from_lists([[1, 0]])).words).decode() == "▁, , ▁ha us"


def test_sentencepiece(tmp_path):
    pieces = pytest.importorskip("sentencepiece")
    (tmp_path / "text").write_text("das haus , das große haus .\nein hund , ein haus .\n" * 20)
    pieces.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "m"), vocab_size=20, minloglevel=2
    )
    result = read_vocabulary(str(tmp_path / "m.model"))
    assert result.numbers["<unk>"] == 0
    assert result.segmenter.glues
    assert "".join(result.segmenter("haus")) == "▁haus"
    assert "".join(result.segmenter.glued(",")) == ","
    (tmp_path / "damaged").write_bytes((tmp_path / "m.model").read_bytes()[:40])
    with pytest.raises(DataError, match="is not a SentencePiece model"):
        read_vocabulary(str(tmp_path / "damaged"))


def test_units_outside_the_vocabulary_are_left_out():
    units = table_of(Words(), ["a", "b", "c"], known={"a", "c"})
    phrases = Phrases.from_lists([[0, 1, 2], [2]])
    assert units.units.join(units.expand(phrases).words) == b"a c c"
    assert units.known(phrases.words).tolist() == [True, False, True, True]
    keys, rows = units.keys(phrases)
    assert keys.text.tobytes() == b"c"
    assert rows.tolist() == [1]


@pytest.mark.parametrize(("word", "glued"), [(",", True), ("'s", True), ("n't", True), ("家", True), ("haus", False)])
def test_may_be_glued(word, glued):
    assert may_be_glued(word) == glued


@for_each(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\xff\xfe haus", "is not UTF-8"),
        (b"{", "is not valid JSON"),
        (json.dumps([1]).encode(), "expected a list of tokens"),
        (json.dumps({"model": 1}).encode(), "cannot read the tokenizer"),
        ("▁ha\n▁us\n".encode(), "is a list of subword units"),
        (b"ha@@\nus\n", "is a list of subword units"),
        (b"#version: 0.2\na b c\n", r":2: expected two subword units"),
        (b"\n\x0b\0\0", "is not a SentencePiece model"),
    ],
)
def test_wrong_files(tmp_path, data, said):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(DataError, match=said):
        read_vocabulary(str(tmp_path / "file"))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="cannot read the vocabulary: No such file"):
        read_vocabulary(str(tmp_path / "none"))


def test_words_that_are_added_later_get_units():
    symbols = Symbols([b"a"])
    units = UnitTable(symbols, bytes.decode, Words())
    assert units.expand(Phrases.from_lists([[0]])).words.tolist() == [0]
    symbols.add(b"b")
    assert np.array_equal(units.expand(Phrases.from_lists([[1, 0]])).words, [1, 0])
