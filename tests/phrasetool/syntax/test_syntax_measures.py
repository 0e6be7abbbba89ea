import numpy as np
import pytest

from phrasetool.syntax.evaluation import syntax_distances, syntax_quality
from phrasetool.tagger.data import UPOS
from tests.syntax_models import random_syntax_model
from tests.toy_treebanks import toy_sentences

SENTENCES = toy_sentences("en", 120, 1)
LINES = [" ".join(form for form, _ in one.tokens).encode() for one in SENTENCES]
TAGS = [[UPOS.index(tag) for tag in one.tags] for one in SENTENCES]


def test_it_is_measured_beside_what_cannot_know():
    found = syntax_quality(random_syntax_model(), LINES, TAGS)
    assert (found.sentences, found.compared, found.literal) == (120, 120, False)
    assert found.groups == 4
    assert list(found.vectors) == ["model", "words", "untrained", "random", "tags"]
    # Their counts tell these sentences apart.
    assert found.vectors["tags"].nearest_1 == 1
    assert found.vectors["tags"].rho > 0.9
    assert abs(found.vectors["random"].rho) < 0.1
    assert found.vectors["random"].nearest_5 == pytest.approx(found.chance, abs=0.1)
    assert found == syntax_quality(random_syntax_model(), LINES, TAGS)
    # The seed of the model is that of the untrained one.
    assert found.vectors["untrained"] == found.vectors["model"]


def test_equal_sentences_count_once():
    found = syntax_quality(random_syntax_model(), [*LINES, *LINES], [*TAGS, *TAGS])
    assert found == syntax_quality(random_syntax_model(), LINES, TAGS)


def test_the_definition_of_the_paper_can_be_had():
    plain, literal = (syntax_quality(random_syntax_model(), LINES, TAGS, literal=one) for one in (False, True))
    assert literal.vectors["tags"].fd > plain.vectors["tags"].fd
    assert literal.vectors["tags"].rho == plain.vectors["tags"].rho


def test_phrases_of_a_sentence_are_no_neighbours():
    origins = np.zeros(len(LINES), np.int64)
    origins[0] = 1
    found = syntax_quality(random_syntax_model(), LINES, TAGS, origins=origins)
    assert found.vectors["tags"].nearest_1 != 1


def test_distances_need_no_groups():
    few = LINES[:5], TAGS[:5]
    found = syntax_distances(random_syntax_model(), *few)
    assert list(found) == ["model", "words", "untrained", "random", "tags"]
    literal = syntax_distances(random_syntax_model(), *few, literal=True)
    assert literal["tags"].rho == found["tags"].rho > 0.5
    assert literal["tags"].fd != found["tags"].fd
    whole = syntax_quality(random_syntax_model(), LINES, TAGS).vectors
    same = syntax_distances(random_syntax_model(), LINES, TAGS)
    assert {name: one.rho for name, one in same.items()} == {name: one.rho for name, one in whole.items()}


def test_without_groups_there_is_nothing_to_measure():
    with pytest.raises(ValueError, match="no six different sentences"):
        syntax_quality(random_syntax_model(), LINES[:1] * 9, TAGS[:1] * 9)
