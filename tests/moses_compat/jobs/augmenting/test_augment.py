"""The whole way of new entries: table and texts in, table and ini out."""

from collections import Counter
from pathlib import Path

import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs.annotate_tables import IniEdit, ini_beside
from moses_compat.jobs.augmenting.augment import AugmentRequest, augment
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.inspect import inspect_table
from phrasetool.augment.sources_of_evidence import learn_augmenter
from phrasetool.errors import DataError
from tests.commands import read, write
from tests.phrasetool.augment.toy_words import toy_entries

ENTRIES = toy_entries()
TEXT = "das grünst haus .\ntischwald , haus tischwald\n"
REFERENCE = "the green house .\nthe table forest , a house\n"


@pytest.fixture
def table(tmp_path):
    lines = [
        f"{word} ||| {entry.target} ||| {' '.join(f'{score:g}' for score in entry.scores)} ||| 0-0 ||| 9 "
        f"{ENTRIES.count(word)} 1 ||| |||\n"
        for word in ENTRIES
        for entry in ENTRIES[word]
    ]
    return str(write(tmp_path / "t.gz", "".join(sorted(lines, key=str.encode)).encode()))


def texts(tmp_path):
    return str(write(tmp_path / "s", TEXT.encode())), str(write(tmp_path / "r", REFERENCE.encode()))


def test_unknown_words_get_entries_and_a_report(table, tmp_path):
    text, reference = texts(tmp_path)
    output = str(tmp_path / "o.gz")
    report = augment(AugmentRequest(table, output, [text], [reference]))
    expected = {word: learn_augmenter(ENTRIES).entries(word) for word in ("das", "grünst", "tischwald")}
    assert (report.words, report.tokens) == (3, 4)
    assert report.entries == sum(map(len, expected.values()))
    found = Counter()
    right = [0, 0]
    for word, words in (
        ("das", "the green house ."),
        ("grünst", "the green house ."),
        *[("tischwald", REFERENCE.split("\n")[1])] * 2,
    ):
        good = [set(entry.target.split()) <= set(words.split()) for entry in expected[word]]
        right = [right[0] + any(good), right[1] + good[0]]
        found.update(
            {number for entry, there in zip(expected[word], good, strict=True) if there for number in entry.sources}
        )
    assert report.right == tuple(right)
    assert right[1] >= 3
    for number, source in enumerate(report.sources.values()):
        assert source.right == found[number]
        assert source.words <= source.tokens <= 4
    lines = read(Path(output)).decode().splitlines(keepends=True)
    assert lines == sorted(lines, key=str.encode)
    assert len(lines) == report.lines + report.entries
    with Input(output) as source:
        assert inspect_table(source).scores == 8
    again = str(tmp_path / "again.gz")
    augment(AugmentRequest(table, again, [text], scan=TableScan(threads=2, block_bytes=500)))
    assert read(Path(again)) == read(Path(output))


def test_the_ini_names_the_new_columns(table, tmp_path):
    text, _ = texts(tmp_path)
    ini = write(
        tmp_path / "moses.ini",
        f"[feature]\nPhraseDictionaryMemory name=T num-features=4 path={table} input-factor=0 output-factor=0\n"
        "[weight]\nT= 0.1 0.2 0.3 0.4\n".encode(),
    )
    output, written = str(tmp_path / "o.gz"), str(tmp_path / "o.ini")
    edit = IniEdit.of(ini_beside(table, str(ini)), table, output, written)
    augment(AugmentRequest(table, output, [text], evidence=("copy", "compound"), edit=edit))
    assert "num-features=6" in read(Path(written)).decode()
    assert "T= 0.1 0.2 0.3 0.4 0 0" in read(Path(written)).decode()


def test_wrong_inputs(table, tmp_path):
    text, reference = texts(tmp_path)
    output = str(tmp_path / "o.gz")
    with pytest.raises(ValueError, match="1 texts, but 2 references"):
        augment(AugmentRequest(table, output, [text], [reference, reference]))
    short = str(write(tmp_path / "short", b"the\n"))
    with pytest.raises(DataError, match=r"short: 1 lines, but .* has 2"):
        augment(AugmentRequest(table, output, [text], [short]))
    assert not (tmp_path / "o.gz").exists()
    known = str(write(tmp_path / "known", b"haus .\n"))
    report = augment(AugmentRequest(table, output, [known]))
    assert (report.words, report.entries) == (0, 0)
    assert len(read(Path(output)).splitlines()) == report.lines
