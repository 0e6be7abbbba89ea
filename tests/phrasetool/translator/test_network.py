import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.errors import LengthError
from phrasetool.nn.lstm import StepProducts
from phrasetool.phrases import Phrases
from phrasetool.translator import network
from phrasetool.translator.network import (
    NOTHING,
    AttentionCore,
    RecurrentCore,
    TranslatorNetwork,
    padded_targets,
    target_table,
)
from phrasetool.translator.settings import CENTRINGS, UNKNOWN_VECTORS
from phrasetool.vocabulary import Vocabulary
from tests.naive_translator import NaiveTranslator, unit
from tests.phrasetool.translator.small_translators import KINDS, architecture, sentences, small, unit_rows


@pytest.mark.parametrize("kind", KINDS)
def test_all_steps_at_once_agree_with_naive(kind):
    module = small(kind)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources, targets = sentences(5, 8, 4), sentences(5, 6, 3, seed=3, shortest=0)
    with torch.no_grad():
        result = module.predict(module.encode(sources), padded_targets(targets, module.end)).numpy()
    expected = [
        naive.predict(source.tolist(), target[:i].tolist())[0]
        for source, target in zip(sources, targets, strict=True)
        for i in range(len(target) + 1)
    ]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_single_steps_and_their_attention_agree_with_naive(kind):
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


@pytest.mark.parametrize("kind", [kind for kind, shape in KINDS.items() if shape["input_feeding"]])
def test_gathered_gradients_are_those_of_each_step(kind, monkeypatch):
    module = small(kind)
    sources, targets = sentences(5, 8, 4), padded_targets(sentences(5, 6, 3, seed=3, shortest=0), module.end)
    collected = []
    for product in (StepProducts, lambda: torch.nn.functional.linear):
        monkeypatch.setattr(network, "StepProducts", product)
        module.zero_grad()
        module.predict(module.encode(sources), targets).square().sum().backward()
        collected.append({name: value.grad for name, value in module.named_parameters() if value.grad is not None})
    assert len(collected[0]) > 10
    torch.testing.assert_close(*collected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_selected_sentences_can_be_continued(kind):
    module = small(kind)
    with torch.no_grad():
        encoded = module.encode(sentences(3, 8, 5))
        state = module.begin(encoded, 3)
        module.step(encoded, state, torch.full((3,), NOTHING))
        rows = torch.tensor([2, 0, 2])
        selected = module.step(encoded.select(rows), state.select(rows), torch.tensor([1, 2, 1]))[0]
        expected = module.step(encoded, state, torch.tensor([2, 0, 1]))[0]
    torch.testing.assert_close(selected, expected[rows])


def test_target_vectors_are_learnt_only_with_a_softmax():
    learnt = {kind: {name for name, _ in small(kind).named_parameters()} for kind in KINDS}
    assert "targets" not in learnt["gru"] | learnt["lstm"] | learnt["transformer"]
    assert {"targets", "bias", "read_targets"} <= learnt["softmax"]
    assert "read_targets" not in learnt["softmax-tied"]
    module = small("softmax")
    predicted = torch.randn(3, 7)
    expected = predicted @ module.targets.T + module.bias
    torch.testing.assert_close(module.logits(predicted), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_determine_the_translator_and_the_seed_its_initial_values(kind):
    module = small(kind)
    rebuilt = TranslatorNetwork.from_arrays(module.architecture, module.arrays())
    assert not rebuilt.training
    sources = sentences(3, 8, 4)
    torch.testing.assert_close(rebuilt.encode(sources).states, module.encode(sources).states, rtol=0, atol=0)
    first, second, other_seed = (
        TranslatorNetwork(architecture(kind), 8, unit_rows(7, 7, 1), seed) for seed in (3, 3, 4)
    )
    assert torch.equal(first.words, second.words)
    assert not torch.equal(first.words, other_seed.words)
    with pytest.raises(RuntimeError, match="nothing"):
        TranslatorNetwork.from_arrays(module.architecture, {**module.arrays(), "nothing": np.zeros(1, np.float32)})


def test_dropout_is_determined_by_the_seed():
    module = TranslatorNetwork(architecture("gru"), 8, unit_rows(7, 7, 1), dropout=0.5).train()
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
    result = padded_targets(Phrases.from_lists([[1, 2], [], [3]]), 9)
    assert result.tolist() == [[1, 2, 9], [9, NOTHING, NOTHING], [3, 9, NOTHING]]


@pytest.mark.parametrize("kind", ["lstm", "gru", "softmax", "transformer"])
def test_single_steps_equal_all_steps_at_once(kind):
    module = small(kind)
    core, a = module.core, module.architecture
    assert isinstance(core, RecurrentCore if a.recurrent else AttentionCore)
    torch.manual_seed(1)
    width = a.word_units + a.units * a.input_feeding
    inputs = torch.randn(3, 4, width)
    start = torch.randn(3, a.units * (2 if a.cell == "lstm" else 1) if a.recurrent else 0)
    with torch.no_grad():
        expected = core.all_steps(inputs, start)
        state = core.begin(start, 4)
        for step in range(4):
            torch.testing.assert_close(core.step(state, inputs[:, step]), expected[:, step])
        assert state.steps == 4
        # A later input does not affect earlier outputs.
        inputs[:, 3] += 1
        assert torch.equal(core.all_steps(inputs, start)[:, :3], expected[:, :3])


def test_every_layer_starts_from_the_encoder():
    core = RecurrentCore("lstm", 2, 3, 2)
    start = torch.arange(12.0).view(2, 6)
    output, cell = core.begin(start, 1).parts
    for layer in range(2):
        assert output[:, layer].tolist() == start[:, :3].tolist()
        assert cell[:, layer].tolist() == start[:, 3:].tolist()


WORDS = [b"<unk>", b"a", b"b", b"c", b"d"]


def vectors(seed, dimension=6, outside=2):
    rng = np.random.default_rng(seed)
    names = [*WORDS[1:], *(b"rare%d" % i for i in range(outside))]
    return {name: rng.normal(1, 1, dimension).astype(np.float32) for name in names}


@given(st.integers(0, 1000), st.sampled_from(CENTRINGS), st.sampled_from(UNKNOWN_VECTORS), st.integers(0, 3))
def test_rows_have_length_one_and_none_is_zero(seed, centring, unknown, outside):
    table = target_table(Vocabulary(WORDS), vectors(seed, outside=outside), centring, unknown, seed)
    assert table.shape == (6, 6)
    assert table.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(table[-1], 6**-0.5, rtol=1e-6)


def test_target_vectors_by_hand():
    known = vectors(1)
    table = target_table(Vocabulary(WORDS), known, "plain", "mean", 1)
    np.testing.assert_allclose(table[1:5], [unit(known[word]) for word in WORDS[1:]], rtol=1e-5)
    rare = unit(known[b"rare0"]) + unit(known[b"rare1"])
    np.testing.assert_allclose(table[0], unit(rare), rtol=1e-5)
    np.testing.assert_allclose(target_table(Vocabulary(WORDS), known, "plain", "negated", 1)[0], -table[0])
    centred = target_table(Vocabulary(WORDS), known, "centred", "mean", 1)
    middle = np.mean([known[word] for word in WORDS[1:]], axis=0)
    np.testing.assert_allclose(centred[3], unit(known[b"c"] - middle), rtol=1e-4)
    # Without words outside the vocabulary, its two least frequent words are used instead.
    rare = unit(table[3] + table[4])
    inside = {word: known[word] for word in WORDS[1:]}
    np.testing.assert_allclose(target_table(Vocabulary(WORDS), inside, "plain", "mean", 1)[0], rare, rtol=1e-5)


def test_random_directions_do_not_depend_on_the_vectors():
    first, second = (target_table(Vocabulary(WORDS), vectors(seed), "random", "mean", 7) for seed in (1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, target_table(Vocabulary(WORDS), vectors(1), "random", "mean", 8))


def changed(**changes):
    return {**vectors(1), **{name.encode(): np.array(row, np.float32) for name, row in changes.items()}}


@pytest.mark.parametrize(
    ("words", "known", "message"),
    [
        (WORDS[:1], vectors(1), "no target word has a vector"),
        (WORDS[:2], vectors(1), "a is the only target word with a vector"),
        (WORDS, changed(b=[0] * 6), "the vector of the target word b is zero"),
        (WORDS, changed(c=[1, np.nan, 0, 0, 0, 0]), "the vector of the target word c is not finite"),
        (WORDS, changed(c=[1, np.inf, 0, 0, 0, 0]), "the vector of the target word c is not finite"),
        (WORDS, changed(rare0=[np.nan] * 6), "the vector of the target word rare0 is not finite"),
        (WORDS, changed(b=[1] * 6, d=[1] * 6), "the target words b and d have the same vector"),
    ],
)
def test_invalid_and_equal_vectors_are_refused(words, known, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        target_table(Vocabulary(words), known, "plain", "mean", 1)


def test_a_word_at_the_mean_has_no_direction():
    known = {b"a": np.array([1, 2, 3, 4]), b"b": np.array([3, 2, 1, 0]), b"c": np.array([2, 2, 2, 2])}
    known = {word: row.astype(np.float32) for word, row in known.items()}
    with pytest.raises(ValueError, match="word c is zero"):
        target_table(Vocabulary(WORDS[:4]), known, "centred", "mean", 1)
    with pytest.raises(KeyError):
        target_table(Vocabulary(WORDS), known, "plain", "mean", 1)
