"""Monolingual texts, compared with naive readers; only the first factor of a word is used, as in Moses."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.bitexts import read_line_pairs
from moses_compat.corpora.texts import (
    corpus_blocks,
    corpus_sentences,
    line_blocks,
    read_corpus,
    read_line_texts,
    read_text_lines,
    read_texts,
    surface_words,
    unescaped_sentences,
)
from moses_compat.files import paths, streams
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from tests import moses_settings
from tests.commands import run_inside, write
from tests.variants import for_each


# Not such texts: byte order marks, zero bytes as in UTF-16, and carriage returns without any line feed.
@given(
    st.binary(max_size=200)
    .filter(lambda text: text[:1] not in (b"\xef", b"\xff", b"\xfe") and b"\0" not in text[:64])
    .filter(lambda text: b"\n" in text or b"\r" not in text[:-1]),
    st.integers(1, 40),
)
def test_blocks_are_whole_lines(workspace, text, chunk):
    path = write(workspace / "corpus.gz", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BYTES_PER_BLOCK", chunk)
        blocks = list(line_blocks(str(path)))
    assert all(block.endswith(b"\n") for block in blocks)
    expected = text + b"\n" if text and not text.endswith(b"\n") else text
    assert b"".join(blocks) == expected
    # In the text of a language model, carriage returns and zero bytes are blanks, as in lmplz.
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
    monkeypatch.setattr(streams, "BYTES_PER_BLOCK", 8)
    path = write(tmp_path / "a", b"one line\n\nanother line\nan <s> here\n")
    with pytest.raises(DataError, match=r"a:4: the word <s> is the language model's own"):
        list(corpus_sentences([str(path)], Symbols(), [b"<unk>", b"<s>"]))
    earlier = write(tmp_path / "b", b"a</s> <s>a <s\n")
    with pytest.raises(DataError, match=r"a:4: the word <s> is the language model's own"):
        list(corpus_blocks([str(earlier), str(path)], [b"<unk>", b"<s>", b"</s>"]))


def test_words_without_escapes(tmp_path):
    first, second = write(tmp_path / "one.gz", b"a  &apos;s\tb\n\n"), write(tmp_path / "two", b"c")
    assert list(unescaped_sentences([str(first), str(second)])) == [[b"a", b"'s", b"b"], [], [b"c"]]


def test_texts_are_read_with_escapes_undone(tmp_path):
    path = write(tmp_path / "text.gz", b"a  b &apos;s\n's a\r\n\tc &amp;amp;")
    counts = []
    texts, symbols = read_texts(str(path), lambda position, count: counts.append(count))
    assert [symbols.join(text) for text in texts] == [b"a b 's", b"'s a", b"c &amp;"]
    assert counts[-1] == 3
    texts, symbols = read_texts(str(path), as_written=True)
    assert [symbols.join(text) for text in texts] == [b"a b &apos;s", b"'s a", b"c &amp;amp;"]


@pytest.mark.parametrize(("data", "line"), [(b"a\n\nb\n", 2), (b"a\nb\n \t\n", 3), (b"\n", 1), (b"a\n\r\n", 2)])
def test_an_empty_line_is_refused(tmp_path, data, line):
    path = write(tmp_path / "text", data)
    with pytest.raises(DataError, match=f"text:{line}: the line is empty; leave out lines without a word"):
        read_texts(str(path))


def test_the_line_is_counted_over_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("moses_compat.files.streams.BYTES_PER_BLOCK", 8)
    path = write(tmp_path / "text", b"a b\n" * 50 + b"\n")
    with pytest.raises(DataError, match="text:51: the line is empty"):
        read_texts(str(path))


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="the file contains no text"):
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


def test_the_first_factor_is_read_and_it_is_said(monkeypatch):
    messages = []
    monkeypatch.setattr(paths, "listeners", [messages.append])
    plain = b"das haus &#124;\n\nx <seg> <b> *EPS*x\n"
    assert surface_words(plain) is plain
    assert messages == []
    assert surface_words(b"das|ART haus|N\tist||V x|\n|y".replace(b"|y", b"y|1|2|3"), "f") == b"das haus\tist x\ny"
    assert messages == ["f: 5 words have factors, as in word|TAG; as in Moses, only the first of each is read"]


@for_each(
    ("text", "message"),
    [
        (b"a\n| b\n", r"f:2: the word \| begins with a bar, .* write a bar as &#124;$"),
        (b"a |x\n", r"f:1: the word \|x begins with a bar"),
        (b"a\n <SEG id=1> b </seg>\n", "f:2: <SEG is markup to Moses"),
        (b"a\n" + b"a " * 10_001 + b"\n", "f:2: the sentence has 10,001 words; at most 10,000 are translated"),
        (b'a <dlt type="x"/> b\n', "f:1: <dlt is markup to Moses"),
        (b"a\n*EPS* b\n", r"f:2: Moses does not read \*EPS\* as a word"),
        (
            b"a [ x ] [y\nb [x]\n",
            r"f:2: the word \[x\] is in brackets, and Moses stops at it; write the brackets as &",
        ),
        (b"[]\n", r"f:1: the word \[\] is in brackets"),
        (b"a|b|c|d|e\n", r"f:1: the word a\|b\|c\|d\|e has more than 4 factors; Moses stops at it"),
    ],
)
def test_words_that_moses_drops_or_stops_at(text, message):
    with pytest.raises(DataError, match=message):
        surface_words(text, "f")


@pytest.fixture
def model(tmp_path, monkeypatch):
    moses_settings.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.requires_moses
def test_a_real_moses_reads_the_same_words(model, moses):
    (model / "text").write_text("a|X b|Y c , q1|N\nd||x a\n")
    assert moses_settings.verdict(moses_settings.of_moses(moses(), moses_settings.INI),
                                  moses_settings.of_ours(moses_settings.INI)) == "same"  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a|X b ||| v ||| 1 1\n", "the source has a word with a bar"),
        ("a b|Y ||| v ||| 1 1\n", "the source has a word with a bar"),
        ("a b ||| v|N w ||| 1 1\n", r"the target word v|N has a bar"),
        ("a b ||| v | w ||| 1 1\n", r"the target word | has a bar"),
    ],
)
def test_factored_tables_are_refused(model, line, message):
    table = (model / "table").read_text()
    (model / "table").write_text(line + table)
    (model / "moses.ini").write_text(moses_settings.INI)
    for command in (["decode", "text"], ["force-decode", "text", "text2", "-o", "pairs"]):
        (model / "text2").write_text(moses_settings.TEXT)
        outcome = run_inside(*command, "--moses-ini", "moses.ini", "-q")
        assert outcome.code == 1
        assert outcome.message.startswith(f"phrasetool: table:1: {message}; factored tables are not supported, ")


def test_escapes_are_undone_and_spaces_are_one(tmp_path):
    text = "it &apos;s  a &amp; b\r\n我\u3000们\tsee &quot; &lt;b&gt;\nlast"
    expected = ["it 's a & b", '我\u3000们 see " <b>', "last"]
    path = write(tmp_path / "t.gz", text.encode())
    assert gzip.decompress(path.read_bytes()).decode() == text
    steps = []
    assert read_line_texts(str(path), lambda position, lines: steps.append(lines)) == expected
    assert steps[-1] == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\n\nb\n", ":2: the line is empty"),
        (b"a\n \t \n", ":2: the line is empty"),
        (b"a\nb \xff\n", r":2: not UTF-8 \(invalid start byte at byte 3\)"),
        (b"", ": the file contains no text"),
    ],
)
def test_lines_that_cannot_be_read(tmp_path, text, message):
    path = write(tmp_path / "t", text)
    with pytest.raises(DataError, match=f"t{message}"):
        read_line_texts(str(path))


def test_empty_lines_are_left_out_where_nothing_stands_beside_them(tmp_path):
    path = str(write(tmp_path / "t", b"\na\n\n\nb\n"))
    assert read_line_texts(path, whole=False) == ["a", "b"]
    write(tmp_path / "t", b"\n\n")
    with pytest.raises(DataError, match="the file contains no text"):
        read_line_texts(path, whole=False)


def test_both_sides(tmp_path):
    source, target = str(write(tmp_path / "1", b"a\nb\n")), str(write(tmp_path / "2", b"x\ny\n"))
    assert read_line_pairs(source, target) == (["a", "b"], ["x", "y"])
    with pytest.raises(DataError, match=r"the file ends after 2 lines, but .* has 3"):
        read_line_pairs(source, str(write(tmp_path / "3", b"x\ny\nz\n")))
    with pytest.raises(PhraseToolError, match="is also the source file"):
        read_line_pairs(source, source)
    with pytest.raises(PhraseToolError, match="cannot be both sides"):
        read_line_pairs("-", "-")
