import numpy as np
import pytest

from phrasetool.augment.evidence import WordEntries
from phrasetool.augment.relatives import (
    Likeness,
    Relatives,
    SharedTranslations,
    expected,
    learn_relatives,
    regression,
    shared_beginning,
)
from tests.phrasetool.augment.toy_words import STEMS, entry, toy_entries


@pytest.fixture(scope="module")
def relatives():
    entries = toy_entries()
    forms = [word for word in entries.ordered if word.startswith(tuple(STEMS))]
    return entries, learn_relatives(entries, Likeness(entries), forms)


@pytest.mark.parametrize(
    ("one", "other", "letters"), [("abc", "abd", 2), ("abc", "abc", 3), ("", "a", 0), ("ab", "abc", 2)]
)
def test_shared_beginning(one, other, letters):
    assert shared_beginning(one, other) == letters


def test_forms_of_one_stem_are_found_and_recognised_as_alike(relatives):
    result = relatives[1].of("grünst")
    assert {relative.word for relative in result[:5]} == {f"grün{ending}" for ending in ("e", "es", "er", "em", "en")}
    assert all(relative.alike and relative.weight > 0.7 for relative in result[:5])
    assert all(relative.weight < 0.3 for relative in result if not relative.word.startswith("grün"))
    assert [relative.weight for relative in result] == sorted((relative.weight for relative in result), reverse=True)


def test_a_word_is_not_its_own_relative(relatives):
    assert "grüne" not in [relative.word for relative in relatives[1].of("grüne")]
    assert relatives[1].of("ωωω") == []


def test_translations_of_relatives_are_proposed(relatives):
    entries, result = relatives
    inflection = SharedTranslations("inflection", entries, result, alike=True)
    first, second = inflection.proposals("blaust")[:2]
    assert (first.target, second.target) == ("blue", "blue one")
    weights = [relative.weight for relative in result.of("blaust") if relative.alike][:8]
    assert first.weight == pytest.approx(sum(weights) * 0.8)
    assert first.weight == pytest.approx(4 * second.weight)
    assert (first.inverse, first.lexical, first.origin[:4]) == (0.5, (0.25, 0.125), "blau")
    assert SharedTranslations("meaning", entries, result, alike=False).proposals("ωωω") == []


def test_vectors_find_words_that_are_used_alike():
    rng = np.random.default_rng(1)
    meanings = {f"m{i}": rng.normal(size=8).astype(np.float32) for i in range(30)}
    letters = iter(rng.permutation([a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]).tolist())
    pairs = [(next(letters), next(letters), target) for target in meanings]
    entries = WordEntries({word: [entry(target)] for *words, target in pairs for word in words}, {})
    vectors = {
        word: meanings[target] + rng.normal(size=8).astype(np.float32) * 0.05
        for *words, target in pairs
        for word in words
    }
    unknown = pairs[0][0]
    known = WordEntries({word: entries[word] for word in entries if word != unknown}, {})
    likeness = Likeness(known, vectors)
    learnt = learn_relatives(known, likeness, [pair[1] for pair in pairs[1:]])
    assert learnt.of(unknown)[0].word == pairs[0][1]
    assert SharedTranslations("meaning", known, learnt, alike=False).proposals(unknown)[0].target == "m0"
    without = Likeness(known, {word: vector for word, vector in vectors.items() if word != unknown})
    assert (without.of(unknown)[1][:, 7] == 0).all()


def test_nothing_to_learn_from():
    entries = WordEntries({"a": [entry("x")]}, {})
    learnt = learn_relatives(entries, Likeness(entries), [])
    assert isinstance(learnt, Relatives)
    assert learnt.of("b") == []


def test_regression_finds_known_weights():
    rng = np.random.default_rng(1)
    rows = rng.normal([1, -2, 0], [1, 3, 0.2], (4000, 3))
    truth = np.array([0.8, -0.4, 2.0, -0.5])
    result = regression(rows, 1 / (1 + np.exp(-(rows @ truth[:-1] + truth[-1]))))
    assert result == pytest.approx(truth, abs=0.05)
    assert expected(rows[:1], truth)[0] == pytest.approx(1 / (1 + np.exp(-(rows[0] @ truth[:-1] - 0.5))))


def test_regression_agrees_with_sklearn():
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(500, 2))
    labels = (rows @ [1, -1] + rng.normal(size=500) > 0.3).astype(float)
    scaled = (rows - rows.mean(0)) / rows.std(0)
    sklearn_model = linear.LogisticRegression(C=1 / (1e-3 * 500), tol=1e-10).fit(scaled, labels)
    assert expected(rows, regression(rows, labels)) == pytest.approx(
        sklearn_model.predict_proba(scaled)[:, 1], abs=1e-4
    )


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_regression_of_constant_inputs_is_finite(right):
    result = regression(np.ones((5, 2)), np.full(5, right))
    assert np.isfinite(result).all()
    assert abs(expected(np.ones((1, 2)), result)[0] - right) < 0.1
