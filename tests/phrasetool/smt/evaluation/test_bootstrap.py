import random

import numpy as np
import pytest

from phrasetool.smt.evaluation.bootstrap import Bootstrap, bleu_of_sums, sentence_statistics
from phrasetool.smt.evaluation.metrics import evaluate

WORDS = ["the", "a", "house", "tree", "is", "was", "green", "red", "big", ".", ",", "not"]


def corpus(seed, sentences, noise):
    """References, and translations with some of their words changed."""
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(1, 12))) for _ in range(sentences)]
    systems = []
    for share in noise:
        lines = [[w for w in line.split() if rng.random() > share / 2] for line in references]
        systems.append([" ".join(rng.choice(WORDS) if rng.random() < share else w for w in line) for line in lines])
    return references, systems


@pytest.mark.parametrize(("seed", "sentences"), [(1, 300), (2, 40), (3, 3)])
def test_figures_are_sacrebleu_s(seed, sentences):
    references, systems = corpus(seed, sentences, (0.2, 0.25, 0.5))
    expected = evaluate(systems, [references], metrics=["bleu"])[0].systems
    draw = Bootstrap(sentences)
    found = [draw(sentence_statistics(system, references)) for system in systems]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.bleu == pytest.approx(theirs.score, abs=1e-9)
        low, high = ours.interval
        assert (high - low) / 2 == pytest.approx(theirs.interval, abs=1e-6 if ours is not found[0] else 1.5)
        assert low <= np.median(ours.samples) <= high
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        assert ours.p_value(found[0]) == theirs.p_value
    assert found[0].p_value(found[0]) == 1


def test_orders_without_a_match():
    """Smoothed as sacrebleu does it; with too short a text, and with no match at all, 0."""
    for hypothesis, reference in ((["a b x d"], ["a b c d"]), (["a"], ["a"]), (["x y"], ["a b"]), ([""], ["a"])):
        expected = evaluate([hypothesis], [reference], metrics=["bleu"], samples=2)[0].systems[0].score
        assert bleu_of_sums(sentence_statistics(hypothesis, reference).sum(0)) == pytest.approx(expected, abs=1e-9)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="2 translations of 1"):
        sentence_statistics(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="no sentences"):
        Bootstrap(0)
    with pytest.raises(ValueError, match="for 2 sentences"):
        Bootstrap(2)(np.zeros((3, 9), np.int32))
