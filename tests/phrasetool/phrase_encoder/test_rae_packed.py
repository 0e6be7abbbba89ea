import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.phrase_encoder.parameters import RaeParameters
from phrasetool.phrase_encoder.rae_kernels import PackedRae, RaeEncoder
from phrasetool.phrases import Phrases
from tests import naive
from tests.conftest import random_parameters

VOCABULARY = 12
PHRASES = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=9), min_size=1, max_size=15)
DIMENSIONS = [1, 2, 5, 10, 16, 50]
PACKED = {n: PackedRae(random_parameters(VOCABULARY, n, n)) for n in DIMENSIONS}


def encode(packed, lists, unit=True, **options):
    return RaeEncoder(packed, **options).encode(Phrases.from_lists(lists), unit)


def agree_with_naive(n, lists):
    parameters = random_parameters(VOCABULARY, n, n)
    encoded, transformed = encode(PACKED[n], lists, unit=False)
    for phrase, vector, transformed_vector in zip(lists, encoded, transformed, strict=True):
        expected = naive.rae(phrase, parameters)[0]
        np.testing.assert_allclose(vector, expected, atol=1e-5)
        if phrase:
            np.testing.assert_allclose(transformed_vector, naive.transform(expected, parameters), atol=2e-5)


def clear_choice(phrase, parameters):
    """Return whether every merge of the phrase is decided by more than rounding errors."""
    p = {name: array.astype(np.float64) for name, array in parameters.arrays().items()}
    items = [p["word_vectors"][word] for word in phrase]
    while len(items) > 2:
        merges = []
        for j in range(len(items) - 1):
            children = np.concatenate([items[j], items[j + 1]])
            parent = np.tanh(p["compose"] @ children + p["compose_bias"])
            again = np.tanh(p["reconstruct"] @ parent + p["reconstruct_bias"])
            same = np.array_equal(children, merges[0][3]) if merges else False
            merges.append((0.5 * float(((children - again) ** 2).sum()), j, parent, children, same))
        merges.sort(key=lambda item: item[:2])
        first, second = merges[:2]
        # Two equal pairs are an exact tie in any arithmetic; the leftmost one is merged.
        if second[0] - first[0] < 1e-4 and not np.array_equal(first[3], second[3]):
            return False
        items[first[1] : first[1] + 2] = [first[2]]
    return True


@pytest.mark.parametrize("n", DIMENSIONS)
@settings(max_examples=12)
@given(lists=PHRASES)
def test_agrees_with_naive(n, lists):
    parameters = random_parameters(VOCABULARY, n, n)
    agree_with_naive(n, [phrase for phrase in lists if clear_choice(phrase, parameters)])


def test_long_phrases_agree_with_naive():
    rng = np.random.default_rng(7)
    lists = [rng.integers(0, VOCABULARY, length).tolist() for length in (40, 41, 64, 100)]
    parameters = random_parameters(VOCABULARY, 10, 10)
    clear = [phrase for phrase in lists if clear_choice(phrase, parameters)]
    assert clear
    agree_with_naive(10, clear)


def test_tie_takes_the_leftmost_pair():
    # Both pairs (1, 1) are equal; the vector shows which one was merged: 1 1 1 becomes (1 1) 1.
    parameters = random_parameters(VOCABULARY, 10, 10)
    vector = encode(PACKED[10], [[1, 1, 1]], unit=False)[0][0]
    assert naive.rae([1, 1, 1], parameters)[2] == [0, 0]
    np.testing.assert_allclose(vector, naive.rae([1, 1, 1], parameters)[0], atol=1e-5)


@pytest.mark.parametrize("n", [5, 10, 50])
@settings(max_examples=15)
@given(
    lists=PHRASES,
    capacity=st.sampled_from([1, 2, 7, 40, 1 << 16]),
    unit=st.booleans(),
    random=st.randoms(use_true_random=False),
)
def test_vectors_do_not_depend_on_the_rest_of_the_batch(n, lists, capacity, unit, random):
    together = encode(PACKED[n], lists, unit)
    alone = [encode(PACKED[n], [phrase], unit) for phrase in lists]
    order = list(range(len(lists)))
    random.shuffle(order)
    shuffled = encode(PACKED[n], [lists[i] for i in order], unit)
    small = RaeEncoder(PACKED[n], capacity)
    piecewise = small.encode(Phrases.from_lists(lists), unit)
    again = small.encode(Phrases.from_lists(lists), unit)
    for part in range(2):
        whole = together[part]
        assert whole.tobytes() == b"".join(vectors[part].tobytes() for vectors in alone)
        assert whole[order].tobytes() == shuffled[part].tobytes()
        assert whole.tobytes() == piecewise[part].tobytes() == again[part].tobytes()


def test_capacity_does_not_change_the_vectors():
    rng = np.random.default_rng(3)
    lists = [rng.integers(0, VOCABULARY, rng.integers(0, 45)).tolist() for _ in range(300)]
    expected = encode(PACKED[10], lists)
    for capacity in (1, 50, 400, 3000):
        encoder = RaeEncoder(PACKED[10], capacity)
        for _ in range(2):
            result = encoder.encode(Phrases.from_lists(lists))
            assert result[0].tobytes() == expected[0].tobytes()
            assert result[1].tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("unit", [False, True])
def test_phrase_without_words_is_zero(unit):
    encoded, transformed = encode(PACKED[10], [[], [3], [], []], unit)
    assert not encoded[[0, 2, 3]].any()
    assert not transformed[[0, 2, 3]].any()
    assert encoded[1].any()
    encoded, transformed = encode(PACKED[10], [], unit)
    assert encoded.shape == transformed.shape == (0, 10)


def test_unit_vectors():
    rng = np.random.default_rng(4)
    lists = [rng.integers(0, VOCABULARY, length % 9 + 1).tolist() for length in range(50)]
    raw, units = encode(PACKED[16], lists, unit=False), encode(PACKED[16], lists, unit=True)
    for part in range(2):
        np.testing.assert_allclose(np.linalg.norm(units[part], axis=1), 1, atol=1e-6)
        norms = np.linalg.norm(raw[part], axis=1, keepdims=True)
        np.testing.assert_allclose(units[part], raw[part] / norms, atol=1e-6)


def test_zero_word_vector_stays_zero():
    arrays = random_parameters(VOCABULARY, 10, 10).arrays()
    arrays["word_vectors"] = arrays["word_vectors"].copy()
    arrays["word_vectors"][3] = 0
    encoded, _ = encode(PackedRae(RaeParameters(**arrays)), [[3]])
    assert not encoded.any()


@pytest.mark.parametrize("word", [-1, VOCABULARY, 1 << 30])
def test_word_outside_the_vocabulary(word):
    with pytest.raises(ValueError, match="outside the vocabulary"):
        encode(PACKED[10], [[1, word]])
