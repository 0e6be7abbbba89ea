import os

import pytest
from isal import isal_zlib

from moses_compat.tables import phrase_index as module
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.phrase_index import SOURCE, TARGET, phrase_index
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.text_splitting import split_words
from tests.commands import write
from tests.pairwise import in_turn
from tests.tables import TABLES
from tests.variants import for_each


def naive_lines(data, place, matches):
    """Return the number and fields of each line whose source or target matches, by reading the whole table."""
    rows = [(number, line.removesuffix(b"\r").split(b"|||")) for number, line in enumerate(data.split(b"\n"), 1)]
    rows = [(number, tuple(field.strip(b" \t") for field in fields)) for number, fields in rows if len(fields) > 1]
    return [(number, fields) for number, fields in rows if matches(fields[place])]


def lines(found):
    return [(line.number, line.fields) for line in found]


@for_each(("name", "forms"), in_turn(sorted(TABLES), [(1, ""), (2, ".gz"), (2, "")], 1))
def test_entries_are_those_of_a_scan(name, forms, tmp_path, monkeypatch):
    threads, ending = forms[0]
    # Small blocks and several parts, so that phrases occur in more than one.
    monkeypatch.setattr(module, "_BLOCK_BYTES", 200)
    monkeypatch.setattr(module, "_MEMORY", 64)
    data = TABLES[name]
    path = str(write(tmp_path / f"t{ending}", data))
    try:
        index = phrase_index(path, scan=TableScan(threads=threads, force=True))
    except DataError:
        pytest.skip("no command reads this table")
    assert index.lines == data.count(b"\n") + (not data.endswith(b"\n"))
    for column, side in enumerate((SOURCE, TARGET)):
        phrases = {fields[column] for _, fields in naive_lines(data, 0, bool)} - {b""}
        for phrase in [*sorted(phrases), b"no such phrase"]:
            words = split_words(phrase)
            expected = naive_lines(data, column, lambda field, words=words: split_words(field) == words)
            assert lines(index.entries(side, phrase)) == expected
        for text in (b"a", b"s i", b"h"):
            expected = naive_lines(data, column, lambda field, text=text: text in field)
            assert lines(index.containing(side, text, threads)) == expected


def test_the_index_of_a_changed_table_is_built_again(tmp_path):
    path = tmp_path / "t"
    write(path, b"a ||| b ||| 0.5\n")
    assert len(list(phrase_index(str(path)).entries(SOURCE, b"a"))) == 1
    built = os.stat(f"{path}.index").st_mtime_ns
    # The modification time differs, but the hash is the same.
    write(path, b"a ||| b ||| 0.5\n")
    os.utime(path, ns=(1, 1))
    phrase_index(str(path))
    assert os.stat(f"{path}.index").st_mtime_ns == built
    # Another table of the same size.
    write(path, b"c ||| b ||| 0.5\n")
    index = phrase_index(str(path))
    assert [len(list(index.entries(SOURCE, phrase))) for phrase in (b"a", b"c")] == [0, 1]


def test_an_index_elsewhere(tmp_path):
    table = write(tmp_path / "t", b"a ||| b ||| 0.5\n")
    phrase_index(str(table), str(tmp_path / "other"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "t"]
    with pytest.raises(PhraseToolError):
        phrase_index(str(table), str(tmp_path / "none" / "index"))


@pytest.mark.parametrize("damage", [b"", b"x", b"{}" + (2).to_bytes(8, "little"), b"x" * 100])
def test_invalid_indexes_are_refused(damage, tmp_path):
    table, path = write(tmp_path / "t", b"a ||| b ||| 0.5\n"), write(tmp_path / "t.index", damage)
    with pytest.raises(DataError, match=r"t.index: is not a phrase index of this version"):
        phrase_index(str(table))
    assert path.read_bytes() == damage


def test_a_block_holds_whole_lines(tmp_path):
    table = write(tmp_path / "t.gz", b"a ||| b ||| 0.5\nc ||| d ||| 0.25\n")
    phrase_index(str(table))
    data = (tmp_path / "t.gz.index").read_bytes()
    assert isal_zlib.decompressobj().decompress(data) == b"a ||| b ||| 0.5\nc ||| d ||| 0.25\n"
