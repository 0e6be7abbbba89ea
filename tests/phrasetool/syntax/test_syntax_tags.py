import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.sentences import read_words
from phrasetool.syntax.syntax_tags import check_languages, tag_log_probabilities
from phrasetool.tagger.data import UPOS
from tests.syntax_models import random_syntax_model, toy_lines

SOURCES, TARGETS = ([line.encode() for line in side] for side in toy_lines(12))


def test_it_is_the_likelihood_of_what_the_tagger_says(toy_tagger):
    model = random_syntax_model()
    found = tag_log_probabilities(model, toy_tagger, SOURCES, TARGETS, "de")
    tags = toy_tagger.tag([line.decode().split() for line in TARGETS], "de")
    numbers = [[UPOS.index(part) for tag in line for part in tag.split("+")] for line in tags]
    assert any(len(line) > len(text.split()) for line, text in zip(numbers, TARGETS, strict=True))
    pieces = model.in_pieces(*read_words(SOURCES))
    np.testing.assert_allclose(found, model.likelihood(pieces, Phrases.from_lists(numbers), 1), atol=1e-6)
    assert (found < 0).all()


def test_nothing_is_said_of_what_is_unknown(toy_tagger):
    model = random_syntax_model(longest=9)
    texts, translations = ["☃".encode(), b"The", b"The " * 30, b"The"], [b"Die", "☃".encode(), b"Die", b""]
    found = tag_log_probabilities(model, toy_tagger, texts, translations, "de")
    assert np.isnan(found).tolist() == [True, False, True, True]
    assert tag_log_probabilities(model, toy_tagger, [], [], "de").shape == (0,)


def test_unknown_languages_are_refused(toy_tagger):
    with pytest.raises(ValueError, match="unknown language 'fr'; the encoder predicts the parts of speech of en, de"):
        tag_log_probabilities(random_syntax_model(), toy_tagger, [], [], "fr")
    model = random_syntax_model()
    model.targets = ("en", "fr")
    with pytest.raises(ValueError, match="unknown language 'fr'; the tagger knows en, de"):
        check_languages(model, toy_tagger, "fr")
