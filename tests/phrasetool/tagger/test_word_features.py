import zlib

import numpy as np
import pytest

from phrasetool.tagger.word_features import FEATURES, feature_rows, feature_texts, shape


def test_features_of_a_word():
    assert feature_texts("Haus", "de") == [
        "=haus", "<h", "<ha", "<hau", "", "s>", "us>", "aus>", "", "", "#Xx", "@de",
    ]  # fmt: skip
    assert len(feature_texts("", "de")) == FEATURES


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("Haus", "Xx"), ("USA", "X"), ("10.25", "0.0"), ("e-Mail", "x-Xx"), ("中文", "c"), ("...", "."), ("", "")],
)
def test_shapes(word, wanted):
    assert shape(word) == wanted


def test_long_shapes_are_cut():
    assert len(shape("aB" * 20)) == 8


def test_rows_are_hashes_of_the_texts_and_row_0_of_none():
    words = ["Haus", "a", "中文", "\udcff"]
    rows = feature_rows(words, "de", 1000)
    assert rows.dtype == np.int32
    for row, word in zip(rows.tolist(), words, strict=True):
        for found, text in zip(row, feature_texts(word, "de"), strict=True):
            assert found == (zlib.crc32(text.encode("utf-8", "surrogateescape")) % 999 + 1 if text else 0)
    assert feature_rows([], "de", 1000).shape == (0, FEATURES)
