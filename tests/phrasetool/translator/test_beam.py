import itertools

import numpy as np
import pytest
import torch

from phrasetool.phrases import Phrases
from phrasetool.translator import beam
from phrasetool.translator.beam import (
    NeuralTranslation,
    most_words,
    n_best_translations,
    translate,
    without_repetitions,
    written,
)
from tests.naive_translator import NaiveTranslator
from tests.phrasetool.translator.small_translators import EVEN, KINDS, sentences, small

TEMPERATURE = 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_beam_finds_the_best_of_all_translations(kind, monkeypatch):
    monkeypatch.setattr(beam, "most_words", lambda lengths: np.full(len(lengths), 3))
    module = small(kind, target_words=3)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(4, 8, 4)
    # As many hypotheses as there are prefixes: nothing is lost.
    for source, found in zip(sources, translate(module, sources, TEMPERATURE, 40), strict=True):
        score, words = naive.best(source.tolist(), TEMPERATURE, 3)
        assert found.words == words
        assert found.score == pytest.approx(score, abs=1e-5)


def test_the_best_translations_in_order(monkeypatch):
    monkeypatch.setattr(beam, "most_words", lambda lengths: np.full(len(lengths), 3))
    module = small("gru", target_words=3)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(4, 8, 4)
    everything = [words for length in range(4) for words in itertools.product(range(3), repeat=length)]
    # As many hypotheses as there are prefixes: nothing is lost.
    for source, found in zip(sources, n_best_translations(module, sources, TEMPERATURE, 9, 40), strict=True):
        scores = {words: naive.score(source.tolist(), list(words), TEMPERATURE) for words in everything}
        expected = sorted(everything, key=lambda words: -scores[words] / (len(words) + 1))[:9]
        assert [translation.words for translation in found] == expected
        assert [t.log_probability for t in found] == pytest.approx([scores[words] for words in expected], abs=1e-5)
    assert translate(module, sources, TEMPERATURE, 40) == [
        found[0] for found in n_best_translations(module, sources, TEMPERATURE, 2, 40)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_takes_the_nearest_word_at_every_step(kind):
    module = small(kind)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(5, 8, 3)
    for source, found in zip(sources, translate(module, sources, TEMPERATURE), strict=True):
        words = []
        while len(words) < 2 * len(source) + 5:
            best = int(naive.log_probabilities(source.tolist(), words, TEMPERATURE).argmax())
            if best == module.end:
                break
            words.append(best)
        assert found.words == tuple(words)
        attended = [int(naive.predict(source.tolist(), words[:i])[1].argmax()) for i in range(len(words))]
        assert found.attended == tuple(attended)
        expected = naive.score(source.tolist(), words, TEMPERATURE) / (len(words) + 1)
        assert found.score == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru", "transformer"])
@pytest.mark.parametrize("width", [1, 3])
def test_others_and_threads_change_no_bit(kind, width):
    module = small(kind, 30, 40, sizes=EVEN)
    sources = sentences(45, 30, 5)
    whole = translate(module, sources, TEMPERATURE, width)
    assert translate(module, sources, TEMPERATURE, width, threads=2) == whole
    order = np.random.default_rng(1).permutation(45)
    assert translate(module, sources.select(order), TEMPERATURE, width) == [whole[i] for i in order]
    for i in (0, 20, 44):
        assert translate(module, sources.part(i, i + 1), TEMPERATURE, width) == [whole[i]]


def test_candidates_are_all_that_is_used():
    module = small("gru", 8, 20)
    sources = sentences(6, 8, 4)
    candidates = [np.array([i + 1, i + 2]) for i in range(6)]
    found = translate(module, sources, TEMPERATURE, 2, candidates)
    assert any(translation.words for translation in found)
    for i, translation in enumerate(found):
        assert set(translation.words) <= {i + 1, i + 2}
    everything = [np.arange(20)] * 6
    assert translate(module, sources, TEMPERATURE, 2, everything) == translate(module, sources, TEMPERATURE, 2)


def test_a_wider_beam_is_better_on_the_whole_and_threads_are_put_back():
    module = small("gru", 8, 20, seed=5, scale=8.0)
    before = torch.get_num_threads()
    ticks = []
    means = [
        np.mean([t.score for t in translate(module, sentences(20, 8, 4), 0.02, width, tick=ticks.append)])
        for width in (1, 8)
    ]
    assert means[0] < means[1]
    assert sum(ticks) == 40
    assert torch.get_num_threads() == before
    assert translate(module, Phrases.from_lists([]), TEMPERATURE) == []


def test_lengths():
    assert most_words(np.array([1, 10, 511])).tolist() == [7, 25, 511]
    module = small("transformer")
    (found,) = translate(module, Phrases.from_lists([[1] * 300]), TEMPERATURE, candidates=[np.array([1])])
    assert len(found.words) <= 511


def test_unknown_words_are_copied_or_looked_up():
    translation = NeuralTranslation((2, 0, 0, 1), (0, 1, 0, 1), 0.0)
    words = [b"<unk>", b"one", b"two"]
    assert written(translation, words, [b"a", b"b"], {}) == [b"two", b"b", b"a", b"one"]
    assert written(translation, words, [b"a", b"b"], {b"b": b"B"}) == [b"two", b"B", b"a", b"one"]
    assert without_repetitions([b"a", b"a", b"b", b"a", b"a", b"a"]) == [b"a", b"b", b"a"]
    assert without_repetitions([]) == []
