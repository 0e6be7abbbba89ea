import gzip
from pathlib import Path

import numpy as np
import pytest

from moses_compat.corpora.bitexts import read_bitext
from moses_compat.engine.extracted import (
    format_lexical_tables,
    format_phrase_table,
    format_reordering_table,
    write_extraction,
)
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.phrase_table import ExtractedEntries, PhraseTable
from phrasetool.smt.extraction.smoothing import JointCounts
from tests.commands import read
from tests.listed_alignments import alignments_of
from tests.phrasetool.smt.extraction.small_bitexts import extract_phrase_pairs

GOLDEN = Path(__file__).parents[2] / "golden/extraction"


@pytest.fixture(scope="module")
def bitext():
    return read_bitext(*(str(GOLDEN / f"bitext.{name}") for name in ("source", "target", "aligned")))


@pytest.fixture(scope="module")
def words(bitext):
    return bitext.source_symbols, bitext.target_symbols


@pytest.mark.parametrize(
    ("name", "max_length", "smoothing"),
    [
        ("table.1", 1, "none"),
        ("table.3", 3, "none"),
        ("table.7", 7, "none"),
        ("table.9", 9, "none"),
        ("table.good-turing", 7, "good-turing"),
        ("table.kneser-ney", 7, "kneser-ney"),
    ],
)
def test_phrase_table_of_moses(bitext, words, name, max_length, smoothing):
    entries = extract_phrase_pairs(bitext, max_length, smoothing)
    text = format_phrase_table(entries, words).tobytes()
    assert text.splitlines() == read(GOLDEN / f"{name}.gz").splitlines()
    assert text.endswith(b"\n")


def test_reordering_table_of_moses(bitext, words):
    text = format_reordering_table(extract_phrase_pairs(bitext), words).tobytes()
    assert text.splitlines() == read(GOLDEN / "reordering.gz").splitlines()


def test_lexical_tables_of_moses(bitext):
    with PhraseTable(bitext) as table:
        texts = format_lexical_tables(table.lexical_table, bitext.source_symbols, bitext.target_symbols)
    assert texts == (read(GOLDEN / "lex.f2e.gz"), read(GOLDEN / "lex.e2f.gz"))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_write_tables(bitext, words, tmp_path, monkeypatch, threads, memory):
    monkeypatch.setattr("phrasetool.smt.extraction.phrase_table._BLOCK_PAIRS", 100)
    counts = []
    paths = str(tmp_path / "t.gz"), str(tmp_path / "r")
    with PhraseTable(bitext, memory=memory, folder=str(tmp_path)) as table:
        write_extraction(table, *words, *paths, threads=threads, progress=counts.append)
    assert read(tmp_path / "t.gz") == read(GOLDEN / "table.7.gz")
    assert read(tmp_path / "r") == read(GOLDEN / "reordering.gz")
    assert counts == sorted(counts)
    assert counts[-1] == len(table)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "t.gz"]


def test_other_smoothing(bitext, words, tmp_path):
    with PhraseTable(bitext) as table:
        write_extraction(table, *words, str(tmp_path / "t"), str(tmp_path / "r"), reordering_smoothing=2.0)
    entries = extract_phrase_pairs(bitext)
    assert read(tmp_path / "r") == format_reordering_table(entries, words, 2.0).tobytes()
    assert read(tmp_path / "r") != read(GOLDEN / "reordering.gz")


def test_large_counts_are_written_as_moses_does():
    symbols = Symbols([b"a"])
    phrases = symbols.read_lines(b"a")
    numbers = [np.array([value]) for value in (1_000_000, 1_559_900, 12_345_678, 1, 1)]
    entries = ExtractedEntries(
        phrases, phrases, JointCounts(*numbers), np.array([[1e-20, 0, 1, 0.5]], np.float32),
        alignments_of([[]]), np.zeros((1, 6), np.int64),
    )  # fmt: skip
    line = format_phrase_table(entries, (symbols, symbols)).tobytes()
    assert line == b"a ||| a ||| 1e-20 0 1 0.5 ||| ||| 1.23457e+07 1.5599e+06 1e+06 ||| |||\n"


@pytest.mark.slow
@pytest.mark.requires_reference
def test_reference_run(reference, tmp_path):
    """Both tables are those of the reference run, byte for byte."""
    corpus = reference.parent
    bitext = read_bitext(
        *(str(corpus / f"train.{language}.gz") for language in ("de", "en")),
        str(reference / "aligned.grow-diag-final-and.gz"),
    )
    paths = str(tmp_path / "table"), str(tmp_path / "reordering")
    with PhraseTable(bitext) as table:
        write_extraction(table, bitext.source_symbols, bitext.target_symbols, *paths)
    for output, name in (("table", "phrase-table"), ("reordering", "reordering-table.wbe-msd-bidirectional-fe")):
        assert (tmp_path / output).read_bytes() == gzip.decompress((reference / f"{name}.gz").read_bytes())


def test_files_of_an_extraction(bitext, words, tmp_path):
    paths = [str(tmp_path / name) for name in ("table", "reordering.gz", "lex.f2e", "lex.e2f")]
    recorded = []
    with PhraseTable(bitext) as table:
        write_extraction(table, *words, paths[0], paths[1], (paths[2], paths[3]), progress=recorded.append)
        lexical = format_lexical_tables(table.lexical_table, *words)
        assert recorded[-1] == len(table)
        write_extraction(table, *words, str(tmp_path / "alone"))
    assert read(tmp_path / "table").splitlines() == read(GOLDEN / "table.7.gz").splitlines()
    assert read(tmp_path / "alone") == read(tmp_path / "table")
    assert read(tmp_path / "reordering.gz").splitlines() == read(GOLDEN / "reordering.gz").splitlines()
    assert (read(tmp_path / "lex.f2e"), read(tmp_path / "lex.e2f")) == lexical
    assert len(list(tmp_path.iterdir())) == 5
