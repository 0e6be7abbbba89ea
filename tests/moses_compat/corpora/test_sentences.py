import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.sentences import line_blocks, read_corpus, unescaped_sentences
from moses_compat.files import streams
from phrasetool.errors import DataError
from phrasetool.smt.corpus.symbols import Symbols
from tests.commands import write


@given(st.binary(max_size=200), st.integers(1, 40))
def test_blocks_are_whole_lines(workspace, text, chunk):
    path = write(workspace / "corpus.gz", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "LINES_AT_ONCE", chunk)
        blocks = list(line_blocks(str(path)))
    assert all(block.endswith(b"\n") for block in blocks)
    expected = text.replace(b"\r", b" ").replace(b"\0", b" ")
    assert b"".join(blocks) == (expected + b"\n" if text and not text.endswith(b"\n") else expected)


def test_files_one_after_another(tmp_path):
    first = write(tmp_path / "a", b"the cat\r\n\nsat\ton  a mat")
    second = write(tmp_path / "b.gz", b"a cat\n")
    symbols = Symbols([b"x"])
    sentences = read_corpus([str(first), str(second)], symbols)
    assert [symbols.join(sentence) for sentence in sentences] == [b"the cat", b"", b"sat on a mat", b"a cat"]
    assert sentences.words.dtype == np.int32
    assert symbols.words[0] == b"x"


def test_no_text(tmp_path):
    assert len(read_corpus([str(write(tmp_path / "a", b""))], Symbols())) == 0


def test_forbidden_words_are_named_with_their_line(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "LINES_AT_ONCE", 8)
    path = write(tmp_path / "a", b"one line\n\nanother line\nan <s> here\n")
    with pytest.raises(DataError, match=r"a:4: the word <s> is the language model's own"):
        read_corpus([str(path)], Symbols(), [b"<unk>", b"<s>"])


def test_words_without_escapes(tmp_path):
    one, two = write(tmp_path / "one.gz", b"a  &apos;s\tb\n\n"), write(tmp_path / "two", b"c")
    assert list(unescaped_sentences([str(one), str(two)])) == [[b"a", b"'s", b"b"], [], [], [b"c"]]
