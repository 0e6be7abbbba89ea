import gzip

import pytest

from moses_compat.files import streams, text_lines
from moses_compat.files.streams import Input
from phrasetool.errors import DataError


@pytest.fixture
def bomb(tmp_path, monkeypatch):
    """A file of two lines and a very long one, packed; and how much of it is read at once."""
    monkeypatch.setattr(streams, "LINES_AT_ONCE", 64)
    monkeypatch.setattr(text_lines, "LONGEST_TEXT_LINE", 256)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a line\nanother\n" + b"x" * 100_000))
    return str(path)


@pytest.mark.parametrize("how", ["read_all", "whole_lines"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(bomb, monkeypatch, how):
    read = []
    with Input(bomb) as source:
        reading = source.read
        monkeypatch.setattr(source, "read", lambda size: read.append(size) or reading(size))
        with pytest.raises(DataError, match=r":3: the line has more than 256 bytes; expected text, a sentence a line"):
            b"".join(getattr(source, how)())
    assert sum(read) < 512


def test_tables_have_limits_of_their_own(bomb):
    with Input(bomb) as source:
        assert b"".join(source.whole_lines(limited=False)).endswith(b"x" * 100_000)


@pytest.mark.parametrize("parts", [[b"x" * 256], [b"x" * 200 + b"\n", b"y" * 200, b"\n"], [b"\n" * 1000], []], ids=len)
def test_the_longest_line(parts, monkeypatch):
    monkeypatch.setattr(text_lines, "LONGEST_TEXT_LINE", 256)
    assert list(text_lines.limited_lines("text", parts)) == parts
