import gzip

import pytest

from moses_compat.corpora.line_texts import read_line_pairs, read_line_texts
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import write


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
        (b"", ": there is no text in it"),
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
    with pytest.raises(DataError, match="there is no text in it"):
        read_line_texts(path, whole=False)


def test_both_sides(tmp_path):
    one, two = str(write(tmp_path / "1", b"a\nb\n")), str(write(tmp_path / "2", b"x\ny\n"))
    assert read_line_pairs(one, two) == (["a", "b"], ["x", "y"])
    with pytest.raises(DataError, match=r"the file ends after 2 lines, but .* has 3"):
        read_line_pairs(one, str(write(tmp_path / "3", b"x\ny\nz\n")))
    with pytest.raises(PhraseToolError, match="is the file of the source, too"):
        read_line_pairs(one, one)
    with pytest.raises(PhraseToolError, match="cannot be both sides"):
        read_line_pairs("-", "-")
