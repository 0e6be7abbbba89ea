import numpy as np
import pytest

from moses_compat.jobs.bitexts.pair_blocks import SentencePairs
from moses_compat.jobs.bitexts.pair_decisions import PairCounts, PairDecisions
from phrasetool.pair_classifier.bitext_scores import PairScores
from phrasetool.sentences import sentence_lengths

SOURCES = [b"a b\n", b"\n", b"x\n", b"same\n", b"a&amp;b  c\n", b"a b c d\n"]
TARGETS = [b"A B\r\n", b"B\n", b"Y\n", b"same\n", b"a&b c\n", b"A\tB\n"]
SCORES = np.array([0.5, np.nan, np.nan, 0.9, 0.2, 0.5], np.float32)


def decided(drop=False, blind=None):
    block = SentencePairs(10, SOURCES, TARGETS)
    return PairDecisions.of(block, PairScores(SCORES, blind), 0.5, drop, 3)


@pytest.mark.parametrize("drop", [False, True])
def test_what_goes_and_why(drop):
    found = decided(drop)
    assert found.keep.tolist() == [True, False, False, not drop, False, True]
    assert found.notes == [(), (b"empty",), (b"unknown",), (b"copy",), (b"probability", b"copy"), (b"long",)]
    counts = found.counts
    assert (counts.pairs, counts.kept, counts.copies, counts.over_long) == (6, 3 - drop, 2, 1)
    reasons = {"empty": 1, "unknown": 1, "probability": 1, "copy": 1 + drop}
    assert dict(counts.reasons) == reasons
    total = PairCounts()
    total.add(counts)
    total.add(counts)
    assert total.as_dict()["reasons"] == {name: 2 * count for name, count in reasons.items()}
    assert total.as_dict()["rejected"] == 2 * (3 + drop)


def test_lines_that_are_written():
    found = decided(blind=np.array([0.25, np.nan, np.nan, 0, 1, 0.5], np.float32))
    assert found.kept_lines() == (b"a b\nsame\na b c d\n", b"A B\r\nsame\nA\tB\n")
    assert found.score_lines().splitlines() == [
        b"0.500000\tkept\t-\ta b\tA B\t0.250000",
        b"0.000000\trejected\tempty\t\tB\t0.000000",
        b"0.000000\trejected\tunknown\tx\tY\t0.000000",
        b"0.900000\tkept\tcopy\tsame\tsame\t0.000000",
        b"0.200000\trejected\tprobability,copy\ta&amp;b  c\ta&b c\t1.000000",
        b"0.500000\tkept\tlong\ta b c d\tA B\t0.500000",
    ]
    assert found.rejected_lines().splitlines() == [
        b"empty\t0.000000\t12\t\tB",
        b"unknown\t0.000000\t13\tx\tY",
        b"probability,copy\t0.200000\t15\ta&amp;b  c\ta&b c",
    ]


@pytest.mark.parametrize("space", [b"\xc2\xa0", b"\x0b", b"\r", b"\x1c", b"\xe3\x80\x80"])
def test_sentences_are_as_long_for_the_decision_as_for_the_classifier(space):
    sentences = [b"a" + space + b"b c\n", b"a b c\n"]
    block = SentencePairs(0, sentences, [b"A\n", b"B\n"])
    assert sentence_lengths(block.written[0]).tolist() == [2, 3]
    found = PairDecisions.of(block, PairScores(np.ones(2, np.float32), None), 0.5, False, 2)
    assert found.notes == [(), (b"long",)]
