import pytest

from tests.phrasetool.smt.extraction.small_bitexts import bitext_of


def test_bitext_refuses():
    good = [[b"a"]], [[b"b"]], [[(0, 0)]]
    bitext_of(*good)
    for wrong, message in (
        (([[b"a"], [b"a"]], *good[1:]), "2 source sentences, 1 target sentences, 1 alignments"),
        (([[]], *good[1:]), "source sentence 0 is empty"),
        ((*good[:2], [[(1, 0)]]), "alignment 0 has a point outside"),
        (([[b"|||"]], *good[1:]), "separates the fields"),
    ):
        with pytest.raises(ValueError, match=message):
            bitext_of(*wrong)
