import pytest

from phrasetool.smt.evaluation.metrics import MetricReport, SystemScore
from phrasetool.smt.evaluation.score_text import any_significant, score_lines

BASE = SystemScore(33.333, 33.3, 1.25)


def report(*others, higher=True):
    return MetricReport("BLEU", higher, "nrefs:1", [BASE, *others])


def test_one_system():
    assert score_lines(report(), ["folder/base.en"]) == [
        "BLEU, more is better   score    95 %",
        "  base.en              33.33   ±1.25",
        "  nrefs:1",
    ]


def test_systems_are_compared_with_the_first():
    worse = SystemScore(30, 30.1, 0.5, -3.333, 0.001)
    same = SystemScore(33.333, 33, 1, 0.0, 1.0)
    assert score_lines(report(worse, same, higher=False), ["a/one", "b/two", "b/one"]) == [
        "BLEU, less is better   score    95 %  difference        p",
        "  a/one (baseline)     33.33   ±1.25",
        "  b/two                30.00   ±0.50       -3.33   0.0010 *",
        "  b/one                33.33   ±1.00       +0.00   1.0000",
        "  nrefs:1",
    ]


@pytest.mark.parametrize(("p", "expected"), [(0.049, True), (0.05, False), (1.0, False), (None, False)])
def test_what_is_significant(p, expected):
    assert any_significant([report(), report(SystemScore(1, 1, 1, 1, p))]) is expected
