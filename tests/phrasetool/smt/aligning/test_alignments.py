from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.bitexts import read_alignments
from phrasetool.smt.aligning.alignments import METHODS, symmetrise
from tests import naive_extraction as naive
from tests.listed_alignments import alignments_of
from tests.phrasetool.smt.extraction.small_bitexts import bitext_of

GOLDEN = Path(__file__).parents[3] / "golden/symal.tsv"

points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def read(column):
    return [[tuple(map(int, point.split("-"))) for point in text.split()] for text in column]


def columns():
    rows = [line.split("\t") for line in GOLDEN.read_text().splitlines()]
    return {name: read(row[i] for row in rows[1:]) for i, name in enumerate(rows[0])}


@pytest.mark.parametrize("method", METHODS)
def test_symal(method):
    golden = columns()
    result = symmetrise(*(alignments_of(golden[name]) for name in ("forward", "reverse")), method)
    assert [result[i] for i in range(len(result))] == [sorted(points) for points in golden[method]]


@given(st.lists(st.tuples(points, points), max_size=4), st.sampled_from(list(METHODS)))
def test_symmetrise_agrees_with_naive(pairs, method):
    forward, reverse = ([pair[side] for pair in pairs] for side in (0, 1))
    result = symmetrise(alignments_of(forward), alignments_of(reverse), method)
    assert [result[i] for i in range(len(result))] == [sorted(naive.symmetrise(*pair, method)) for pair in pairs]


@given(st.lists(points, max_size=5))
def test_points_are_put_in_order(lists):
    alignments = alignments_of(lists)
    assert [alignments[i] for i in range(len(lists))] == [sorted(set(points)) for points in lists]
    assert alignments.source.dtype == alignments.target.dtype == np.int32


def test_first_outside():
    alignments = alignments_of([[(0, 0)], [], [(1, 2)]])
    assert alignments.first_outside(np.array([1, 1, 2]), np.array([1, 1, 3])) == -1
    assert alignments.first_outside(np.array([1, 1, 1]), np.array([1, 1, 3])) == 2
    assert alignments.first_outside(np.array([1, 1, 2]), np.array([0, 1, 2])) == 0


def test_symmetrise_refuses_invalid_arguments():
    one_line, two_lines = alignments_of([[]]), alignments_of([[], []])
    with pytest.raises(ValueError, match="1 forward and 2 reverse"):
        symmetrise(one_line, two_lines)
    with pytest.raises(ValueError, match="unknown symmetrisation method srow"):
        symmetrise(one_line, one_line, "srow")


@pytest.mark.requires_reference
def test_the_reference_is_a_union(reference):
    """The file is called grow-diag-final-and, but every line is the union of both directions."""
    forward, reverse = (read_alignments(str(reference / f"{name}.align.gz")) for name in ("forward", "reverse"))
    expected = read_alignments(str(reference / "aligned.grow-diag-final-and.gz"))
    result = symmetrise(forward, reverse, "union")
    for name in ("offsets", "source", "target"):
        assert np.array_equal(getattr(result, name), getattr(expected, name))


def test_bitext_refuses_invalid_sentences():
    good = [[b"a"]], [[b"b"]], [[(0, 0)]]
    bitext_of(*good)
    for wrong, message in (
        (([[b"a"], [b"a"]], *good[1:]), "2 source sentences, 1 target sentences, 1 alignments"),
        (([[]], *good[1:]), "source sentence 0 is empty"),
        ((*good[:2], [[(1, 0)]]), "alignment 0 has a point outside"),
        (([[b"|||"]], *good[1:]), "field separator"),
    ):
        with pytest.raises(ValueError, match=message):
            bitext_of(*wrong)
