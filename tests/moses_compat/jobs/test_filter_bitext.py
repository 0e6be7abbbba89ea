"""Filtering of bitexts: blocks of sentence pairs, decisions, written lines and samples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs import filter_bitext
from moses_compat.jobs import filter_bitext as room
from moses_compat.jobs.filter_bitext import (
    PairCounts,
    PairDecisions,
    SentencePairs,
    pair_blocks,
    take_sample,
    usual_lengths,
)
from phrasetool.errors import DataError
from phrasetool.pair_classifier.bitext_scores import ClassifierScorer, PairScores
from phrasetool.smt.corpus.symbols import sentence_lengths
from tests.commands import write
from tests.parallel_models import random_parallel_model

SOURCES = [b"a b\n", b"\n", b"x\n", b"same\n", b"a&amp;b  c\n", b"a b c d\n"]
TARGETS = [b"A B\r\n", b"B\n", b"Y\n", b"same\n", b"a&b c\n", b"A\tB\n"]
SCORES = np.array([0.5, np.nan, np.nan, 0.9, 0.2, 0.5], np.float32)
LONG_PAIRS = np.array([False, False, False, False, False, True])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(room, "PAIRS", 3)


def blocks_of(folder, source, target):
    paths = write(folder / "s", source), write(folder / "t", target)
    with Input(str(paths[0])) as first, Input(str(paths[1])) as second:
        return list(pair_blocks(first, second))


@pytest.mark.parametrize("end", [b"\n", b""])
def test_lines_are_unchanged(end, tmp_path):
    source, target = b"a\r\n\n b\tc\nd\x0be\nf" + end, b"A\nB\n\nC\nD" + end
    result = blocks_of(tmp_path, source, target)
    assert [(block.first, len(block)) for block in result] == [(0, 3), (3, 2)]
    assert b"".join(line for block in result for line in block.sources) == source
    assert b"".join(line for block in result for line in block.targets) == target
    assert result[0].written == ([b"a", b"", b"b c"], [b"A", b"B", b""])
    assert result[1].written == ([b"d\x0be", b"f"], [b"C", b"D"])


def test_fingerprints_identify_pairs(tmp_path):
    first, second = blocks_of(tmp_path, b"a\nb\na\na\n", b"x\nx\ny\nx\n")
    assert len(set(first.hashes.tolist())) == 3
    assert second.hashes[0] == first.hashes[0]


@pytest.mark.parametrize(
    ("lines", "said"), [((2, 9), "s: the file ends after 2"), ((3, 1), "t: the file ends after 1")]
)
def test_files_of_different_lengths_are_refused(lines, said, tmp_path):
    short, long = sorted(lines)
    with pytest.raises(DataError) as error:
        blocks_of(tmp_path, b"a\n" * lines[0], b"b\n" * lines[1])
    assert f"ends after {short} lines" in str(error.value)
    assert f"has {long}" in str(error.value)
    assert said.partition(":")[0] in error.value.path


def test_empty_files_have_no_blocks(tmp_path):
    assert blocks_of(tmp_path, b"", b"") == []


def decisions_of(drop=False, blind=None):
    block = SentencePairs(10, SOURCES, TARGETS)
    return PairDecisions.of(block, PairScores(SCORES, blind), 0.5, drop, LONG_PAIRS)


@pytest.mark.parametrize("drop", [False, True])
def test_decisions_and_their_reasons(drop):
    result = decisions_of(drop)
    assert result.keep.tolist() == [True, False, False, not drop, False, True]
    assert result.notes == [(), (b"empty",), (b"unknown",), (b"copy",), (b"probability", b"copy"), (b"long",)]
    counts = result.counts
    assert (counts.pairs, counts.kept, counts.copies, counts.over_long) == (6, 3 - drop, 2, 1)
    # A copy counts as rejected for being one only if copies are dropped.
    reasons = {"empty": 1, "unknown": 1, "probability": 1, "tie": 0, "copy": 2 * drop}
    assert counts.reasons == Counter(reasons)
    total = PairCounts()
    total.add(counts)
    total.add(counts)
    assert total.as_dict()["reasons"] == {name: 2 * count for name, count in reasons.items()}
    assert total.as_dict()["rejected"] == 2 * (3 + drop)


def test_pairs_beyond_the_share_are_counted():
    block = SentencePairs(0, [b"a\n", b"b\n"], [b"A\n", b"B\n"])
    result = PairDecisions.of(
        block, PairScores(np.ones(2, np.float32)), 1.0, False, np.zeros(2, np.bool_), np.array([1])
    )
    assert result.notes == [(), (b"tie",)]
    assert result.counts.as_dict()["reasons"]["tie"] == 1


def test_pairs_without_a_score_have_none_if_scores_are_not_probabilities():
    block = SentencePairs(10, SOURCES, TARGETS)
    result = PairDecisions.of(block, PairScores(SCORES), -9, False, LONG_PAIRS, unscored=b"-")
    scores = [line.split(b"\t")[0] for line in result.score_lines().splitlines()]
    assert scores == [b"0.500000", b"-", b"-", b"0.900000", b"0.200000", b"0.500000"]
    assert [line.split(b"\t")[1] for line in result.rejected_lines().splitlines()] == [b"-", b"-"]


def test_written_lines():
    result = decisions_of(blind=np.array([0.25, np.nan, np.nan, 0, 1, 0.5], np.float32))
    assert result.kept_lines() == (b"a b\nsame\na b c d\n", b"A B\r\nsame\nA\tB\n")
    assert result.score_lines().splitlines() == [
        b"0.500000\tkept\t-\ta b\tA B\t0.250000",
        b"0.000000\trejected\tempty\t\tB\t0.000000",
        b"0.000000\trejected\tunknown\tx\tY\t0.000000",
        b"0.900000\tkept\tcopy\tsame\tsame\t0.000000",
        b"0.200000\trejected\tprobability,copy\ta&amp;b  c\ta&b c\t1.000000",
        b"0.500000\tkept\tlong\ta b c d\tA B\t0.500000",
    ]
    assert result.rejected_lines().splitlines() == [
        b"empty\t0.000000\t12\t\tB",
        b"unknown\t0.000000\t13\tx\tY",
        b"probability,copy\t0.200000\t15\ta&amp;b  c\ta&b c",
    ]


@pytest.mark.parametrize("space", [b"\xc2\xa0", b"\x0b", b"\r", b"\x1c", b"\xe3\x80\x80"])
def test_words_are_counted_like_those_that_the_classifier_reads(space):
    sentences = [b"a" + space + b"b c\n", b"a b c\n"]
    block = SentencePairs(0, sentences, [b"A\n", b"B\n"])
    assert sentence_lengths(block.written[0]).tolist() == [2, 3]
    scorer = ClassifierScorer(random_parallel_model(longest=2))
    assert scorer.truncated(*block.written).tolist() == [False, True]


def blocks(count, size=10):
    for first in range(0, count, size):
        numbers = range(first, first + size)
        yield SentencePairs(
            first, [b"s%d\n" % i for i in numbers], [b"\n" if i % 5 == 0 else b"t%d\n" % i for i in numbers]
        )


def test_a_sample_has_pairs_with_words_and_reads_no_further_than_needed(monkeypatch):
    monkeypatch.setattr(filter_bitext, "LOOK_AHEAD", 35)
    monkeypatch.setattr(filter_bitext, "SAMPLE", 12)
    rest = blocks(100)
    (sources, targets), blocks_read = take_sample(rest)
    assert [block.first for block in blocks_read] == [0, 10, 20, 30]
    assert next(rest).first == 40
    numbers = [int(source[1:]) for source in sources]
    assert len(set(numbers)) == 12
    assert numbers == sorted(numbers)
    assert max(numbers) < 40
    assert not any(number % 5 == 0 for number in numbers)
    assert targets == [b"t%d" % number for number in numbers]
    assert take_sample(blocks(100))[0] == (sources, targets)
    assert take_sample(blocks(100), 2)[0] != (sources, targets)


def test_an_empty_bitext_has_an_empty_sample():
    assert take_sample(iter(())) == (([], []), [])
    assert [len(side) for side in usual_lengths(([], []))] == [0, 0]


def test_usual_lengths_are_ascending():
    sources = [b"a " * (1 + i % 40) for i in range(400)]
    lengths = usual_lengths((sources, [b"b " + source for source in sources]))
    assert len(lengths[0]) == 16
    assert lengths[0][0] == 1
    assert lengths[0][-1] == 40
    assert (np.diff(lengths[0]) > 0).all()
    assert np.array_equal(lengths[1], lengths[0] + 1)
