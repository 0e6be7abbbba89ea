import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.nn.positions import LONGEST
from phrasetool.phrase_encoder.encoder import encoder_kind
from phrasetool.phrase_encoder.networks import MeanMaxEncoder
from phrasetool.phrases import Phrases
from tests import naive

V = 20


def make(w=6, m=8, heads=2, d=5, seed=0, dropout=0.0):
    """Return parameters that all differ from their initial values, so that every parameter matters."""
    kind = encoder_kind("mean-max", {"word_units": w, "heads": heads, "feed_forward": d, "dropout": dropout})
    rng = np.random.default_rng(seed)
    start = kind.initial(rng.normal(0, 0.5, (V, w)).astype(np.float32), 2 * m, "normal", rng)
    arrays = {name: a + rng.normal(0, 0.2, a.shape).astype(np.float32) for name, a in start.arrays().items()}
    return kind.parameters(arrays)


def some_phrases(count=40, longest=9, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, V, length).tolist() for length in rng.integers(0, longest, count)]


@pytest.mark.parametrize(("w", "m", "heads"), [(6, 8, 2), (5, 4, 1), (8, 12, 4)])
def test_vectors_equal_the_oracle(w, m, heads):
    parameters, lists = make(w, m, heads), some_phrases()
    vectors, errors = MeanMaxEncoder(parameters, heads, 0.0)(Phrases.from_lists(lists))
    assert vectors.shape == (len(lists), 2 * m)
    for phrase, vector in zip(lists, vectors.detach().numpy(), strict=True):
        np.testing.assert_allclose(vector, naive.mean_max_phrase(phrase, parameters, heads), atol=2e-5)
    assert errors.tolist() == [0.0] * len(lists)


def test_the_transformation_equals_the_oracle():
    parameters = make()
    module = MeanMaxEncoder(parameters, 2, 0.0)
    vectors = torch.randn(3, 16)
    for row, transformed in zip(vectors.numpy(), module.transformed(vectors).detach().numpy(), strict=True):
        np.testing.assert_allclose(transformed, naive.transform(row.astype(float), parameters), atol=1e-5)


def test_fixed_layers_start_centred_and_get_no_gradient():
    rng = np.random.default_rng(0)
    words = rng.normal(0.3, 0.3, (V, 6)).astype(np.float32)
    offsets = {}
    for layers in ("trained", "fixed"):
        kind = encoder_kind("mean-max", {"word_units": 6, "heads": 2, "layers": layers})
        module = kind.module(kind.initial(words, 16, "normal", np.random.default_rng(1)))
        lists = [rng.integers(0, V, length).tolist() for length in rng.integers(1, 6, 2000)]
        vectors, _ = module(Phrases.from_lists(lists))
        highest, mean = vectors.detach().numpy().mean(0).reshape(2, 8)
        offsets[layers] = np.abs(highest + mean).max()
        learning = [parameter for group in module.groups().values() for parameter in group]
        assert {id(p) for p in learning} == {id(p) for p in module.parameters() if p.requires_grad}
        assert bool(module.groups()["rec"]) is (layers == "trained")
        vectors.sum().backward()
        assert module.word_vectors.grad is not None
        assert (module.block.widen.grad is None) is (layers == "fixed")
    assert offsets["fixed"] < 0.1 < offsets["trained"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, V - 1), max_size=6), max_size=8), st.randoms())
def test_a_vector_does_not_depend_on_the_rest_of_the_batch(lists, random):
    module = MeanMaxEncoder(make(), 2, 0.0)
    together = module(Phrases.from_lists(lists))[0]
    assert together.shape == (len(lists), 16)
    for i in random.sample(range(len(lists)), min(3, len(lists))):
        alone = module(Phrases.from_lists([lists[i]]))[0][0]
        torch.testing.assert_close(together[i], alone, atol=1e-5, rtol=1e-5)


def test_phrases_without_words_are_zero_and_learn_nothing():
    module = MeanMaxEncoder(make(), 2, 0.0)
    vectors, _ = module(Phrases.from_lists([[], [1], []]))
    assert vectors[0].abs().sum() == vectors[2].abs().sum() == 0
    assert vectors[1].abs().sum() > 0
    assert module(Phrases.from_lists([[], []]))[0].abs().sum() == 0


def test_gradients_equal_finite_differences():
    module = MeanMaxEncoder(make(), 2, 0.0).double()
    phrases = Phrases.from_lists(some_phrases(12, 5))
    weights = torch.randn(2, 12, 16, dtype=torch.float64)

    def value():
        vectors, _ = module(phrases)
        return (vectors * weights[0] + module.transformed(vectors) * weights[1]).sum()

    value().backward()
    rng = np.random.default_rng(5)
    for name, parameter in module.named_parameters():
        flat = parameter.data.view(-1)
        for i in rng.integers(0, len(flat), 6).tolist():
            kept, values = flat[i].item(), []
            for step in (1e-6, -1e-6):
                flat[i] = kept + step
                values.append(value().item())
            flat[i] = kept
            expected = (values[0] - values[1]) / 2e-6
            assert parameter.grad.view(-1)[i].item() == pytest.approx(expected, rel=1e-4, abs=1e-5), name


def test_a_phrase_that_is_too_long_is_refused():
    module = MeanMaxEncoder(make(), 2, 0.0)
    assert module(Phrases.from_lists([[1] * LONGEST]))[0].isfinite().all()
    with pytest.raises(ValueError, match="a text of 600 words is longer than the 511 that the model can encode"):
        module(Phrases.from_lists([[1], [1] * 600]))


def test_dropout_depends_on_the_seed_alone():
    phrases = Phrases.from_lists(some_phrases())
    first, second = (MeanMaxEncoder(make(), 2, 0.5) for _ in range(2))
    first.seed_dropout(7)
    drawn = [first(phrases)[0], first(phrases)[0]]
    second.seed_dropout(7)
    torch.manual_seed(99)
    first(phrases)
    assert torch.equal(second(phrases)[0], drawn[0])
    assert torch.equal(second(phrases)[0], drawn[1])
    assert not torch.equal(*drawn)
    second.seed_dropout(8)
    assert not torch.equal(second(phrases)[0], drawn[0])


def test_dropout_is_off_when_not_training():
    phrases = Phrases.from_lists(some_phrases())
    with_dropout = MeanMaxEncoder(make(), 2, 0.5).eval()
    assert torch.equal(with_dropout(phrases)[0], MeanMaxEncoder(make(), 2, 0.0)(phrases)[0])


def test_every_parameter_is_in_one_group_and_comes_back():
    parameters = make()
    module = MeanMaxEncoder(parameters, 2, 0.1)
    grouped = [parameter for group in module.groups().values() for parameter in group]
    assert len(grouped) == len(parameters.arrays()) == len(set(map(id, grouped)))
    assert set(map(id, grouped)) == set(map(id, module.parameters()))
    assert module.groups().keys() == {"words", "rec", "sem"}
    for name, array in module.numpy().arrays().items():
        np.testing.assert_array_equal(array, parameters.arrays()[name])


@pytest.mark.requires_cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_equals_cpu():
    phrases = Phrases.from_lists(some_phrases())
    module = MeanMaxEncoder(make(), 2, 0.0)
    on_cpu = module(phrases)[0].detach()
    torch.testing.assert_close(module.cuda()(phrases)[0].cpu(), on_cpu, atol=1e-4, rtol=1e-4)
