import numpy as np
import pytest

from phrasetool.translator.model import NeuralModel
from phrasetool.translator.new_words import new_target_vectors
from phrasetool.translator.target_vectors import target_table
from tests.phrasetool.translator.small_translators import small
from tests.phrasetool.translator.test_model import SOURCE, TARGET


def trained(centring):
    rng = np.random.default_rng(1)
    known = {word: rng.normal(1, 1, 7).astype(np.float32) for word in [*TARGET.words[1:], b"new", b"other"]}
    module = small("gru")
    arrays = {**module.arrays(), "targets": target_table(TARGET, known, centring, "mean", 1)}
    return NeuralModel(SOURCE, TARGET, module.architecture, arrays, 0.3, {"centring": centring}), known


@pytest.mark.parametrize("centring", ["plain", "centred"])
def test_new_words_are_of_the_space_that_is_predicted(centring):
    model, known = trained(centring)
    found = new_target_vectors(model, [b"new", b"t1"], known)
    middle = np.mean([known[word] for word in TARGET.words[1:]], axis=0) if centring == "centred" else 0
    assert set(found) == {b"new"}
    np.testing.assert_allclose(found[b"new"], known[b"new"] - middle, rtol=1e-4, atol=1e-5)
    # As if the word had been in the vocabulary without moving its middle.
    row = model.with_words(found).arrays["targets"][-2]
    wanted = known[b"new"] - middle
    np.testing.assert_allclose(row, wanted / np.linalg.norm(wanted), rtol=1e-4, atol=1e-5)


def test_other_vectors_are_refused():
    model, known = trained("plain")
    turned = {word: vector[::-1].copy() for word, vector in known.items()}
    with pytest.raises(ValueError, match="not the vectors that the model was trained with"):
        new_target_vectors(model, [b"new"], turned)
    with pytest.raises(ValueError, match="nowhere has no vector"):
        new_target_vectors(model, [b"nowhere"], known)
    with pytest.raises(ValueError, match="t0 has no vector"):
        new_target_vectors(model, [b"new"], {b"new": known[b"new"]})
    with pytest.raises(ValueError, match="the vector of new is not finite"):
        new_target_vectors(model, [b"new"], {**known, b"new": np.full(7, np.nan, np.float32)})
    with pytest.raises(ValueError, match="random vectors"):
        new_target_vectors(trained("random")[0], [b"new"], known)
