"""Vocabulary maps and shortlists, read back as in their target systems."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from moses_compat.jobs.candidate_lists import CandidateRequest, MapWriter, ShortlistWriter, export_candidates
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests.commands import write
from tests.moses_compat.jobs.export_reading import (
    TABLE,
    candidates,
    naive_map,
    read_binary_shortlist,
    read_map,
    read_shortlist,
)


def request_of(tmp_path, text=TABLE, **options):
    return CandidateRequest(str(write(tmp_path / "table", text.encode())), str(tmp_path / "out"), **options)


def export(request, writer=None):
    report = export_candidates(request, writer or MapWriter())
    return report, Path(request.output).read_bytes()


def flat(rules):
    return {tuple(key.split(" ")): values for part in rules.values() for key, values in part.items() if key}


def random_table(seed, sources=80):
    """Return a sorted table with few different words."""
    draw = random.Random(seed)
    words = [f"w{k}" for k in range(12)]
    keys = {" ".join(draw.choices(words, k=draw.randint(1, 4))) for _ in range(sources)}
    lines = []
    for key in keys:
        counts = [draw.randint(1, 6) for _ in range(draw.randint(1, 5))]
        for count in counts:
            target = " ".join(draw.choices(words, k=draw.randint(1, 3)))
            lines.append(f"{key} ||| {target} ||| 1 1 0.5 1 ||| 0-0 ||| 9 {sum(counts)} {count}\n")
    return "".join(sorted(lines, key=str.encode))


def test_a_map_by_hand(tmp_path):
    report, data = export(request_of(tmp_path, always=2))
    # (6 - 0.5) / 8 and (1 - 0.5) / 8; "the" and "house" are candidates of the single words, "of" has count 1 of 4.
    assert data == (b"\tthe house\ndas\tthat\ndas haus\thome of\nhaus 's\t's\nhaus\tbuilding\nklein\tsmall\n")
    assert (report.entries, report.sources, report.phrases, report.candidates, report.always) == (9, 5, 5, 6, 2)


@pytest.mark.parametrize("seed", range(4))
def test_a_map_equals_the_naive_one(tmp_path, seed):
    options = {"longest": 1 + seed, "most": 2 + seed, "always": seed, "least": 0.1 * seed}
    text = random_table(seed)
    expected, always = naive_map(text, **options)
    _, data = export(request_of(tmp_path, text, **options))
    assert data.startswith("\t{}\n".format(" ".join(always)).encode())
    assert flat(read_map(data)) == expected
    for scan in (TableScan(threads=2, block_bytes=60), TableScan(threads=3, block_bytes=500)):
        assert export(request_of(tmp_path, text, **options, scan=scan))[1] == data


def test_coverage_by_the_candidates_of_the_decoder(tmp_path):
    text, source, target = random_table(9, 300), tmp_path / "source", tmp_path / "target"
    draw = random.Random(2)
    words = [f"w{k}" for k in range(14)]
    sides = [[" ".join(draw.choices(words, k=draw.randint(0, 6))) for _ in range(20)] for _ in range(2)]
    for path, side in zip((source, target), sides, strict=True):
        path.write_text("".join(line + "\n" for line in side))
    report, data = export(request_of(tmp_path, text, always=1, most=2, evaluate=(str(source), str(target))))
    result = [candidates(read_map(data), line.split()) for line in sides[0]]
    hits = [[word in known for word in line.split()] for known, line in zip(result, sides[1], strict=True)]
    coverage = report.coverage
    assert coverage.covered == sum(map(sum, hits))
    assert coverage.tokens == sum(map(len, hits))
    assert coverage.whole == sum(map(all, hits))
    assert coverage.mean == sum(map(len, result)) / len(result)
    assert 0.7 < coverage.known < 1


def test_a_shortlist_by_hand(tmp_path):
    report, data = export(request_of(tmp_path, shortlist=True, longest=1), ShortlistWriter())
    assert data == (b"the das 0.6875\nthat das 0.0625\nhouse haus 0.6875\nbuilding haus 0.0625\nsmall klein 0.875\n")
    assert read_shortlist(data)["haus"] == {"house": 0.6875, "building": 0.0625}
    assert (report.phrases, report.candidates) == (3, 5)


@pytest.mark.parametrize("character", ["\v", "\f"])
def test_words_that_marian_would_split_are_left_out_of_a_text(tmp_path, character):
    """Marian reads words with `>>`; CTranslate2 splits only at spaces and tabs."""
    table = TABLE.replace("klein ||| small", f"klein ||| sm{character}all")
    report, data = export(request_of(tmp_path, table, shortlist=True, longest=1), ShortlistWriter())
    assert set(read_shortlist(data)) == {"das", "haus"}
    assert report.unreadable == 1
    report, data = export(request_of(tmp_path, table, always=0))
    assert f"klein\tsm{character}all".encode() in data
    assert report.unreadable == 0


@pytest.mark.parametrize("last", ["klein", "unseen"])
def test_a_binary_shortlist_passes_the_checks_of_marian(tmp_path, last):
    source, target = ["</s>", "haus", "das", "klein"], ["</s>", "house", "the", "small", "building", "that"]
    (tmp_path / "s.json").write_text(json.dumps(source if last == "klein" else [*source, last]))
    (tmp_path / "t.json").write_text(json.dumps(target))
    files = {"source_vocabulary": str(tmp_path / "s.json"), "target_vocabulary": str(tmp_path / "t.json")}
    request = request_of(tmp_path, shortlist=True, binary=True, longest=1, most=2, always=1, **files)
    _, data = export(request, ShortlistWriter())
    # Marian rejects a file whose last source unit has no candidates.
    expected = [[], [1, 4], [2, 5], [3]] + ([] if last == "klein" else [[0]])
    assert read_binary_shortlist(data) == (1, 2, expected)


def test_subword_units(tmp_path):
    merges = "#version: 0.2\nh a\nha u\nhau s</w>\nd a\nda s</w>\nt h\nth e</w>\nh o\nho u\nhou s\nhous e</w>\n"
    (tmp_path / "merges").write_text(merges)
    files = {"source_vocabulary": str(tmp_path / "merges"), "target_vocabulary": str(tmp_path / "merges")}
    _, data = export(request_of(tmp_path, always=1, **files))
    rules = read_map(data)
    assert set(rules[0]["haus"]) == {"house", *["b@@", "u@@", "i@@", "l@@", "d@@", "n@@", "g"]}
    assert rules[0][""] == ["the"]
    assert set(rules[4]["k@@ l@@ e@@ i@@ n"]) == {"s@@", "m@@", "a@@", "l@@", "l"}
    _, data = export(request_of(tmp_path, shortlist=True, longest=1, **files), ShortlistWriter())
    assert read_shortlist(data)["i@@"] == read_shortlist(data)["k@@"]


def test_similar_entries_count_for_more(tmp_path):
    text = "a ||| x ||| 1 1 0.5 1 1 1 ||| 0-0 ||| 2 4 2\na ||| y ||| 1 1 0.5 1 0.5 0.5 ||| 0-0 ||| 2 4 2\n"
    request = request_of(tmp_path, text, shortlist=True, longest=1, similarities=ColumnSimilarities(4, 5))
    result = read_shortlist(export(request, ShortlistWriter())[1])["a"]
    assert result == pytest.approx({"x": 0.375, "y": 0.375 * 0.5})


def test_probabilities_replace_missing_counts(tmp_path):
    text = "".join(line.rpartition(" ||| ")[0] + "\n" for line in TABLE.splitlines())
    request = request_of(tmp_path, text, shortlist=True, longest=1)
    assert read_shortlist(export(request, ShortlistWriter())[1])["das"] == {"the": 0.75, "that": 0.125}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a ||| x ||| 0.5\n", "the entries have 1 scores, expected the 4 of Moses' training"),
        ("a ||| x ||| 1 1 1 1\nb ||| x\n", r":2: expected at least 3 fields"),
        ("".join(f"{k} ||| x ||| 1 1 1 1\n" for k in [*range(150, 300), 150]), "occurs again after other sources"),
    ],
)
def test_wrong_tables(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        export(request_of(tmp_path, text))
    assert not (tmp_path / "out").exists()


def test_mismatched_texts_and_vocabularies(tmp_path):
    recorded = []
    scan = TableScan(warn=recorded.append)

    def evaluated(text, **options):
        (tmp_path / "source").write_text(text)
        (tmp_path / "target").write_text(text)
        files = (str(tmp_path / "source"), str(tmp_path / "target"))
        return export(request_of(tmp_path, evaluate=files, scan=scan, **options))

    with pytest.raises(DataError, match=r"source: only 0% of its 2 tokens are in the table; expected text of"):
        evaluated("quite foreign\n")
    with pytest.raises(DataError, match="in lower case, 100% would be"):
        evaluated("Das Haus\n")
    with pytest.raises(DataError, match="they are subword units"):
        evaluated("da@@ ha@@ x\n")
    evaluated("das fremde\n")
    message = "only 50% of its 2 tokens are in the table; expected text of the table's source language"
    assert recorded == [f"{tmp_path}/source: {message}, with its tokens and its capitals"]
    (tmp_path / "words").write_text("nothing\nof\nit\n")
    with pytest.raises(DataError, match=r"words: covers 3% of the target words of"):
        export(request_of(tmp_path, target_vocabulary=str(tmp_path / "words")))
    forced = request_of(tmp_path, target_vocabulary=str(tmp_path / "words"), scan=replace(scan, force=True))
    assert export(forced)[1] == b"\t\ndas haus\tof\n"


def test_a_binary_shortlist_needs_vocabularies(tmp_path):
    with pytest.raises(ValueError, match="needs both vocabularies"):
        request_of(tmp_path, shortlist=True, binary=True)
