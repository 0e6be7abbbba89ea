"""Augmentation from end to end: a table and texts as input, a table and an ini as output."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs.annotate import IniEdit, ini_of_table
from moses_compat.jobs.augment import AugmentRequest, augment
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.inspect import inspect_table
from phrasetool.augment.augmenter import learn_augmenter
from phrasetool.errors import DataError
from tests.commands import read, write
from tests.phrasetool.augment.toy_words import toy_entries

ENTRIES = toy_entries()
TEXT = "das grünst haus .\ntischwald , haus tischwald haus\n"
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
    right_by_source = Counter()
    right = [0, 0]
    for word, words in (
        ("das", "the green house ."),
        ("grünst", "the green house ."),
        *[("tischwald", REFERENCE.split("\n")[1])] * 2,
    ):
        good = [set(entry.target.split()) <= set(words.split()) for entry in expected[word]]
        right = [right[0] + any(good), right[1] + good[0]]
        right_by_source.update(
            {
                number
                for entry, is_right in zip(expected[word], good, strict=True)
                if is_right
                for number in entry.sources
            }
        )
    assert report.right == tuple(right)
    assert right[1] >= 3
    for number, source in enumerate(report.sources.values()):
        assert source.right == right_by_source[number]
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
    output, output_ini = str(tmp_path / "o.gz"), str(tmp_path / "o.ini")
    edit = IniEdit.of(ini_of_table(table, str(ini)), table, output, output_ini)
    augment(AugmentRequest(table, output, [text], evidence=("copy", "compound"), edit=edit))
    assert "num-features=6" in read(Path(output_ini)).decode()
    assert "T= 0.1 0.2 0.3 0.4 0 0" in read(Path(output_ini)).decode()


def test_more_texts_use_the_existing_columns(table, tmp_path):
    text, _ = texts(tmp_path)
    first, both, at_once = (str(tmp_path / name) for name in ("1.gz", "2.gz", "3.gz"))
    augment(AugmentRequest(table, first, [text]))
    more = str(write(tmp_path / "more", b"haus haustisch haus\n"))
    report = augment(AugmentRequest(first, both, [more]))
    assert (report.words, report.columns) == (1, 0)
    assert augment(AugmentRequest(table, at_once, [text, more])).columns == 4
    assert read(Path(both)) == read(Path(at_once))
    with pytest.raises(DataError, match="with another number of sources of evidence than 2"):
        augment(AugmentRequest(first, both, [more], evidence=("compound", "copy")))


def test_the_reordering_table_gets_the_same_entries(table, tmp_path):
    text, _ = texts(tmp_path)
    pairs = [b" ||| ".join(line.split(b" ||| ")[:2]) for line in read(Path(table)).splitlines()]
    before = b"".join(pair + f" ||| 0.{k % 8 + 1} 0.1 0.{8 - k % 8}\n".encode() for k, pair in enumerate(pairs))
    reordering, reordering_out, output = (str(tmp_path / name) for name in ("r.gz", "ro.gz", "o.gz"))
    write(Path(reordering), before)
    augment(AugmentRequest(table, output, [text], reordering_table=reordering, reordering_out=reordering_out))
    lines = read(Path(reordering_out)).splitlines(keepends=True)
    assert [b" ||| ".join(line.split(b" ||| ")[:2]) for line in lines] == [
        b" ||| ".join(line.split(b" ||| ")[:2]) for line in read(Path(output)).splitlines()
    ]
    assert [line for line in lines if line in before.splitlines(keepends=True)] == before.splitlines(keepends=True)
    shuffled = str(write(tmp_path / "shuffled.gz", b"".join(reversed(before.splitlines(keepends=True)))))
    request = AugmentRequest(table, output, [text], reordering_table=shuffled, reordering_out=reordering_out)
    with pytest.raises(DataError, match="not sorted bytewise"):
        augment(request)
    augment(replace(request, sort=True))
    assert read(Path(reordering_out)).splitlines(keepends=True) == lines


def test_word_vectors_of_monolingual_text(table, tmp_path):
    text, _ = texts(tmp_path)
    output, again = str(tmp_path / "o.gz"), str(tmp_path / "again.gz")
    mono = str(write(tmp_path / "mono", (TEXT * 5).encode()))
    report = augment(AugmentRequest(table, output, [text], monolingual=[mono]))
    assert report.entries
    augment(AugmentRequest(table, again, [text], monolingual=[mono]))
    assert read(Path(again)) == read(Path(output))


def test_entries_are_listed(table, tmp_path):
    text, _ = texts(tmp_path)
    output, listed = str(tmp_path / "o.gz"), tmp_path / "list"
    report = augment(AugmentRequest(table, output, [text], entries_out=str(listed)))
    rows = [line.split("\t") for line in read(listed).decode().splitlines()]
    assert len(rows) == report.entries
    table_rows = {tuple(line.split(" ||| ")[:2]): line.split(" ||| ")[2].split() for line in
                  read(Path(output)).decode().splitlines()}  # fmt: skip
    names = ("compound", "inflection", "meaning", "copy")
    for word, target, probability, evidence, _ in rows:
        scores = table_rows[word, target]
        assert scores[2] == probability
        assert evidence == ",".join(name for name, flag in zip(names, scores[4:], strict=True) if flag != "1")


def test_wrong_inputs(table, tmp_path):
    text, reference = texts(tmp_path)
    output = str(tmp_path / "o.gz")
    with pytest.raises(ValueError, match="1 texts, but 2 references"):
        augment(AugmentRequest(table, output, [text], [reference, reference]))
    short = str(write(tmp_path / "short", b"the\n"))
    foreign = str(write(tmp_path / "foreign", b"the green house is a house .\n"))
    with pytest.raises(DataError, match=r"foreign: only 0% of its 7 tokens have an entry") as raised:
        augment(AugmentRequest(table, output, [foreign]))
    assert raised.value.remedy == "go on"
    with pytest.raises(ValueError, match="must be given together"):
        AugmentRequest(table, output, [text], reordering_table=table)
    with pytest.raises(DataError, match=r"short: 1 lines, but .* has 2"):
        augment(AugmentRequest(table, output, [text], [short]))
    assert not (tmp_path / "o.gz").exists()
    known = str(write(tmp_path / "known", b"haus .\n"))
    report = augment(AugmentRequest(table, output, [known]))
    assert (report.words, report.entries) == (0, 0)
    assert len(read(Path(output)).splitlines()) == report.lines
