import bz2
import gzip
import lzma
import os
import re
import sys

import pytest

from moses_compat.files import packing, paths
from moses_compat.files.packing import PACKINGS, packing_for, packing_of, without_ending
from moses_compat.files.streams import Input, Output
from phrasetool.errors import DataError
from tests.tables import TABLES

zstandard = pytest.importorskip("zstandard")
TEXT = TABLES["seven fields"] * 3
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
UNPACK = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(data),
}


@pytest.fixture(params=[".gz", ".bz2", ".xz", ".zst zstandard", ".zst backports.zstd"])
def ending(request, monkeypatch):
    """Return a suffix of file names; that of zstd with each package that supports it."""
    result, _, package = request.param.partition(" ")
    if package:
        pytest.importorskip(package, reason=f"{package} is another package for the same")
        others = {"compression.zstd", "backports.zstd"} - {package}
        for name in others:
            monkeypatch.setitem(sys.modules, name, None)
    packing._zstd.cache_clear()
    yield result
    packing._zstd.cache_clear()


def read_back(path, data):
    path.write_bytes(data)
    with Input(str(path)) as source:
        return source.read_all()


def test_endings_are_those_of_the_packings():
    assert [packing.ending for packing in PACKINGS] == list(PACK)
    assert packing_for("table.bz2.txt") is None
    assert without_ending("a.xz/table.zst") == "a.xz/table"
    assert without_ending("table") == "table"


@pytest.mark.parametrize("name", ["table", "table.gz"])
def test_read_by_content(tmp_path, ending, name):
    pack = PACK[ending]
    assert read_back(tmp_path / name, pack(TEXT)) == TEXT
    assert read_back(tmp_path / name, pack(b"")) == b""
    assert read_back(tmp_path / name, pack(TEXT) + pack(b"") + pack(TEXT)) == TEXT * 2


def test_much_text_in_small_reads(tmp_path, ending):
    text = os.urandom(200_000) + b"a" * 3_000_000
    (tmp_path / "t").write_bytes(PACK[ending](text) * 2)
    with Input(str(tmp_path / "t")) as source:
        assert b"".join(iter(lambda: source.read(77_777), b"")) == text * 2


def test_written_by_name(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    with Output(str(path)) as out:
        out.write_text(TEXT[:50])
        out.write(out.encode(TEXT[50:99]))
        out.write_text(TEXT[99:])
    assert UNPACK[ending](path.read_bytes()) == TEXT
    with Output(str(path)):
        pass
    assert path.stat().st_size > 0
    assert UNPACK[ending](path.read_bytes()) == b""


def test_every_truncation_is_said(tmp_path, ending):
    whole = PACK[ending](TEXT[:300])
    for length in range(1, len(whole)):
        with pytest.raises(DataError, match=r"data end too early \(truncated file\?\)$"):
            read_back(tmp_path / f"t{ending}", whole[:length])


def test_no_flipped_bit_changes_the_text(tmp_path, ending):
    whole = bytearray(packing_for(ending).compress(TEXT[:200]))
    failed = 0
    for position in range(12, len(whole)):
        whole[position] ^= 4
        try:
            assert read_back(tmp_path / "t", bytes(whole)) == TEXT[:200]
        except DataError as error:
            failed += bool(re.search(r": the \w+ data", str(error)))
        whole[position] ^= 4
    assert failed > 0.9 * (len(whole) - 12)


@pytest.mark.parametrize("rest", [b"x", b"das ||| the ||| 1\n", bytes(600) + b"x", "other"])
def test_what_is_not_packed_so_after_a_stream(tmp_path, ending, rest):
    whole = PACK[ending](TEXT)
    rest = PACK[".bz2" if ending == ".gz" else ".gz"](TEXT) if rest == "other" else rest
    padding = len(rest) - len(rest.lstrip(b"\0")) if ending in (".gz", ".xz") else 0
    with pytest.raises(DataError, match=f"data end at byte {len(whole) + padding}, but other data follow"):
        read_back(tmp_path / "t", whole + rest)


def test_zeros_after_a_stream(tmp_path):
    for ending in (".gz", ".xz"):
        assert read_back(tmp_path / "t", PACK[ending](TEXT) + bytes(512)) == TEXT


@pytest.mark.parametrize("ending", [".zst zstandard", ".zst backports.zstd"], indirect=True)
def test_zstd_frames_to_skip(tmp_path, ending):
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    assert read_back(tmp_path / "t", skipped + PACK[ending](TEXT) + skipped) == TEXT


def test_text_that_begins_as_if_packed(tmp_path):
    for text in (b"BZh9 ||| a\n", b"B", b"(", b"PK\n", b"\xfd\n"):
        assert packing_of(text, "t") is None
        assert read_back(tmp_path / "t", text) == text


def test_no_package_for_zstd(tmp_path, monkeypatch):
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    packing._zstd.cache_clear()
    with pytest.raises(ModuleNotFoundError) as error:
        read_back(tmp_path / "t", PACK[".zst"](TEXT))
    assert error.value.name == "zstandard"
    with pytest.raises(ModuleNotFoundError):
        Output(str(tmp_path / "o.zst"))
    assert os.listdir(tmp_path) == ["t"]


def test_byte_order_mark(tmp_path, monkeypatch, ending):
    messages = []
    monkeypatch.setattr(paths, "listeners", [messages.append])
    path = tmp_path / "t"
    for data in (b"\xef\xbb\xbf" + TEXT, PACK[ending](b"\xef\xbb\xbf" + TEXT)):
        assert read_back(path, data) == TEXT
        with Input(str(path)) as source:
            assert source.peek(7) == TEXT[:7]
            assert source.peek(5) == TEXT[:5]
            assert source.read(9) + source.read(200) == TEXT[:209]
    assert messages == [f"{path}: a byte order mark at its start was left out"] * 4
    messages.clear()
    assert read_back(path, TEXT + b"\xef\xbb\xbf") == TEXT + b"\xef\xbb\xbf"
    assert messages == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16(tmp_path, encoding):
    with pytest.raises(DataError, match="is UTF-16 text; expected UTF-8"):
        read_back(tmp_path / "t", "das ||| the ||| 1\n".encode(encoding))
    if encoding != "utf-32":
        with pytest.raises(DataError, match="is UTF-16"):
            read_back(tmp_path / "t", gzip.compress("日本".encode("utf-16")))


@pytest.mark.parametrize(
    "text", [b"a\0b\0", b"\0\0\0\0\0\0\0\0", b"\1\0\0\0\2\0\0\0", "ÿþ a\n".encode(), b"a \0 b \0 c\n"]
)
def test_what_is_not_utf_16(tmp_path, text):
    assert read_back(tmp_path / "t", text) == text
