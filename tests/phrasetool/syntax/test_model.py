import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.models.fit import mismatch_reason
from phrasetool.models.saved_model import load_saved_model
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import read_words
from phrasetool.syntax.model import (
    SyntaxModel,
    SyntaxVectors,
    TagLikelihood,
    check_languages,
    in_order,
    nearest_by_syntax,
    syntax_fit,
    tag_log_probabilities,
)
from phrasetool.syntax.network import SyntaxNetwork
from phrasetool.syntax.settings import END, SyntaxShape
from phrasetool.tagger.data import UPOS
from phrasetool.tagger.model import TaggerModel
from tests.syntax_models import random_syntax_model, toy_lines

SHAPES = {layers: SyntaxShape(30, 1, 6, 5, layers, 4, 2, 3, 40) for layers in (1, 2, 3)}
LINES = [line for side in toy_lines(5) for line in side]


def texts_of(lengths, seed=1):
    rng = np.random.default_rng(seed)
    return Phrases.from_lists([rng.integers(0, 30, length).tolist() for length in lengths])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_vectors_are_those_of_torch(layers):
    shape = SHAPES[layers]
    arrays = shape.initial_arrays(1)
    texts = texts_of([3, 1, 9, 40, 2, 2])
    with torch.no_grad():
        padded = torch.from_numpy(texts.padded(40).astype(np.int64))
        expected = SyntaxNetwork(shape, arrays).encode(padded, torch.from_numpy(texts.lengths))[0].numpy()
    result = SyntaxVectors(arrays, shape)(texts)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, atol=1e-5)


@given(st.lists(st.lists(st.integers(0, 29), max_size=12), max_size=12), st.randoms())
def test_order_and_repetition_change_no_byte_of_vectors(lists, random):
    encode = SyntaxVectors(SHAPES[2].initial_arrays(1), SHAPES[2])
    vectors = encode(Phrases.from_lists(lists))
    assert vectors.shape == (len(lists), 10)
    order = list(range(len(lists)))
    random.shuffle(order)
    assert np.array_equal(encode(Phrases.from_lists([lists[i] for i in order])), vectors[order])
    assert np.array_equal(encode(Phrases.from_lists(lists * 2)), np.concatenate([vectors, vectors]))
    for text, vector in zip(lists, vectors, strict=True):
        assert bool(text) == vector.any()


def test_batches_change_next_to_nothing():
    encode = SyntaxVectors(SHAPES[2].initial_arrays(1), SHAPES[2])
    texts = texts_of(np.random.default_rng(2).integers(1, 9, 600))
    vectors = encode(texts)
    for number in range(0, 600, 40):
        np.testing.assert_allclose(encode(texts.part(number, number + 1))[0], vectors[number], atol=1e-6)


def test_order_is_by_length_then_pieces():
    texts = Phrases.from_lists([[2, 1], [3], [2, 0], [1], []])
    assert in_order(texts).tolist() == [4, 3, 1, 2, 0]
    assert in_order(Phrases.from_lists([])).tolist() == []


SHAPE = SyntaxShape(30, 2, 6, 5, 2, 4, 2, 7, 40)
ARRAYS = SHAPE.initial_arrays(1)
SCORE = TagLikelihood(ARRAYS, SHAPE, SyntaxVectors(ARRAYS, SHAPE))


def by_torch(text, tags, language):
    network = SyntaxNetwork(SHAPE, ARRAYS)
    with torch.no_grad():
        vectors, last = network.encode(torch.tensor([text]), torch.tensor([len(text)]))
        logits = network.decode(vectors, last, torch.tensor([language]), torch.tensor([tags]))[0]
    expected = [*tags, END]
    return float(torch.log_softmax(logits, 1)[range(len(expected)), expected].mean())


@pytest.mark.parametrize("language", [0, 1])
def test_means_are_those_of_torch(language):
    rng = np.random.default_rng(language)
    texts = [rng.integers(0, 30, length).tolist() for length in (3, 1, 9, 9, 2, 40)]
    tags = [rng.integers(0, 17, length).tolist() for length in (1, 6, 2, 2, 6, 12)]
    result = SCORE(Phrases.from_lists(texts), Phrases.from_lists(tags), language)
    assert result.dtype == np.float32
    expected = [by_torch(text, sequence, language) for text, sequence in zip(texts, tags, strict=True)]
    np.testing.assert_allclose(result, expected, atol=1e-5)


TEXT = st.lists(st.integers(0, 29), min_size=1, max_size=6)
TAGS = st.lists(st.integers(0, 16), min_size=1, max_size=6)


@given(st.lists(st.tuples(TEXT, TAGS), max_size=10), st.randoms())
def test_order_and_repetition_do_not_change_likelihoods(pairs, random):
    def score(some):
        return SCORE(Phrases.from_lists([a for a, _ in some]), Phrases.from_lists([b for _, b in some]), 0)

    scores = score(pairs)
    order = list(range(len(pairs)))
    random.shuffle(order)
    assert np.array_equal(score(pairs * 2), np.concatenate([scores, scores]))
    np.testing.assert_allclose(score([pairs[i] for i in order]), scores[order], atol=1e-6)


def test_round_trip(tmp_path):
    model = random_syntax_model()
    model.save(tmp_path)
    loaded = SyntaxModel.load(tmp_path)
    assert (loaded.languages, loaded.targets, loaded.shape) == (model.languages, model.targets, model.shape)
    assert loaded.training == {"seed": 1}
    assert loaded.signature == model.signature == load_saved_model(tmp_path).signature
    assert np.array_equal(loaded.encode(LINES), model.encode(LINES))
    with pytest.raises(ModelError, match="a syntactic encoder; this needs a tagger"):
        TaggerModel.load(tmp_path)


def test_vectors_depend_on_the_sentence_alone():
    model = random_syntax_model()
    vectors = model.encode(LINES)
    assert vectors.shape == (10, model.dimension) == (10, 10)
    for line, vector in zip(LINES, vectors, strict=True):
        np.testing.assert_allclose(model.encode([line.encode()])[0], vector, atol=1e-6)
    escaped = model.encode(["a &apos; b"])
    assert np.array_equal(escaped, model.encode(["a ' b"]))


def test_unknown_and_too_long_texts_have_no_vector():
    model = random_syntax_model(longest=9)
    texts = ["☃", "☃ ☃", "☃ The", "The " * 30, ""]
    assert model.encode(texts).any(1).tolist() == [False, False, True, False, False]
    assert model.too_long(texts).tolist() == [False, False, False, True, False]
    result = model.cosines(texts, ["The"] * 5)
    assert np.isnan(result).tolist() == [True, True, False, True, True]


def test_cosines_are_those_of_the_vectors():
    model = random_syntax_model()
    result = model.cosines(LINES[:5], LINES[5:])
    vectors = model.encode(LINES).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    np.testing.assert_allclose(result, (unit[:5] * unit[5:]).sum(1), atol=1e-6)
    assert model.cosines(["The"], ["The"])[0] == pytest.approx(1)
    assert model.cosines([], []).shape == (0,)
    with pytest.raises(ValueError, match="1 sources and 2 targets"):
        model.cosines(["a"], ["b", "c"])


def test_the_identity_depends_on_weights_and_known_pieces():
    first, second, third = random_syntax_model(), random_syntax_model(2), random_syntax_model()
    third.known[5] = not third.known[5]
    assert len({first.identity, second.identity, third.identity}) == 3
    assert first.identity == random_syntax_model().identity


def test_invalid_parts_are_refused(tmp_path):
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


def test_fit_of_the_languages_of_the_model():
    fit = syntax_fit(random_syntax_model(), *lines(100))
    assert (fit.source_known, fit.target_known, fit.auc) == (1, 1, None)
    assert mismatch_reason(fit) is None


def test_fit_of_another_script():
    sources, _ = lines(100)
    others = ["的 确 是".encode()] * 100
    fit = syntax_fit(random_syntax_model(), sources, others)
    assert (fit.source_known, fit.target_known) == (1, 0)
    assert "trained on other languages" in mismatch_reason(fit)


def test_no_finding_without_texts():
    assert mismatch_reason(syntax_fit(random_syntax_model(), [], [])) is None


TEXTS = [line.encode() for side in toy_lines(20) for line in side]


def test_the_nearest_sentences_have_the_highest_cosines():
    model = random_syntax_model()
    result, searched = nearest_by_syntax(model, TEXTS[3], *read_words([*TEXTS, TEXTS[3], TEXTS[5]]), 4)
    assert searched == len(set(TEXTS))
    others = [line for line in dict.fromkeys(TEXTS) if line != TEXTS[3]]
    cosines = model.cosines([TEXTS[3]] * len(others), others)
    order = np.argsort(-cosines, kind="stable")[:4]
    assert [text for text, _ in result] == [others[number] for number in order]
    np.testing.assert_allclose([cosine for _, cosine in result], cosines[order], atol=1e-6)


def test_there_may_be_fewer_neighbours_than_requested():
    result, searched = nearest_by_syntax(random_syntax_model(), b"The", *read_words([b"The", b"Die"]), 9)
    assert ([text for text, _ in result], searched) == ([b"Die"], 2)


def test_unknown_sentences_have_no_neighbours():
    with pytest.raises(PhraseToolError, match="no known subword unit"):
        nearest_by_syntax(random_syntax_model(), "☃".encode(), *read_words([b"The"]), 1)


SOURCES, TARGETS = ([line.encode() for line in side] for side in toy_lines(12))


def test_the_score_is_the_likelihood_of_the_tags_of_the_tagger(toy_tagger):
    model = random_syntax_model()
    result = tag_log_probabilities(model, toy_tagger, SOURCES, TARGETS, "de")
    tags = toy_tagger.tag([line.decode().split() for line in TARGETS], "de")
    numbers = [[UPOS.index(part) for tag in line for part in tag.split("+")] for line in tags]
    assert any(len(line) > len(text.split()) for line, text in zip(numbers, TARGETS, strict=True))
    pieces = model.in_pieces(*read_words(SOURCES))
    np.testing.assert_allclose(result, model.likelihood(pieces, Phrases.from_lists(numbers), 1), atol=1e-6)
    assert (result < 0).all()


def test_unknown_long_and_empty_texts_have_no_score(toy_tagger):
    model = random_syntax_model(longest=9)
    texts, translations = ["☃".encode(), b"The", b"The " * 30, b"The"], [b"Die", "☃".encode(), b"Die", b""]
    result = tag_log_probabilities(model, toy_tagger, texts, translations, "de")
    assert np.isnan(result).tolist() == [True, False, True, True]
    assert tag_log_probabilities(model, toy_tagger, [], [], "de").shape == (0,)


def test_unknown_languages_are_refused(toy_tagger):
    with pytest.raises(ValueError, match="unknown language 'fr'; the encoder predicts the parts of speech of en, de"):
        tag_log_probabilities(random_syntax_model(), toy_tagger, [], [], "fr")
    model = random_syntax_model()
    model.targets = ("en", "fr")
    with pytest.raises(ValueError, match="unknown language 'fr'; the tagger knows en, de"):
        check_languages(model, toy_tagger, "fr")
