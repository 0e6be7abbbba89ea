import numpy as np
import pytest

from phrasetool.pair_classifier.classifier_measures import measured
from phrasetool.pair_classifier.labelled_pairs import contained_pairs, random_pairs
from phrasetool.pair_classifier.pair_quality import area_under_curve, quality_at
from tests.parallel_models import WORDS, random_parallel_model, toy_pairs

TEXTS = toy_pairs(60)


def test_against_probabilities_of_each_pair():
    model = random_parallel_model()
    found = measured(model, TEXTS, 3)

    def lines(texts, side):
        return [b" ".join(WORDS[side][i] for i in text) for text in texts]

    for labelled, half, best in (
        (random_pairs(TEXTS, 5, 3), found.random_half, found.random_best),
        (contained_pairs(TEXTS, 3), found.contained_half, found.contained_best),
    ):
        sources, targets = lines(TEXTS.sources, 0), lines(labelled.targets, 1)
        p = model.probabilities([sources[i] for i in labelled.rows], [targets[i] for i in labelled.columns])
        assert quality_at(p, labelled.parallel, 0.5) == half
        assert quality_at(p, labelled.parallel, 0.4) == best
        if labelled.targets is TEXTS.targets:
            assert found.auc == pytest.approx(area_under_curve(p, labelled.parallel))
    vectors = [model.encode(lines(TEXTS.sources, side), name) for side, name in enumerate(("source", "target"))]
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in vectors]
    nearest = (unit[0] @ unit[1].T).argmax(1)
    right = [np.array_equal(TEXTS.targets[i], TEXTS.targets[j]) for i, j in enumerate(nearest.tolist())]
    assert found.accuracy_at_1 == np.mean(right)
    assert found.pairs == 60


def test_nothing_to_tell_apart():
    with pytest.raises(ValueError, match="nothing to tell apart"):
        measured(random_parallel_model(), TEXTS.select(np.array([0, 0])), 1)
