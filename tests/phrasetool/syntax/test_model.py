import json

import numpy as np
import pytest

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.models.fit import finding
from phrasetool.models.saved_model import load_saved_model
from phrasetool.phrases import Phrases
from phrasetool.sentences import read_words
from phrasetool.syntax.model import (
    SyntaxModel,
    check_languages,
    nearest_by_syntax,
    syntax_fit,
    tag_log_probabilities,
)
from phrasetool.tagger.data import UPOS
from phrasetool.tagger.model import TaggerModel
from tests.syntax_models import random_syntax_model, toy_lines

LINES = [line for side in toy_lines(5) for line in side]


def test_it_comes_back_as_it_was_saved(tmp_path):
    model = random_syntax_model()
    model.save(tmp_path)
    again = SyntaxModel.load(tmp_path)
    assert (again.languages, again.targets, again.shape) == (model.languages, model.targets, model.shape)
    assert again.training == {"seed": 1}
    assert again.signature == model.signature == load_saved_model(tmp_path).signature
    assert np.array_equal(again.encode(LINES), model.encode(LINES))
    with pytest.raises(ModelError, match="a syntactic encoder; this needs a tagger"):
        TaggerModel.load(tmp_path)


def test_vectors_depend_on_the_sentence_alone():
    model = random_syntax_model()
    whole = model.encode(LINES)
    assert whole.shape == (10, model.dimension) == (10, 10)
    for line, vector in zip(LINES, whole, strict=True):
        np.testing.assert_allclose(model.encode([line.encode()])[0], vector, atol=1e-6)
    escaped = model.encode(["a &apos; b"])
    assert np.array_equal(escaped, model.encode(["a ' b"]))


def test_what_is_unknown_or_too_long_has_no_vector():
    model = random_syntax_model(longest=9)
    texts = ["☃", "☃ ☃", "☃ The", "The " * 30, ""]
    assert model.encode(texts).any(1).tolist() == [False, False, True, False, False]
    assert model.too_long(texts).tolist() == [False, False, False, True, False]
    found = model.cosines(texts, ["The"] * 5)
    assert np.isnan(found).tolist() == [True, True, False, True, True]


def test_cosines_are_those_of_the_vectors():
    model = random_syntax_model()
    found = model.cosines(LINES[:5], LINES[5:])
    vectors = model.encode(LINES).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    np.testing.assert_allclose(found, (unit[:5] * unit[5:]).sum(1), atol=1e-6)
    assert model.cosines(["The"], ["The"])[0] == pytest.approx(1)
    assert model.cosines([], []).shape == (0,)
    with pytest.raises(ValueError, match="1 sources and 2 targets"):
        model.cosines(["a"], ["b", "c"])


def test_identity_tells_weights_and_known_pieces_apart():
    first, second, third = random_syntax_model(), random_syntax_model(2), random_syntax_model()
    third.known[5] = not third.known[5]
    assert len({first.identity, second.identity, third.identity}) == 3
    assert first.identity == random_syntax_model().identity


def test_parts_that_do_not_fit_are_refused(tmp_path):
    random_syntax_model().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())

    def changed(**shape):
        (tmp_path / "config.json").write_text(json.dumps({**config, "shape": {**config["shape"], **shape}}))
        return tmp_path

    with pytest.raises(ModelError, match="330 pieces and 2 target languages, expected 330 and 3"):
        SyntaxModel.load(changed(languages=3))
    with pytest.raises(ModelError, match=r"encoder\.0\.weight_ih_l0 is float32"):
        SyntaxModel.load(changed(units=4))
    with pytest.raises(ModelError, match=r"config\.json does not describe a syntactic encoder"):
        SyntaxModel.load(changed(units=0))
    changed()
    (tmp_path / "pieces.model").write_bytes(b"other")
    with pytest.raises(ModelError, match=r"pieces\.model: is not the file that was saved"):
        SyntaxModel.load(tmp_path)


def lines(count):
    return [[line.encode() for line in side] for side in toy_lines(count)]


def test_its_languages_are_known():
    fit = syntax_fit(random_syntax_model(), *lines(100))
    assert (fit.source_known, fit.target_known, fit.auc) == (1, 1, None)
    assert finding(fit) is None


def test_other_writing_is_not():
    sources, _ = lines(100)
    others = ["的 确 是".encode()] * 100
    fit = syntax_fit(random_syntax_model(), sources, others)
    assert (fit.source_known, fit.target_known) == (1, 0)
    assert "trained on other languages" in finding(fit)


def test_nothing_is_said_of_nothing():
    assert finding(syntax_fit(random_syntax_model(), [], [])) is None


TEXTS = [line.encode() for side in toy_lines(20) for line in side]


def test_the_nearest_are_those_of_the_greatest_cosine():
    model = random_syntax_model()
    found, searched = nearest_by_syntax(model, TEXTS[3], *read_words([*TEXTS, TEXTS[3], TEXTS[5]]), 4)
    assert searched == len(set(TEXTS))
    others = [line for line in dict.fromkeys(TEXTS) if line != TEXTS[3]]
    cosines = model.cosines([TEXTS[3]] * len(others), others)
    order = np.argsort(-cosines, kind="stable")[:4]
    assert [text for text, _ in found] == [others[number] for number in order]
    np.testing.assert_allclose([cosine for _, cosine in found], cosines[order], atol=1e-6)


def test_there_may_be_fewer_than_wanted():
    found, searched = nearest_by_syntax(random_syntax_model(), b"The", *read_words([b"The", b"Die"]), 9)
    assert ([text for text, _ in found], searched) == ([b"Die"], 2)


def test_what_is_unknown_has_no_neighbours():
    with pytest.raises(PhraseToolError, match="knows nothing of the sentence"):
        nearest_by_syntax(random_syntax_model(), "☃".encode(), *read_words([b"The"]), 1)


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
