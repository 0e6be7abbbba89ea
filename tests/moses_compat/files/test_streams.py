import gzip
import io
import os
import stat

import pytest

from moses_compat.files.packing import GZIP
from moses_compat.files.streams import Input, Output, compress
from phrasetool.errors import DataError, PhraseToolError
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
    """A pipe that gives one byte at a time."""

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


def test_output_through_a_symbolic_link_replaces_the_file_it_points_to(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Output(str(tmp_path / "link")) as out:
        out.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
