import numpy as np
import pytest
import torch

from phrasetool.encoders.autoencoders.architecture import ARCHITECTURES, TextArchitecture
from phrasetool.encoders.autoencoders.autoencoder import Autoencoder, most_words
from phrasetool.encoders.autoencoders.softmax_output import softmax_cross_entropy
from phrasetool.phrases import Phrases
from tests import naive

V = 12
every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other cost more than these sizes are worth."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def architecture(name, m=8):
    return TextArchitecture(name, 6, m, 2, 5)


def arrays_of(name, seed=0):
    """Arrays with nothing left at its start value; a loud decoder, so that greedy texts differ and end."""
    rng = np.random.default_rng(seed)
    arrays = architecture(name).initial(V, rng)
    arrays = {key: a + rng.normal(0, 0.3, a.shape).astype(np.float32) for key, a in arrays.items()}
    arrays["output"] *= 3
    return arrays


def some_texts(count=12, longest=7, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, V, length).tolist() for length in rng.integers(1, longest, count)]


@every_architecture
def test_arrays_are_those_of_the_module(name):
    arrays = arrays_of(name)
    module = Autoencoder(architecture(name), arrays)
    assert {key: tuple(value.shape) for key, value in module.named_parameters()} == architecture(name).shapes(V)
    again = module.numpy()
    assert list(again) == list(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(again[key], array)


@every_architecture
def test_vectors_equal_the_oracle(name):
    arrays, lists = arrays_of(name), some_texts()
    slow = naive.TextAutoencoder(architecture(name), arrays)
    vectors = Autoencoder(architecture(name), arrays).encode(Phrases.from_lists(lists))
    assert vectors.shape == (len(lists), architecture(name).dimension)
    for text, vector in zip(lists, vectors.detach().numpy(), strict=True):
        np.testing.assert_allclose(vector, slow.encode(text), atol=3e-5)


@every_architecture
def test_the_loss_equals_the_oracle(name):
    arrays, lists = arrays_of(name), some_texts()
    slow = naive.TextAutoencoder(architecture(name), arrays)
    loss, count = Autoencoder(architecture(name), arrays).loss(Phrases.from_lists(lists))
    assert count == sum(len(text) + 1 for text in lists)
    assert loss.item() == pytest.approx(sum(slow.loss(text) for text in lists), rel=1e-5)


@every_architecture
def test_greedy_texts_equal_those_of_the_oracle(name):
    arrays, lists = arrays_of(name), some_texts(20)
    slow = naive.TextAutoencoder(architecture(name), arrays)
    module, texts = Autoencoder(architecture(name), arrays), Phrases.from_lists(lists)
    written = module.reconstruct(module.encode(texts).detach(), most_words(texts.lengths))
    expected = [slow.reconstruct(text, len(text) * 3 // 2) for text in lists]
    assert [text.tolist() for text in written] == expected
    assert len({tuple(text) for text in expected}) > 2


@every_architecture
def test_one_step_after_another_equals_all_at_once(name):
    arrays, (text,) = arrays_of(name), some_texts(1, 30, 4)
    module = Autoencoder(architecture(name), arrays)
    vector = module.encode(Phrases.from_lists([text])).detach()
    start = module._parts(vector)[1]
    inputs = torch.randn(len(text), 6)
    whole = module.decoder.all_steps(inputs, start, [(1, len(text))])
    state = module.decoder.begin(start, len(text))
    steps = [module.decoder.step(state, inputs[t : t + 1]) for t in range(len(text))]
    torch.testing.assert_close(torch.cat(steps), whole, atol=1e-5, rtol=1e-5)


@every_architecture
def test_gradients_equal_finite_differences(name):
    module = Autoencoder(architecture(name), arrays_of(name)).double()
    texts = Phrases.from_lists(some_texts(5))
    module.loss(texts)[0].backward()
    rng = np.random.default_rng(5)
    for key, parameter in module.named_parameters():
        flat = parameter.data.view(-1)
        for i in rng.integers(0, len(flat), 2).tolist():
            kept, values = flat[i].item(), []
            for step in (1e-6, -1e-6):
                flat[i] = kept + step
                values.append(module.loss(texts)[0].item())
            flat[i] = kept
            expected = (values[0] - values[1]) / 2e-6
            assert parameter.grad.view(-1)[i].item() == pytest.approx(expected, rel=1e-4, abs=1e-5), key


@every_architecture
def test_texts_without_words(name):
    module = Autoencoder(architecture(name), arrays_of(name))
    texts = Phrases.from_lists([[], [3, 4], []])
    vectors = module.encode(texts).detach()
    assert vectors.isfinite().all()
    written = module.reconstruct(vectors, most_words(texts.lengths))
    assert [len(text) for text in written][::2] == [0, 0]
    assert len(module.reconstruct(vectors[:1], np.zeros(1, np.int64))) == 1


@every_architecture
def test_no_text_is_longer_than_it_may_be_and_none_holds_the_end(name):
    arrays = arrays_of(name)
    arrays["output_bias"][-1] = -100  # never ends by itself
    module, texts = Autoencoder(architecture(name), arrays), Phrases.from_lists(some_texts())
    written = module.reconstruct(module.encode(texts).detach(), most_words(texts.lengths))
    assert written.lengths.tolist() == (texts.lengths * 3 // 2).tolist()
    arrays["output_bias"][-1] = 100  # ends at once
    module = Autoencoder(architecture(name), arrays)
    written = module.reconstruct(module.encode(texts).detach(), most_words(texts.lengths))
    assert written.lengths.sum() == 0
    assert len(written) == len(texts)


def test_dropout_depends_on_the_seed_alone():
    texts = Phrases.from_lists(some_texts())
    for name in ARCHITECTURES:
        losses = []
        for seed in (3, 3, 4):
            module = Autoencoder(architecture(name), arrays_of(name), dropout=0.3)
            module.seed_dropout(seed)
            losses.append(module.loss(texts)[0].item())
        assert losses[0] == losses[1] != losses[2]
        still = module.eval().loss(texts)[0].item()
        assert still == Autoencoder(architecture(name), arrays_of(name)).loss(texts)[0].item() != losses[0]


@pytest.mark.parametrize("rows", [1, 256, 300])
def test_the_cross_entropy_equals_torchs(rows):
    torch.manual_seed(rows)
    wanted = torch.randint(0, 40, (rows,))
    results = []
    for own in (True, False):
        torch.manual_seed(1)
        hidden, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((rows, 9), (40, 9), (40,)))
        if own:
            loss = softmax_cross_entropy(hidden, weight, bias, wanted)
        else:
            scores = torch.nn.functional.linear(hidden, weight, bias)
            loss = torch.nn.functional.cross_entropy(scores, wanted, reduction="sum")
        (loss / 7).backward()
        results.append((loss.detach(), hidden.grad, weight.grad, bias.grad))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_the_cross_entropy_of_far_apart_scores_is_finite():
    hidden = torch.tensor([[1000.0], [-1000.0]], requires_grad=True)
    loss = softmax_cross_entropy(hidden, torch.tensor([[1.0], [-1.0]]), torch.zeros(2), torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == 2000
    assert hidden.grad.flatten().tolist() == [0, -2]


def test_bfloat16_products_are_near():
    texts = Phrases.from_lists(some_texts())
    gradients, losses = [], []
    for precision in ("float32", "bfloat16"):
        module = Autoencoder(architecture("mean-max"), arrays_of("mean-max"), precision=precision)
        loss, _ = module.loss(texts)
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in module.parameters()]))
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert losses[0] != losses[1]
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.999


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "transformer"}, "expected one of mean-max, mean, max, lstm-mean-max, lstm"),
        ({"heads": 3}, "3 heads cannot share 8 hidden units; heads can be 1, 2, 4, 8"),
        ({"name": "lstm", "hidden": 7}, "hidden is 7, expected an even number"),
        ({"word_units": 0}, "word_units is 0, expected at least 2"),
        ({"feed_forward": 0}, "feed_forward is 0, expected at least 1"),
    ],
)
def test_bad_dimensions_are_refused(changes, message):
    given = {"name": "mean-max", "word_units": 6, "hidden": 8, "heads": 2, "feed_forward": 5, **changes}
    with pytest.raises(ValueError, match=message):
        TextArchitecture(**given)


def test_what_is_pooled_has_the_same_size_everywhere():
    sizes = {name: architecture(name).dimension for name in ARCHITECTURES}
    assert sizes == {"mean-max": 16, "mean": 8, "max": 8, "lstm-mean-max": 32, "lstm": 16}


def test_start_values():
    arrays = architecture("lstm-mean-max", m=40).initial(1000, np.random.default_rng(0))
    assert np.abs(arrays["output"]).max() == pytest.approx((6 / 1041) ** 0.5, rel=0.01)
    assert np.square(arrays["words"]).mean() == pytest.approx(1, rel=0.05)
    assert arrays["decoder.bias_ih_l0"].reshape(4, 40).mean(1).tolist() == [0, 1, 0, 0]
    assert (arrays["gated_gain"] == 1).all()
    assert not arrays["output_bias"].any()
