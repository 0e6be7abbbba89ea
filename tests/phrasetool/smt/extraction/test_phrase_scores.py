import pytest

from tests.phrasetool.smt.extraction.small_bitexts import bitext_of, extract_phrase_pairs


def test_ties_are_broken_in_each_direction():
    """Two alignments, each seen once: the larger one by target words is not the larger one by source words."""
    bitext = bitext_of([[b"a", b"b"]] * 2, [[b"x", b"y"]] * 2, [[(0, 0), (0, 1)], [(0, 0), (1, 0)]])
    entries = extract_phrase_pairs(bitext)
    whole = next(i for i in range(len(entries)) if len(entries.sources[i]) == len(entries.targets[i]) == 2)
    # By target words ({0}, {0}) is smaller than ({0, 1}, {}); by source words ({0, 1}, {}) is larger than ({0}, {0}).
    assert entries.alignments[whole] == [(0, 0), (1, 0)]
    # lex(s|t) uses the other one: a is explained by x and y, b by nothing.
    w = {("a", "x"): 2 / 3, ("a", "y"): 0.5, ("b", None): 1.0}
    expected = (round(w["a", "x"], 7) + w["a", "y"]) / 2 * w["b", None]
    assert entries.scores[whole, 1] == pytest.approx(expected, rel=1e-6)
