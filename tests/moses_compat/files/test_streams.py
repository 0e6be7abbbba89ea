"""Inputs and outputs, packed or not: complete files or none, errors for damaged files, limits of lines."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
from types import SimpleNamespace

import pytest

from moses_compat.files import paths, streams
from moses_compat.files.packing import GZIP
from moses_compat.files.streams import BUFFER_BYTES, Input, Output, check_readable, check_writable, compress, open_bytes
from phrasetool.embeddings.files import load_vectors
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import write
from tests.tables import TABLES

TEXT = TABLES["seven fields"] * 3


@pytest.mark.parametrize("name", ["table", "table.gz"])
@pytest.mark.parametrize("packed", [False, True])
def test_input_is_told_by_content_not_name(tmp_path, name, packed):
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT) if packed else TEXT)
    with Input(str(path)) as source:
        assert source.size() == path.stat().st_size
        assert source.read(10) == TEXT[:10]
        assert source.read_all() == TEXT[10:]
        assert source.read(10) == b""
        assert source.position() == path.stat().st_size


def test_input_reads_several_members_and_padding(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(TEXT) + compress(b"") + compress(TEXT) + b"\0" * 512)
    with Input(str(path)) as source:
        assert source.read_all() == TEXT * 2


class _Slow(io.RawIOBase):
    """A pipe that returns one byte at a time."""

    def __init__(self, data):
        self._data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self._data.read(1)
        buffer[: len(piece)] = piece
        return len(piece)


class _Standard:
    def __init__(self, buffer):
        self.buffer = buffer


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "slow pipe", "bytes"])
def test_standard_input(monkeypatch, packed, kind):
    data = gzip.compress(TEXT) if packed else TEXT
    buffers = {
        "pipe": io.BufferedReader(io.BytesIO(data)),
        "slow pipe": io.BufferedReader(_Slow(data)),
        "bytes": io.BytesIO(data),
    }
    monkeypatch.setattr("sys.stdin", _Standard(buffers[kind]))
    with Input("-") as source:
        assert source.name == "standard input"
        assert source.read_all() == TEXT
    assert not buffers[kind].closed


def test_missing_file():
    with pytest.raises(DataError, match=r"^/no/such/table: No such file"):
        Input("/no/such/table")


def test_folder_as_input(tmp_path):
    with pytest.raises(DataError, match="directory"):
        Input(str(tmp_path))


def test_placeholder(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(b"")
    with pytest.raises(DataError, match="0 bytes"):
        Input(str(path))
    plain = tmp_path / "t"
    plain.write_bytes(b"")
    with Input(str(plain)) as source:
        assert source.read_all() == b""


def read_back(path):
    with Input(str(path)) as source:
        return source.read_all()


def test_every_truncation_is_an_error(tmp_path):
    whole = gzip.compress(TEXT[:2000], mtime=0)
    path = tmp_path / "t.gz"
    for length in range(2, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"t\.gz: the gzip data"):
            read_back(path)


def test_no_flipped_bit_changes_the_text(tmp_path):
    text = TEXT[:400]
    whole = gzip.compress(text, mtime=0)
    path = tmp_path / "t.gz"
    failed = 0
    for position in range(2, len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            try:
                assert read_back(path) == text
            except DataError as error:
                failed += str(error).startswith(f"{path}: the gzip data")
    assert failed > 6 * (len(whole) - 12)


def test_read_error_of_a_later_block(tmp_path):
    whole = gzip.compress(os.urandom(1 << 16))
    path = tmp_path / "t.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with Input(str(path)) as source:
        assert len(source.read(1000)) == 1000
        with pytest.raises(DataError, match="end too early"):
            source.read_all()


def test_compress_has_no_name_and_no_time():
    assert compress(TEXT) == compress(TEXT)
    assert compress(TEXT)[3:8] == b"\0" * 5
    assert gzip.decompress(compress(TEXT) + compress(TEXT)) == TEXT * 2


@pytest.mark.parametrize("name", ["o", "o.gz"])
def test_output_appears_when_complete(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"old")
    mask = os.umask(0o027)
    try:
        with Output(str(path)) as out:
            assert (out.packing is GZIP) == (name == "o.gz")
            out.write(compress(b"new") if out.packing else b"new")
            assert path.read_bytes() == b"old"
    finally:
        os.umask(mask)
    assert (gzip.decompress(path.read_bytes()) if out.packing else path.read_bytes()) == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_output_of_a_run_that_dies(tmp_path, existing, error):
    path = tmp_path / "o"
    if existing:
        path.write_bytes(b"old")
    with pytest.raises(error), Output(str(path)) as out:  # noqa: PT012
        out.write(b"half")
        raise error
    assert os.listdir(tmp_path) == (["o"] if existing else [])
    assert not existing or path.read_bytes() == b"old"


def test_empty_output(tmp_path):
    for name in ("o", "o.gz"):
        with Output(str(tmp_path / name)):
            pass
    assert (tmp_path / "o").read_bytes() == b""
    assert gzip.decompress((tmp_path / "o.gz").read_bytes()) == b""
    assert (tmp_path / "o.gz").stat().st_size > 0


def test_output_that_cannot_be_made(tmp_path):
    with pytest.raises(PhraseToolError, match="is a folder"):
        Output(str(tmp_path))
    with pytest.raises(PhraseToolError, match="cannot write: No such file"):
        Output(str(tmp_path / "no" / "such"))


def test_full_disk():
    with pytest.raises(PhraseToolError, match="the disk is full"), Output("/dev/full") as out:
        out.write(b"x" * 100)
    with pytest.raises(PhraseToolError, match="the disk is full"), Output("/dev/full") as out:
        out.write(b"x" * 1_000_000)


def test_output_to_a_device_or_pipe():
    with Output(os.devnull) as out:
        out.write(b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_output_to_an_open_descriptor_keeps_what_others_wrote(tmp_path):
    path = tmp_path / "o"
    with open(path, "wb", buffering=0) as file:
        (tmp_path / "link").symlink_to(f"/dev/fd/{file.fileno()}")
        file.write(b"head\n")
        for name in (f"/dev/fd/{file.fileno()}", f"/proc/self/fd/{file.fileno()}", str(tmp_path / "link")):
            check_writable(name)
            with Output(name) as out:
                out.write(b"new\n")
        file.write(b"tail\n")
    assert path.read_bytes() == b"head\n" + b"new\n" * 3 + b"tail\n"
    assert sorted(os.listdir(tmp_path)) == ["link", "o"]
    assert paths.scratch_place(f"/dev/fd/{os.open(path, os.O_RDONLY)}") is None


def test_output_through_a_symbolic_link_replaces_the_file_it_points_to(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Output(str(tmp_path / "link")) as out:
        out.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.fixture
def bomb(tmp_path, monkeypatch):
    """Write a packed file of two lines and a very long one, and lower the limits of lines and reads."""
    monkeypatch.setattr(streams, "BYTES_PER_BLOCK", 64)
    monkeypatch.setattr(streams, "LONGEST_TEXT_LINE", 256)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a line\nanother\n" + b"x" * 100_000))
    return str(path)


@pytest.mark.parametrize("how", ["read_all", "whole_lines"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(bomb, monkeypatch, how):
    read = []
    with Input(bomb) as source:
        reading = source.read
        monkeypatch.setattr(source, "read", lambda size: read.append(size) or reading(size))
        with pytest.raises(
            DataError, match=r":3: the line has more than 256 bytes; expected text with one sentence per line"
        ):
            b"".join(getattr(source, how)())
    assert sum(read) < 512


def test_tables_have_limits_of_their_own(bomb):
    with Input(bomb) as source:
        assert b"".join(source.whole_lines(limited=False)).endswith(b"x" * 100_000)


@pytest.mark.parametrize("parts", [[b"x" * 256], [b"x" * 200 + b"\n", b"y" * 200, b"\n"], [b"\n" * 1000], []], ids=len)
def test_the_longest_line(parts, monkeypatch):
    monkeypatch.setattr(streams, "LONGEST_TEXT_LINE", 256)
    assert list(streams.limited_lines("text", parts)) == parts


zstandard = pytest.importorskip("zstandard")
PACK = [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress]
LINES = b"".join(b"%d line\n" % number for number in range(20_000))


@pytest.mark.parametrize("pack", PACK)
def test_it_reads_as_any_file_does(tmp_path, pack):
    path = tmp_path / "f"
    path.write_bytes(pack(LINES))
    with open_bytes(str(path)) as file:
        assert file.peek(BUFFER_BYTES) == LINES[:BUFFER_BYTES]
        assert file.readline() == b"0 line\n"
        assert file.read(3) == b"1 l"
        assert b"".join(file) == LINES[10:]
    assert file.closed


def test_faults_are_those_of_all_texts(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(lzma.compress(LINES)[:-40])
    with open_bytes(str(path)) as file, pytest.raises(DataError, match="the xz data end too early"):
        file.read()
    with pytest.raises(DataError, match="No such file"):
        open_bytes(str(tmp_path / "none"))


@pytest.mark.parametrize("pack", PACK)
def test_word_vectors_in_every_packing(tmp_path, pack):
    from gensim.models.fasttext import FastText, save_facebook_model

    path = tmp_path / "vectors.gz"
    path.write_bytes(pack(b"2 3\nhaus 1 2 3\nhof 4 5 6\n"))
    assert load_vectors(str(path), [b"hof"], opened=open_bytes)[b"hof"].tolist() == [4, 5, 6]
    model = FastText(vector_size=4, min_count=1, bucket=50, workers=1, seed=1)
    model.build_vocab([["haus", "hof"]] * 5)
    model.train([["haus", "hof"]] * 5, total_examples=5, epochs=1)
    save_facebook_model(model, str(tmp_path / "plain"))
    # The suffix does not match the content.
    path.write_bytes(pack((tmp_path / "plain").read_bytes()))
    result = load_vectors(str(path), [b"haus"], opened=open_bytes)
    assert result[b"haus"].tolist() == pytest.approx(model.wv["haus"].tolist(), rel=1e-5)


def test_a_check_changes_nothing(tmp_path):
    file = write(tmp_path / "there", b"as it was")
    os.mkfifo(tmp_path / "pipe")
    for path in (file, tmp_path / "pipe"):
        check_readable(str(path))
        check_writable(str(path))
    check_writable(str(tmp_path / "new.gz"))
    check_writable("-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "there"]
    assert file.read_bytes() == b"as it was"


def test_what_cannot_be_read(tmp_path):
    for path, message in ((tmp_path / "none", "none: No such file"), (tmp_path, "is a directory")):
        with pytest.raises(DataError, match=message):
            check_readable(str(path))


def test_what_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(PhraseToolError, match=r"out: cannot write: there is no folder .*no$"):
        check_writable(str(tmp_path / "no" / "out"))
    (tmp_path / "dangling").symlink_to(tmp_path / "missing" / "out")
    with pytest.raises(PhraseToolError, match=r"dangling: cannot write: there is no folder .*missing$"):
        check_writable(str(tmp_path / "dangling"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PhraseToolError, match=r"dangling: cannot write: there is no folder .*missing$"):
        check_writable("dangling")
    with pytest.raises(PhraseToolError, match=r"^cannot write: expected a file name, found an empty one$"):
        check_writable("")
    with pytest.raises(PhraseToolError, match=r"^new/: cannot write: expected a file name, found one that ends in /$"):
        check_writable("new/")
    with pytest.raises(PhraseToolError, match="is a folder, expected a file name"):
        check_writable(str(tmp_path))
    monkeypatch.setattr(streams.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    with pytest.raises(PhraseToolError, match="out: cannot write: the disk is full"):
        check_writable(str(tmp_path / "out"))
