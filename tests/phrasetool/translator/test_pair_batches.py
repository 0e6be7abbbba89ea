import numpy as np
import pytest

from phrasetool.phrases import Phrases
from tests.table_translators import naive_score, translator

pytest.importorskip("torch")
from phrasetool.translator import pair_batches


def pairs(count, seed=0):
    rng = np.random.default_rng(seed)

    def sides():
        found = [rng.integers(0, 13, rng.integers(0, 7)).tolist() for _ in range(count // 2)]
        return [found[i] for i in rng.integers(0, len(found), count)]

    sources, targets = sides(), sides()
    return [*sources, [1] * 512, [2], [3] * 511], [*targets, [2], [1] * 512, [4]]


@pytest.mark.parametrize(("cell", "output"), [("gru", "vectors"), ("transformer", "vectors"), ("gru", "softmax")])
@pytest.mark.parametrize("reading", ["normalised", "density"])
def test_scores_are_those_of_each_pair_alone(cell, output, reading, monkeypatch):
    model = translator(cell=cell, output=output)
    sources, targets = pairs(60)
    sides = Phrases.from_lists(sources), Phrases.from_lists(targets)
    monkeypatch.setattr(pair_batches, "_BATCH", 7)
    if reading == "density" and output == "softmax":
        with pytest.raises(ValueError, match="no densities"):
            pair_batches.scores_of_pairs(model.network, *sides, reading, model.temperature)
        return
    scores = pair_batches.scores_of_pairs(model.network, *sides, reading, model.temperature)
    expected = [naive_score(model, *pair, reading) for pair in zip(sources, targets, strict=True)]
    assert 3 < np.isnan(expected).sum() < 40
    assert scores == pytest.approx(expected, rel=2e-4, abs=2e-4, nan_ok=True)


def test_the_order_of_pairs_changes_no_bit():
    model = translator()
    sources, targets = map(Phrases.from_lists, pairs(3000))
    scores = pair_batches.scores_of_pairs(model.network, sources, targets, "normalised", model.temperature)
    order = np.random.default_rng(1).permutation(len(sources))
    turned = pair_batches.scores_of_pairs(
        model.network, sources.select(order), targets.select(order), "normalised", model.temperature
    )
    # Equal pairs may stand in two batches.
    same = np.nan_to_num(turned) == np.nan_to_num(scores[order])
    assert same.mean() > 0.999
    assert turned == pytest.approx(scores[order], rel=1e-5, nan_ok=True)


def test_long_phrases_are_known():
    sources, targets = map(Phrases.from_lists, pairs(4))
    assert pair_batches.is_too_long(sources, targets).tolist() == [False] * 4 + [True, True, False]
