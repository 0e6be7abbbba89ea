import numpy as np
import pytest
import torch

from phrasetool.errors import LengthError
from phrasetool.phrases import Phrases
from phrasetool.translator.network import NOTHING, NeuralTranslator, padded_targets
from tests.naive_translator import NaiveTranslator
from tests.phrasetool.translator.small_translators import KINDS, architecture, sentences, small, unit_rows


@pytest.mark.parametrize("kind", KINDS)
def test_all_steps_at_once_equal_the_obvious_version(kind):
    module = small(kind)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources, targets = sentences(5, 8, 4), sentences(5, 6, 3, seed=3, shortest=0)
    with torch.no_grad():
        found = module.predict(module.encode(sources), padded_targets(targets, module.end)).numpy()
    expected = [
        naive.predict(source.tolist(), target[:i].tolist())[0]
        for source, target in zip(sources, targets, strict=True)
        for i in range(len(target) + 1)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_equal_all_at_once_and_tell_where_attention_is(kind):
    module = small(kind)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(4, 8, 5)
    words = [[1, 2, 3], [4, 4, 1], [2, 5, 0], [3, 1, 2]]
    with torch.no_grad():
        encoded = module.encode(sources)
        state = module.begin(encoded, 3)
        for step in range(3):
            before = torch.tensor([row[step - 1] if step else NOTHING for row in words])
            predicted, weights = module.step(encoded, state, before)
            for row, source in enumerate(sources):
                vector, attention = naive.predict(source.tolist(), words[row][:step])
                np.testing.assert_allclose(predicted[row], vector, rtol=1e-4, atol=2e-5)
                np.testing.assert_allclose(weights[row, : len(source)], attention, atol=1e-5)
                assert not weights[row, len(source) :].any()


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_selected_sentences_go_on(kind):
    module = small(kind)
    with torch.no_grad():
        encoded = module.encode(sentences(3, 8, 5))
        state = module.begin(encoded, 3)
        module.step(encoded, state, torch.full((3,), NOTHING))
        rows = torch.tensor([2, 0, 2])
        some = module.step(encoded.select(rows), state.select(rows), torch.tensor([1, 2, 1]))[0]
        whole = module.step(encoded, state, torch.tensor([2, 0, 1]))[0]
    torch.testing.assert_close(some, whole[rows])


def test_target_vectors_learn_only_in_a_softmax():
    learnt = {kind: {name for name, _ in small(kind).named_parameters()} for kind in KINDS}
    assert "targets" not in learnt["gru"] | learnt["lstm"] | learnt["transformer"]
    assert {"targets", "bias", "read_targets"} <= learnt["softmax"]
    assert "read_targets" not in learnt["softmax-tied"]
    module = small("softmax")
    predicted = torch.randn(3, 7)
    expected = predicted @ module.targets.T + module.bias
    torch.testing.assert_close(module.logits(predicted), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_make_the_same_translator_and_a_seed_the_same_start(kind):
    module = small(kind)
    again = NeuralTranslator.from_arrays(module.architecture, module.arrays())
    assert not again.training
    sources = sentences(3, 8, 4)
    torch.testing.assert_close(again.encode(sources).states, module.encode(sources).states, rtol=0, atol=0)
    one, same, other = (NeuralTranslator(architecture(kind), 8, unit_rows(7, 7, 1), seed) for seed in (3, 3, 4))
    assert torch.equal(one.words, same.words)
    assert not torch.equal(one.words, other.words)
    with pytest.raises(RuntimeError, match="nothing"):
        NeuralTranslator.from_arrays(module.architecture, {**module.arrays(), "nothing": np.zeros(1, np.float32)})


def test_dropout_is_a_matter_of_its_seed():
    module = NeuralTranslator(architecture("gru"), 8, unit_rows(7, 7, 1), dropout=0.5).train()
    sources = sentences(3, 8, 4)

    def states(seed):
        module.seed_dropout(seed)
        return module.encode(sources).states

    assert torch.equal(states(1), states(1))
    assert not torch.equal(states(1), states(2))


def test_sources_without_words_and_long_ones():
    module = small("gru")
    with pytest.raises(ValueError, match="no word"):
        module.encode(Phrases.from_lists([[1], []]))
    with pytest.raises(LengthError):
        module.encode(Phrases.from_lists([[1] * 512]))


def test_padded_targets():
    found = padded_targets(Phrases.from_lists([[1, 2], [], [3]]), 9)
    assert found.tolist() == [[1, 2, 9], [9, NOTHING, NOTHING], [3, 9, NOTHING]]
