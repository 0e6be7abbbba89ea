from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.nn.positions import LONGEST
from phrasetool.phrase_encoder.kinds import MeanMax
from phrasetool.phrase_encoder.mean_kernels import MeanMaxPhraseEncoder, PackedMeanMax
from phrasetool.phrase_encoder.parameters import MeanMaxParameters
from phrasetool.phrases import Phrases
from tests import naive

VOCABULARY = 12
PHRASES = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=9), min_size=1, max_size=15)
# Word units, hidden units, heads, feed-forward units (0: as many as hidden units).
SIZES = [(2, 1, 1, 0), (5, 6, 3, 7), (3, 10, 1, 1), (8, 12, 2, 0), (7, 32, 4, 20), (16, 64, 8, 100), (9, 24, 24, 0)]


def random_parameters(w, m, d, seed=0, attention=1.0):
    rng = np.random.default_rng(seed)
    d = d or m

    def normal(*shape, scale=1.0):
        return rng.normal(0, scale, shape).astype(np.float32)

    shapes = {"query": (m, w), "key": (m, w), "value": (m, w), "widen": (d, m), "narrow": (m, d)}
    matrices = {name: normal(*shape, scale=shape[1] ** -0.5) for name, shape in shapes.items()}
    matrices["query"] *= np.float32(attention)
    return MeanMaxParameters(
        word_vectors=normal(VOCABULARY, w), end=normal(w), **matrices,
        attention_gain=1 + normal(m, scale=0.3), attention_bias=normal(m, scale=0.3),
        widen_bias=normal(d, scale=0.3), narrow_bias=normal(m, scale=0.3),
        hidden_gain=1 + normal(m, scale=0.3), hidden_bias=normal(m, scale=0.3),
        transform=normal(2 * m, 2 * m, scale=(2 * m) ** -0.5), transform_bias=normal(2 * m, scale=0.3),
    )  # fmt: skip


PARAMETERS = {sizes: random_parameters(sizes[0], sizes[1], sizes[3], seed=sum(sizes)) for sizes in SIZES}
PACKED = {sizes: PackedMeanMax(parameters, sizes[2]) for sizes, parameters in PARAMETERS.items()}
MIDDLE = SIZES[4]


def encode(packed, lists, unit=True):
    return packed.encoder(1 << 16).encode(Phrases.from_lists(lists), unit)


def agree_with_naive(packed, parameters, lists, atol):
    encoded, transformed = encode(packed, lists, unit=False)
    assert encoded.dtype == transformed.dtype == np.float32
    assert encoded.shape == transformed.shape == (len(lists), parameters.dimension)
    for phrase, vector, transformed_vector in zip(lists, encoded, transformed, strict=True):
        expected = naive.mean_max_phrase(phrase, parameters, packed.heads)
        np.testing.assert_allclose(vector, expected, atol=atol)
        if phrase:
            np.testing.assert_allclose(transformed_vector, naive.transform(expected, parameters), atol=atol)


@pytest.mark.parametrize("sizes", SIZES)
@settings(max_examples=8)
@given(lists=PHRASES)
def test_agrees_with_naive(sizes, lists):
    agree_with_naive(PACKED[sizes], PARAMETERS[sizes], lists, atol=3e-5)


def test_long_phrases_agree_with_naive():
    rng = np.random.default_rng(7)
    lists = [rng.integers(0, VOCABULARY, length).tolist() for length in (30, 1, 41, 41, 64)]
    agree_with_naive(PACKED[MIDDLE], PARAMETERS[MIDDLE], lists, atol=3e-5)


def test_large_attention_scores_agree_with_naive():
    # Scores in the hundreds: nearly all weights are zero or one, and exp would overflow if the highest score were not
    # subtracted.
    w, m, heads, d = MIDDLE
    parameters = random_parameters(w, m, d, seed=3, attention=200.0)
    rng = np.random.default_rng(8)
    lists = [rng.integers(0, VOCABULARY, rng.integers(1, 8)).tolist() for _ in range(40)]
    agree_with_naive(PackedMeanMax(parameters, heads), parameters, lists, atol=2e-3)


def test_order_of_words_and_end_of_phrase_matter():
    vectors = encode(PACKED[MIDDLE], [[1, 2], [2, 1], [1], [1, 1]])[0]
    assert len({vector.tobytes() for vector in vectors}) == 4


@pytest.mark.parametrize("sizes", [SIZES[1], SIZES[4], SIZES[6]])
@settings(max_examples=15)
@given(
    lists=PHRASES,
    capacity=st.sampled_from([0, 7, 40, 1 << 16]),
    batch=st.sampled_from([1, 2, 5, 1 << 10]),
    unit=st.booleans(),
    random=st.randoms(use_true_random=False),
)
def test_vectors_do_not_depend_on_the_rest_of_the_batch(sizes, lists, capacity, batch, unit, random):
    packed = PACKED[sizes]
    together = encode(packed, lists, unit)
    alone = [encode(packed, [phrase], unit) for phrase in lists]
    order = list(range(len(lists)))
    random.shuffle(order)
    shuffled = encode(packed, [lists[i] for i in order], unit)
    small = packed.encoder(capacity)
    small.batch_positions = batch
    piecewise = small.encode(Phrases.from_lists(lists), unit)
    again = small.encode(Phrases.from_lists(lists), unit)
    for part in range(2):
        whole = together[part]
        assert whole.tobytes() == b"".join(vectors[part].tobytes() for vectors in alone)
        assert whole[order].tobytes() == shuffled[part].tobytes()
        assert whole.tobytes() == piecewise[part].tobytes() == again[part].tobytes()


def prefixes(rng, count):
    """Return phrases as in a table: sorted, so that neighbours share prefixes, with two long ones among them."""
    lists = sorted(rng.integers(0, VOCABULARY, rng.integers(0, 8)).tolist() for _ in range(count))
    for row in (count // 3, count // 2):
        lists[row] = rng.integers(0, VOCABULARY, 60).tolist()
    return lists


def test_shared_prefixes_do_not_change_the_vectors():
    lists = prefixes(np.random.default_rng(5), 400)
    together = encode(PACKED[MIDDLE], lists)
    alone = [encode(PACKED[MIDDLE], [phrase]) for phrase in lists]
    for part in range(2):
        assert together[part].tobytes() == b"".join(vectors[part].tobytes() for vectors in alone)


def test_words_evicted_from_the_cache_do_not_change_the_vectors(monkeypatch):
    monkeypatch.setattr(MeanMaxPhraseEncoder, "batch_positions", LONGEST + 1)
    rng = np.random.default_rng(3)
    parameters = random_parameters(6, 8, 0)
    wide = {**parameters.arrays(), "word_vectors": rng.normal(size=(5000, 6)).astype(np.float32)}
    packed = PackedMeanMax(MeanMaxParameters(**wide), 2)
    lists = [rng.integers(0, 5000, 7).tolist() for _ in range(600)]
    expected = encode(packed, lists)
    encoder = packed.encoder(0)
    assert len(encoder._products) == LONGEST + 1
    for _ in range(2):
        result = encoder.encode(Phrases.from_lists(lists))
        assert result[0].tobytes() == expected[0].tobytes()
        assert result[1].tobytes() == expected[1].tobytes()


def test_threads_share_the_parameters():
    lists = prefixes(np.random.default_rng(6), 3000)
    expected = encode(PACKED[MIDDLE], lists)
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda _: encode(PACKED[MIDDLE], lists), range(4)):
            assert result[0].tobytes() == expected[0].tobytes()
            assert result[1].tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("unit", [False, True])
def test_phrase_without_words_is_zero(unit):
    packed = PACKED[MIDDLE]
    encoded, transformed = encode(packed, [[], [3], [], []], unit)
    assert not encoded[[0, 2, 3]].any()
    assert not transformed[[0, 2, 3]].any()
    assert encoded[1].any()
    encoded, transformed = encode(packed, [], unit)
    assert encoded.shape == transformed.shape == (0, packed.dimension)


def test_unit_vectors():
    lists = prefixes(np.random.default_rng(4), 60)
    raw, units = encode(PACKED[MIDDLE], lists, unit=False), encode(PACKED[MIDDLE], lists, unit=True)
    words = np.array([len(phrase) > 0 for phrase in lists])
    for part in range(2):
        norms = np.linalg.norm(raw[part], axis=1, keepdims=True)
        np.testing.assert_allclose(np.linalg.norm(units[part], axis=1), words, atol=1e-6)
        np.testing.assert_allclose(units[part], raw[part] / np.where(norms > 0, norms, 1), atol=1e-6)


@pytest.mark.parametrize("word", [-1, VOCABULARY, 1 << 30])
def test_word_outside_the_vocabulary(word):
    with pytest.raises(ValueError, match="outside the vocabulary"):
        encode(PACKED[MIDDLE], [[1, word]])


def test_longest_phrase():
    parameters = random_parameters(2, 2, 0)
    packed = PackedMeanMax(parameters, 1)
    rng = np.random.default_rng(2)
    lists = [[3], rng.integers(0, VOCABULARY, LONGEST).tolist(), [4]]
    encoded, _ = encode(packed, lists, unit=False)
    assert np.isfinite(encoded).all()
    assert encoded[1].tobytes() == encode(packed, lists[1:2], unit=False)[0].tobytes()
    with pytest.raises(ValueError, match=f"a text of {LONGEST + 1} words is longer than the {LONGEST}"):
        encode(packed, [[1], [1] * (LONGEST + 1)])


@pytest.mark.parametrize("heads", [0, 3, -1])
def test_heads_must_divide_the_hidden_units(heads):
    with pytest.raises(ValueError, match="cannot share 32 hidden units"):
        PackedMeanMax(PARAMETERS[MIDDLE], heads)


@pytest.mark.parametrize("heads", [1, 4])
def test_agrees_with_the_module_for_training(heads):
    w, _, _, d = MIDDLE
    kind = MeanMax(word_units=w, heads=heads, feed_forward=d)
    lists = prefixes(np.random.default_rng(9), 50)
    phrases = Phrases.from_lists(lists)
    module = kind.module(PARAMETERS[MIDDLE])
    module.train(False)
    expected, _ = module(phrases)
    encoded, transformed = kind.pack(PARAMETERS[MIDDLE]).encoder(1 << 16).encode(phrases, unit=False)
    np.testing.assert_allclose(encoded, expected.detach().numpy(), atol=2e-5)
    words = np.array([len(phrase) > 0 for phrase in lists])
    np.testing.assert_allclose(transformed[words], module.transformed(expected).detach().numpy()[words], atol=2e-5)
