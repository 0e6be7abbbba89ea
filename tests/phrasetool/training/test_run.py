import numpy as np
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.models.storage import load_model
from phrasetool.training.run import train_model
from tests.phrasetool.training.toy_language import combinations, settings, some_of, start, start_of


@combinations
def test_one_iteration_of_every_loss_and_encoder_can_be_stored_and_scores(pairs, loss, encoder, tmp_path):
    pairs = some_of(pairs, np.arange(100))
    chosen = settings(loss, encoder, iterations=1)
    before = start_of(chosen)
    trained = train_model(pairs, chosen, lambda: before, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.identity == trained.identity
    assert loaded.kind == chosen.kind
    learning = set(before[0].arrays())
    if chosen.encoder_options.get("layers") == "fixed":
        learning = {"word_vectors", "end", "transform", "transform_bias"}
    for name in learning:
        assert (trained.source.arrays()[name] != before[0].arrays()[name]).any(), name
    scores = loaded.scorer().score_pairs(pairs.sources, pairs.targets)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 1


def test_training_that_diverges_says_so(pairs, tmp_path):
    chosen = settings("in-batch", learning_rate=1e30, optimizer="sgd", pretrain_iterations=0)
    with pytest.raises(PhraseToolError, match=r"diverged in iteration 1 .*smaller learning rate than 1e\+30"):
        train_model(pairs, chosen, start, tmp_path)
