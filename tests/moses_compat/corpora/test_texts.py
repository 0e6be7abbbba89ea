import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.texts import (
    corpus_blocks,
    corpus_sentences,
    line_blocks,
    read_corpus,
    read_text_lines,
    read_texts,
    unescaped_sentences,
)
from moses_compat.files import streams
from phrasetool.errors import DataError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from tests.commands import write


# What is told by the first bytes: marks of UTF-8 and UTF-16, and zeros as UTF-16 has them.
@given(
    st.binary(max_size=200).filter(lambda text: text[:1] not in (b"\xef", b"\xff", b"\xfe") and b"\0" not in text[:64]),
    st.integers(1, 40),
)
def test_blocks_are_whole_lines(workspace, text, chunk):
    path = write(workspace / "corpus.gz", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "LINES_AT_ONCE", chunk)
        blocks = list(line_blocks(str(path)))
    assert all(block.endswith(b"\n") for block in blocks)
    expected = text + b"\n" if text and not text.endswith(b"\n") else text
    assert b"".join(blocks) == expected
    # A language model is of words as lmplz reads them.
    as_lmplz = expected.replace(b"\r", b" ").replace(b"\0", b" ")
    if as_lmplz.strip(b" \t\n"):
        assert b"".join(corpus_blocks([str(path)])) == as_lmplz


def test_files_one_after_another(tmp_path):
    first = write(tmp_path / "a", b"the cat\r\n\nsat\ton\ra mat")
    second = write(tmp_path / "b.gz", b"a cat\n")
    symbols = Symbols([b"x"])
    sentences = Phrases.concatenate(list(corpus_sentences([str(first), str(second)], symbols)))
    assert [symbols.join(sentence) for sentence in sentences] == [b"the cat", b"", b"sat on a mat", b"a cat"]
    assert sentences.words.dtype == np.int32
    assert symbols.words[0] == b"x"
    symbols = Symbols()
    sentences = read_corpus(str(first), symbols)
    assert [symbols.join(sentence) for sentence in sentences] == [b"the cat", b"", b"sat on\ra mat"]


def test_no_text(tmp_path):
    assert len(read_corpus(str(write(tmp_path / "a", b"")), Symbols())) == 0


def test_forbidden_words_are_named_with_their_line(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "LINES_AT_ONCE", 8)
    path = write(tmp_path / "a", b"one line\n\nanother line\nan <s> here\n")
    with pytest.raises(DataError, match=r"a:4: the word <s> is the language model's own"):
        list(corpus_sentences([str(path)], Symbols(), [b"<unk>", b"<s>"]))


def test_words_without_escapes(tmp_path):
    one, two = write(tmp_path / "one.gz", b"a  &apos;s\tb\n\n"), write(tmp_path / "two", b"c")
    assert list(unescaped_sentences([str(one), str(two)])) == [[b"a", b"'s", b"b"], [], [b"c"]]


def test_texts_are_read_with_escapes_undone(tmp_path):
    path = write(tmp_path / "text.gz", b"a  b &apos;s\n's a\r\n\tc &amp;amp;")
    seen = []
    texts, symbols = read_texts(str(path), lambda position, count: seen.append(count))
    assert [symbols.join(text) for text in texts] == [b"a b 's", b"'s a", b"c &amp;"]
    assert seen[-1] == 3
    texts, symbols = read_texts(str(path), as_written=True)
    assert [symbols.join(text) for text in texts] == [b"a b &apos;s", b"'s a", b"c &amp;amp;"]


@pytest.mark.parametrize(("data", "line"), [(b"a\n\nb\n", 2), (b"a\nb\n \t\n", 3), (b"\n", 1), (b"a\n\r\n", 2)])
def test_an_empty_line_is_refused(tmp_path, data, line):
    path = write(tmp_path / "text", data)
    with pytest.raises(DataError, match=f"text:{line}: the line is empty; leave out lines without a word"):
        read_texts(str(path))


def test_the_line_is_counted_over_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("moses_compat.files.streams.LINES_AT_ONCE", 8)
    path = write(tmp_path / "text", b"a b\n" * 50 + b"\n")
    with pytest.raises(DataError, match="text:51: the line is empty"):
        read_texts(str(path))


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no text in it"):
        read_texts(str(write(tmp_path / "text", b"")))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\r\n\nb", ["a", "", "b"]),
        (b"a b \n", ["a b "]),
        ("\u00e9\n".encode() + b"\xff\n", ["\u00e9", "\udcff"]),
        (b"a\x0bb\x85\n", ["a\x0bb\udc85"]),
    ],
)
def test_lines_as_text(tmp_path, data, lines):
    assert read_text_lines(str(write(tmp_path / "text.gz", data))) == lines


def test_no_lines_at_all(tmp_path):
    with pytest.raises(DataError, match="text: the file has no lines"):
        read_text_lines(str(write(tmp_path / "text", b"")))
