import random

import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.smt.tuning.n_best_decoder import NBestDecoder
from tests.decoder_models import LanguageModels, random_model, random_sentence, search_options, translator_of


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    """A translator, sentences in its ids, and options that leave nothing to chance."""
    rng = random.Random(4)
    sentences = [random_sentence(rng, size) for size in (3, 0, 5, 1, 4)]
    languages = LanguageModels(tmp_path_factory.mktemp("language-models"))
    model = random_model(rng, sentences[2], languages.kenlm[0])
    return (*translator_of(model, sentences, languages.ours[0]), search_options(model))


@pytest.mark.parametrize("threads", [1, 2])
def test_candidates_are_those_of_the_translator_with_the_tuned_weights(decoded, threads):
    translator, texts, options = decoded
    tuned = np.ones(len(translator.weights), np.bool_)
    tuned[[0, 2]] = False
    weights = np.linspace(0.2, 1.5, int(tuned.sum()))
    before, ticks = translator.weights.copy(), []
    decoder = NBestDecoder(translator, texts, options, 6, tuned, threads, lambda: ticks.append(1))
    whole = decoder.all_weights(weights)
    assert whole[tuned].tolist() == weights.tolist()
    assert whole[~tuned].tolist() == before[~tuned].tolist()
    found = decoder(weights)
    assert translator.weights.tolist() == before.tolist()
    other = translator.with_weights(whole)
    expected = list(other.translate_all(texts, options, 6))
    assert len(ticks) == len(expected) == 5
    assert found.sentence.tolist() == [s for s, one in enumerate(expected) for _ in range(len(one))]
    assert max(np.bincount(found.sentence)) > 1
    words = [other.words(one, d).tolist() for one in expected for d in range(len(one))]
    assert [row.tolist() for row in found.words] == words
    assert found.features.dtype == np.float32
    np.testing.assert_allclose(found.features, np.concatenate([one.features[:, tuned] for one in expected]), rtol=1e-6)


def test_no_sentences_have_no_candidates(decoded):
    translator, _, options = decoded
    tuned = np.ones(len(translator.weights), np.bool_)
    found = NBestDecoder(translator, Phrases.from_lists([]), options, 6, tuned)(translator.weights)
    assert (len(found.sentence), len(found.words), found.features.shape) == (0, 0, (0, len(tuned)))
