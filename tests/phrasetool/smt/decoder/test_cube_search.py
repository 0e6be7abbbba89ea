import random
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.decoder_models import random_model, search_options, translator_of
from tests.naive_search import Search
from tests.phrasetool.smt.decoder.decoded_examples import SEEDS, close, example

# No word occurs twice, because equal words make hypotheses with equal scores.
DISTINCT_WORDS = [b"a", b"b", b"c", b"d", b"e", b"q"]


@settings(max_examples=40)
@given(SEEDS)
def test_cube_search_with_room_for_all_is_stack_search(language_models, seed):
    """Both give the same n-best lists for sentences that are too long for the naive decoder."""
    model, _, translator, ids = example(seed, language_models, longest=9)
    model = replace(model, distortion_limit=min(model.distortion_limit % 8, 3))
    lists = [
        translator.translate(ids, search_options(model, algorithm=algorithm), 20, distinct=False, factor=1000)
        for algorithm in ("stack", "cube")
    ]
    assert close(lists[0].steps.scores.tolist(), lists[1].steps.scores.tolist())


def distinct_example(seed, language_models):
    """Return the same as `example`, without the ties that no order of exploration resolves."""
    rng = random.Random(seed)
    number = rng.randrange(len(language_models.ours))
    sentence = rng.sample(DISTINCT_WORDS, rng.randint(1, 6))
    model = random_model(rng, sentence, language_models.kenlm[number])
    model.entries = list({(entry.source, entry.target): entry for entry in model.entries}.values())
    # Not 0, because the order of two jumps would not matter then.
    model.weights["Distortion"] = [round(rng.uniform(0.05, 0.6), 3)]
    translator, texts = translator_of(model, [sentence], language_models.ours[number])
    return model, sentence, translator, texts[0]


def limits_of(seed):
    """Return a stack size, a beam threshold and a pop limit, small for the models of `distinct_example`."""
    rng = random.Random(-seed)
    return rng.choice([1, 2, 3, 5, 50]), rng.choice([0.0, 0.0, 0.001, 0.1]), rng.choice([1, 2, 3, 5, 10, 30])


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_cube_search_explores_as_the_naive_search_does(language_models, first):
    """With any limits, both create, keep and recombine the same derivations: the n-best lists agree."""
    for seed in range(first, first + 50):
        model, sentence, translator, ids = distinct_example(seed, language_models)
        size, beam, pops = limits_of(seed)
        expected = Search(model, sentence, size, beam, cube=True).by_cubes(pops).scores()[:20]
        options = search_options(model, algorithm="cube", stack_size=size, beam_threshold=beam, pop_limit=pops)
        result = translator.translate(ids, options, 20, distinct=False, factor=1000)
        assert close(result.steps.scores.tolist(), expected), seed


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_stack_search_keeps_what_the_naive_search_keeps(language_models, first):
    """The best derivation does not depend on the order in which a full stack drops recombined ones."""
    for seed in range(first, first + 50):
        model, sentence, translator, ids = distinct_example(seed, language_models)
        size = limits_of(seed)[0]
        expected = Search(model, sentence, size).by_stacks().scores()[0]
        result = translator.translate(ids, search_options(model, stack_size=size))
        assert close(float(result.steps.scores[0]), expected), seed
