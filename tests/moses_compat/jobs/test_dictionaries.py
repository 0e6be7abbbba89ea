"""Lexicons in all formats, and dictionaries for Bicleaner."""

import csv
import gzip
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Output
from moses_compat.jobs.dictionaries import (
    DictionaryRequest,
    LexiconPrecision,
    LexiconRequest,
    TermPair,
    export_dictionaries,
    export_lexicon,
    write_terms,
)
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.tables.blocks import TableScan
from tests.commands import write

TABLE = """\
, ||| , ||| 0.9 1 0.9 1 ||| 0-0 ||| 9 9 8
das ||| the ||| 0.5 1 0.75 1 ||| 0-0 ||| 16 12 9
das haus ||| the house ||| 0.9 1 0.8 1 ||| 0-0 1-1 ||| 4 5 4
haus &amp; hof ||| house and home ||| 1 1 1 1 ||| 0-0 2-2 ||| 4 4 4
haus ||| a house ||| 1 1 0.25 1 ||| 0-0 ||| 2 8 2
haus ||| house ||| 0.75 1 0.625 1 ||| 0-0 ||| 6 8 5
hund ||| dog ||| 0.5 1 0.5 1 ||| 0-0 ||| 1 1 1
"""


def table_of(tmp_path, text=TABLE):
    return str(write(tmp_path / "table", text.encode()))


def test_a_lexicon(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("haus &amp; hof\nhaus\nkein haus\n")
    target.write_text("house and home\nhouses\na house\n")
    request = LexiconRequest(
        table_of(tmp_path), str(tmp_path / "out"), stop_words=2, evaluate=(str(source), str(target))
    )
    report = export_lexicon(request)
    rows = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    # sqrt(3.5/4 3.5/4), sqrt(4.5/8 4.5/6), sqrt(8.5/16 8.5/12); "das haus" begins with a stop word, and "a house"
    # only adds a word to another pair.
    assert rows[0] == ["source", "target", "score", "p(target|source)", "p(source|target)", "count"]
    assert rows[1:] == [
        ["haus & hof", "house and home", "0.875", "1", "1", "4"],
        ["haus", "house", "0.649519", "0.625", "0.75", "5"],
        ["das", "the", "0.613435", "0.75", "0.5", "9"],
    ]
    assert report.rightness == LexiconPrecision(2, 2, 4, 3)
    assert (report.entries, report.considered, report.terms, report.pairs) == (7, 6, 4, 3)
    for scan in (TableScan(threads=2, block_bytes=50), TableScan(block_bytes=200)):
        again = LexiconRequest(request.table, str(tmp_path / "again"), stop_words=2, scan=scan)
        export_lexicon(again)
        assert (tmp_path / "again").read_bytes() == (tmp_path / "out").read_bytes()


def test_a_table_without_counts_has_no_stop_words(tmp_path):
    pairs = ("das haus ||| the house", "das ||| the", "haus ||| house", "rote haus ||| red house", "rote ||| red")
    text = "".join(f"{pair} ||| 0.9 0.9 0.9 0.9 ||| 0-0{' 1-1' * pair.count(' haus')}\n" for pair in sorted(pairs))
    report = export_lexicon(LexiconRequest(table_of(tmp_path, text), str(tmp_path / "out")))
    assert report.pairs == 5


def test_similar_pairs_have_higher_scores(tmp_path):
    text = "a ||| x ||| 1 1 1 1 0.5 0.5 ||| 0-0 ||| 4 4 4\nb ||| y ||| 1 1 1 1 1 1 ||| 0-0 ||| 4 4 4\n"
    request = LexiconRequest(table_of(tmp_path, text), str(tmp_path / "out"), similarities=ColumnSimilarities(4, 5))
    export_lexicon(request)
    rows = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    assert [(row[0], row[2], row[6]) for row in rows[1:]] == [("b", "0.875", "1"), ("a", "0.4375", "0.306853")]


# Any characters but surrogates, tabs, NUL and line separators.
LETTERS = st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r\0\x0b\x0c\x1c\x1d\x1e\x85")
TERM = st.text(LETTERS, min_size=1)
PAIRS = st.lists(st.builds(TermPair, TERM, TERM, *[st.floats(0, 1)] * 3, st.integers(1, 9)), max_size=4)


@given(PAIRS)
def test_files_can_be_read_again(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("files")
    for form in ("tsv", "csv", "tbx"):
        with Output(str(folder / form)) as output:
            write_terms(output, pairs, form, ("de", "en"))
    expected = [[pair.source, pair.target] for pair in pairs]
    for form, delimiter in (("csv", ","), ("tsv", "\t")):
        with open(folder / form, newline="", encoding="utf-8") as file:
            assert [row[:2] for row in csv.reader(file, delimiter=delimiter)][1:] == expected
    name = "{urn:iso:std:iso:30042:ed-2}"
    root = ElementTree.parse(folder / "tbx").getroot()
    assert root.attrib["type"] == "TBX-Core"
    concepts = root.findall(f"{name}text/{name}body/{name}conceptEntry")
    assert [concept.attrib["id"] for concept in concepts] == [f"c{k}" for k in range(1, len(pairs) + 1)]
    allowed = [["".join(c for c in text if c >= " " and c not in "\ufffe\uffff") for text in pair] for pair in expected]
    assert [[term.text or "" for term in concept.iter(f"{name}term")] for concept in concepts] == allowed
    for section, language in zip(root.iter(f"{name}langSec"), ["de", "en"] * len(pairs), strict=True):
        assert section.attrib["{http://www.w3.org/XML/1998/namespace}lang"] == language


def test_an_unknown_format(tmp_path):
    with Output(str(tmp_path / "out")) as output, pytest.raises(ValueError, match="unknown format 'xls'"):
        write_terms(output, [], "xls", ("de", "en"))


def test_dictionaries(tmp_path):
    out, reverse = tmp_path / "s2t.gz", tmp_path / "t2s.gz"
    report = export_dictionaries(DictionaryRequest(table_of(tmp_path), str(out), str(reverse), 0.6))
    assert gzip.decompress(out.read_bytes()) == b", , 0.9\nthe das 0.75\nhouse haus 0.625\n"
    assert gzip.decompress(reverse.read_bytes()) == b", , 0.9\nhaus house 0.75\n"
    assert (report.entries, report.pairs, report.reverse_pairs) == (7, 3, 2)
