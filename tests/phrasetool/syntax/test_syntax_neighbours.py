import numpy as np
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.sentences import read_words
from phrasetool.syntax.syntax_neighbours import nearest_by_syntax
from tests.syntax_models import random_syntax_model, toy_lines

LINES = [line.encode() for side in toy_lines(20) for line in side]


def test_the_nearest_are_those_of_the_greatest_cosine():
    model = random_syntax_model()
    found, searched = nearest_by_syntax(model, LINES[3], *read_words([*LINES, LINES[3], LINES[5]]), 4)
    assert searched == len(set(LINES))
    others = [line for line in dict.fromkeys(LINES) if line != LINES[3]]
    cosines = model.cosines([LINES[3]] * len(others), others)
    order = np.argsort(-cosines, kind="stable")[:4]
    assert [text for text, _ in found] == [others[number] for number in order]
    np.testing.assert_allclose([cosine for _, cosine in found], cosines[order], atol=1e-6)


def test_there_may_be_fewer_than_wanted():
    found, searched = nearest_by_syntax(random_syntax_model(), b"The", *read_words([b"The", b"Die"]), 9)
    assert ([text for text, _ in found], searched) == ([b"Die"], 2)


def test_what_is_unknown_has_no_neighbours():
    with pytest.raises(PhraseToolError, match="knows nothing of the sentence"):
        nearest_by_syntax(random_syntax_model(), "☃".encode(), *read_words([b"The"]), 1)
