"""Mining in one process, compared with a naive search of the same vectors; texts and files of pairs."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from moses_compat.jobs import mine
from moses_compat.jobs.mine import (
    MiningSettings,
    RowTexts,
    kept_pairs,
    mine_texts,
    mined_lines,
    mining_statistics,
    mining_summary,
    read_gold,
    read_mined,
    read_sides,
    store_for_output,
    stored,
)
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pair_classifier.bitext_scores import find_pair_encoder
from phrasetool.text_encoders.margins import unit_rows
from tests import naive_mining
from tests.comparable_text import encoder_folder, write_corpus


def test_mined_pairs_are_read(tmp_path):
    (tmp_path / "m").write_text("1.5\ta  b\tc\n\n2\td\te\t1.0\tcopy")
    result = read_mined(str(tmp_path / "m"))
    assert result.scores.tolist() == [1.5, 2.0]
    assert result.pairs == [(b"a b", b"c"), (b"d", b"e")]


def test_gold_with_and_without_scores(tmp_path):
    (tmp_path / "g").write_text("a\tb\n0.5\tc\td\n7\t8\nx\ty\tz\n")
    assert read_gold(str(tmp_path / "g")) == {(b"a", b"b"), (b"c", b"d"), (b"7", b"8"), (b"x", b"y")}


@pytest.mark.parametrize("line", ["a", "a\tb", "x\ta\tb", "inf\ta\tb"])
def test_malformed_mined_pairs(line, tmp_path):
    (tmp_path / "m").write_text(f"1\ta\tb\n{line}\n")
    with pytest.raises(DataError, match=r"m:2: "):
        read_mined(str(tmp_path / "m"))


LINE = st.lists(st.sampled_from(["a", "b", "&amp;", "&", "ä", "\t", "\rc\u00a0", "  "]), max_size=5).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(LINE, min_size=1, max_size=12), last=st.booleans())
def test_each_different_sentence_once(tmp_path_factory, lines, last):
    # A file with carriage returns but no line feed is rejected.
    assume(last or len(lines) > 1 or "\r" not in lines[0])
    folder = tmp_path_factory.mktemp("texts")
    (folder / "s").write_bytes(("\n".join(lines) + ("\n" if last or not lines[-1] else "")).encode())
    (folder / "t").write_bytes(b"x\n")
    expected = {}
    for line in lines:
        plain = " ".join(filter(None, re.split("[ \t\r]", line.replace("&amp;", "&"))))
        if plain:
            expected.setdefault(plain, re.sub("[\t\r]", " ", line).strip(" "))
    if not expected:
        with pytest.raises(DataError, match="no sentence"):
            read_sides(str(folder / "s"), str(folder / "t"), False)
        return
    text = read_sides(str(folder / "s"), str(folder / "t"), False)[0]
    assert {text.plain(row): text.written(row).decode() for row in range(len(text))} == expected
    assert (text.lines, text.empty) == (len(lines), sum(not line.strip() for line in lines))
    lengths = [len(text.plain(row).encode()) for row in range(len(text))]
    assert lengths == sorted(lengths)


def test_order_and_keys_do_not_depend_on_the_order_of_lines(tmp_path):
    for name, lines in (("a", "x y\nz\nu v w\n"), ("b", "u v w\nz\nz\nx  y\n"), ("t", "x\n")):
        (tmp_path / name).write_text(lines)
    sides = [read_sides(str(tmp_path / name), str(tmp_path / "t"), False) for name in "ab"]
    assert stored(sides[0], lambda text, side: text).fingerprint == stored(sides[1], lambda text, side: "").fingerprint
    assert [sides[0][0].plain(row) for row in range(3)] == [sides[1][0].plain(row) for row in range(3)]


def test_texts_for_encoders(tmp_path):
    (tmp_path / "s").write_text("b c\na\n")
    (tmp_path / "t").write_text("x\n")
    phrases = stored(read_sides(str(tmp_path / "s"), str(tmp_path / "t"), False), lambda text, side: f"{side}:{text}")
    assert list(phrases.texts[0]) == ["0:a", "0:b c"]
    assert list(phrases.texts[1]) == ["1:x"]
    assert phrases.texts[0][0:5] == ["0:a", "0:b c"]
    assert isinstance(phrases.texts[0], RowTexts)
    with pytest.raises(IndexError):
        phrases.texts[0][2]


def test_names(tmp_path):
    (tmp_path / "s").write_text("id 1\tb c\td\nx\ta\n")
    (tmp_path / "t").write_text("y\tx\n")
    text = read_sides(str(tmp_path / "s"), str(tmp_path / "t"), True)[0]
    assert [(text.name_of(row), text.written(row)) for row in range(2)] == [(b"x", b"a"), (b"id 1", b"b c d")]


def test_one_file_cannot_be_both_sides(tmp_path):
    (tmp_path / "s").write_text("a\n")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    with pytest.raises(PhraseToolError, match="is also the source file"):
        read_sides(str(tmp_path / "s"), str(tmp_path / "link"), False)
    with pytest.raises(PhraseToolError, match="cannot be both sides"):
        read_sides("-", "-", False)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return find_pair_encoder(str(encoder_folder(tmp_path_factory.mktemp("encoder") / "static")))


def search(folder, encoder, **settings):
    mining_settings = MiningSettings(**settings)
    return mine_texts(
        str(folder / "s.txt"), str(folder / "t.txt"), encoder, lambda text, side: text, "", None, mining_settings
    )


@pytest.mark.parametrize("retrieval", ["max", "forward", "backward", "intersection"])
@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_equals_the_naive_search(encoder, tmp_path, retrieval, margin):
    write_corpus(tmp_path)
    result = search(tmp_path, encoder, margin=margin, retrieval=retrieval, min_cosine=0.2, k=3)
    loaded = encoder.load()[0]
    vectors = [
        unit_rows(loaded.encode([text.plain(row) for row in range(len(text))], side)).astype(np.float16)
        for text, side in zip(result.sides, ("source", "target"), strict=True)
    ]
    expected = naive_mining.scored(*vectors, 3, margin, 0.2)
    pairs = list(zip(result.pairs.sources.tolist(), result.pairs.targets.tolist(), strict=True))
    assert set(pairs) == set(naive_mining.retrieved(expected, retrieval))
    np.testing.assert_allclose(result.pairs.scores, [expected[pair][0] for pair in pairs], atol=1e-5)


def test_many_sentences_are_searched_approximately(encoder, tmp_path, monkeypatch):
    pytest.importorskip("faiss", reason="the extra `mine` is not installed")
    write_corpus(tmp_path)
    assert search(tmp_path, encoder).agreement is None
    monkeypatch.setattr(mine, "EXACT_UP_TO", 100)
    assert search(tmp_path, encoder).agreement.share >= 0.98
    assert search(tmp_path, encoder, search="exact").agreement is None


def test_k_is_clamped_and_thresholds_cut(encoder, tmp_path):
    write_corpus(tmp_path)
    result = search(tmp_path, encoder, k=100_000)
    middle = float(np.median(result.pairs.scores))
    lines = list(mined_lines(result, MiningSettings(threshold=middle)))
    assert len(lines) == kept_pairs(result, middle) == int((result.pairs.scores >= middle).sum())
    assert 0 < len(lines) < len(result.pairs)
    statistics = mining_statistics(result, MiningSettings(threshold=middle), "e")
    assert statistics["written"] == len(lines)
    assert mining_summary(statistics)[-1] == (
        f"{len(lines):,} of {len(result.pairs):,} pairs that score at least {middle:.6g} written"
    )


def test_path_of_the_vector_store(encoder, tmp_path):
    assert store_for_output("-", encoder) is None
    name = store_for_output("a/mined.tsv.gz", encoder)
    assert name.startswith("a/mined.tsv.")
    assert name.endswith(".vectors")
