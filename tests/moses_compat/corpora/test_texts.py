import pytest

from moses_compat.corpora.texts import read_text_lines, read_texts
from phrasetool.errors import DataError
from tests.commands import write


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
