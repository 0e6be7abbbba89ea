from moses_compat.corpora.shared_pairs import shared_pairs


def test_lines_without_words_are_no_shared_sentences(tmp_path):
    (tmp_path / "t.src").write_bytes(b"\na\n \n")
    (tmp_path / "t.trg").write_bytes(b"\nx\ny\n")
    texts = {"one": (b"\na\nb\n", b"\nx\nx"), "two": (b"\n", b" \n"), "three": (b"\n", b"y\n")}
    bitext = str(tmp_path / "t.src"), str(tmp_path / "t.trg")
    assert shared_pairs(bitext, texts) == {"one": (1, 2), "three": (1, 1)}
