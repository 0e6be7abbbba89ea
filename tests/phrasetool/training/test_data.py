import hashlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.training.data import (
    PhrasePairs,
    TextPairs,
    check_pairs,
    fingerprint,
    frequent_words,
    held_out,
    held_out_groups,
    held_out_rare_pairs,
    in_vocabulary,
    length_batches,
    log_shares,
    text_parts,
)
from phrasetool.vocabulary import Vocabulary
from tests.phrasetool.phrase_encoder.toy_language import vocabulary
from tests.phrasetool.translator.small_pairs import texts


def test_merging_adds_counts_and_keeps_the_order():
    sources, targets = [[1], [1, 2], [1], [3]], [[2, 3], [3], [2, 3], [2, 3]]
    pairs = Phrases.from_lists(sources), Phrases.from_lists(targets)
    merged = PhrasePairs(*pairs, np.array([1, 2, 4, 8]), vocabulary(b"f"), vocabulary(b"e")).merged()
    assert [phrase.tolist() for phrase in merged.sources] == [[1], [1, 2], [3]]
    assert merged.counts.tolist() == [5, 2, 8]


def repeated():
    return PhrasePairs(
        Phrases.from_lists([[1], [1, 2], [1], [3]]), Phrases.from_lists([[2, 3], [3], [4], [2, 3]]),
        np.array([1, 16, 4, 4]), vocabulary(b"f"), vocabulary(b"e"),
    )  # fmt: skip


def test_weights_are_powers_of_the_counts_with_mean_1():
    pairs = repeated()
    assert pairs.weights(0).tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(pairs.weights(1), np.array([1, 16, 4, 4]) / 6.25)
    np.testing.assert_allclose(pairs.weights(0.5), np.array([1, 4, 2, 2]) / 2.25)


def test_shares_count_the_pairs_that_hold_a_phrase():
    pairs = repeated()
    np.testing.assert_allclose(np.exp(log_shares(pairs.sources)), [1 / 2, 1 / 4, 1 / 2, 1 / 4])
    np.testing.assert_allclose(np.exp(log_shares(pairs.targets)), [1 / 2, 1 / 4, 1 / 4, 1 / 2])


def test_a_fingerprint_differs_when_a_count_does():
    pairs = repeated()
    assert replace(pairs, counts=pairs.counts + 1).fingerprint != pairs.fingerprint
    assert pairs.select(np.arange(4)).fingerprint == pairs.fingerprint


@given(st.integers(0, 2**32), st.integers(2, 40), st.floats(0.01, 0.5))
def test_held_out_pairs_are_rare_and_the_rest_has_every_word(seed, words, share):
    rng = np.random.default_rng(seed)
    sides = [Phrases.from_lists(rng.integers(0, words, (1000, 3)).tolist()) for _ in range(2)]
    pairs = PhrasePairs(*sides, rng.integers(1, 5, 1000), vocabulary(b"f"), vocabulary(b"e"))
    is_held_out = held_out_rare_pairs(pairs, share, seed)
    np.testing.assert_array_equal(is_held_out, held_out_rare_pairs(pairs, share, seed))
    assert is_held_out.sum() in ({0} if share * 1000 < 50 else {int(share * 1000), int((pairs.counts <= 2).sum())})
    assert (pairs.counts[is_held_out] <= np.median(pairs.counts)).all()
    rest = pairs.select(np.flatnonzero(~is_held_out))
    for before, after in ((pairs.sources, rest.sources), (pairs.targets, rest.targets)):
        assert set(before.words.tolist()) == set(after.words.tolist())


def test_words_of_one_pair_are_not_held_out():
    lists = [[i] for i in range(100)] + [[0, 1]] * 100
    sides = Phrases.from_lists(lists), Phrases.from_lists(lists)
    pairs = PhrasePairs(*sides, np.ones(200, np.int64), vocabulary(b"f"), vocabulary(b"e"))
    held_out_rows = np.flatnonzero(held_out_rare_pairs(pairs, 0.4, 1))
    assert len(held_out_rows) == 80
    assert set(held_out_rows.tolist()) <= {0, 1, *range(100, 200)}
    # No pairs are held out if they would be too few for an evaluation.
    assert not held_out_rare_pairs(pairs, 0.2, 1).any()
    assert not held_out_rare_pairs(pairs.select(np.arange(101)), 0.5, 1).any()


def vocabulary_of(words):
    return Vocabulary([b"<unk>", *words], [0] + [1] * len(words))


def pairs_with_equal_sides(total, equal):
    """Return pairs of two-word phrases, `equal` of them with equal sides, and vocabularies in different orders."""
    words = [b"w%d" % i for i in range(total)]
    sources = [[1 + i, 1] for i in range(total)]
    targets = [[total - i, total if i < equal else total - 1] for i in range(total)]
    ones = np.ones(total, np.int64)
    return PhrasePairs(
        Phrases.from_lists(sources), Phrases.from_lists(targets), ones, vocabulary_of(words), vocabulary_of(words[::-1])
    )


def problems_of(check, *arguments):
    problems = []
    check(*arguments, problems.append)
    return problems


@pytest.mark.parametrize(("total", "equal"), [(15, 0), (20, 20), (99, 99), (100, 98), (2000, 1000)])
def test_pairs_that_can_be_learnt_from(total, equal):
    assert problems_of(check_pairs, "p", pairs_with_equal_sides(total, equal)) == []


def test_few_pairs():
    assert problems_of(check_pairs, "p", pairs_with_equal_sides(14, 0)) == [
        "p: 14 distinct phrase pairs to learn from, expected at least about 20"
    ]


@pytest.mark.parametrize(("total", "equal"), [(100, 99), (2000, 1001)])
def test_equal_sides(total, equal):
    assert problems_of(check_pairs, "p", pairs_with_equal_sides(total, equal)) == [
        f"p: {equal:,} of {total:,} pairs have the same phrase on both sides, expected phrases and their translations"
    ]


def test_the_vocabulary_is_the_frequent_words():
    words = [b"rare", b"often", b"<unk>", b"twice"]
    texts = Phrases.from_lists([[1, 0, 1], [2, 3, 1, 3]])
    vocabulary = frequent_words(texts, words, 2, 0)
    assert vocabulary.words == [b"<unk>", b"often", b"twice"]
    assert vocabulary.counts.tolist() == [2, 3, 2]
    assert frequent_words(texts, words, 1, 1).words == [b"<unk>", b"often"]
    assert frequent_words(texts, words, 1, 0).words == [b"<unk>", b"often", b"twice", b"rare"]
    assert [text.tolist() for text in in_vocabulary(texts, words, vocabulary)] == [[1, 0, 1], [0, 2, 1, 2]]
    assert len(frequent_words(Phrases.from_lists([[]]), [], 1, 0)) == 1


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1), st.integers(1, 9), st.integers(0, 99))
def test_batches_have_every_example_once_and_neighbouring_lengths(lengths, size, seed):
    first, second = np.array(lengths).T
    rng = np.random.default_rng(seed)
    batches = length_batches(rng.permutation(len(first)), [first, second], size, rng)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(first)))
    assert sorted(map(len, batches))[1:] == [size] * (len(batches) - 1)
    keys = [[(first[number], second[number]) for number in batch] for batch in batches]
    assert all(batch_keys == sorted(batch_keys) for batch_keys in keys)
    assert all(
        batch_keys[-1] <= next_keys[0]
        for batch_keys, next_keys in pairwise(sorted(keys, key=lambda batch_keys: (batch_keys[0], batch_keys[-1])))
    )


@given(st.lists(st.integers(1, 3), min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 4))
def test_each_pool_is_sorted_and_keeps_the_order_of_equal_lengths(lengths, size, pool):
    lengths = np.array(lengths)
    order = np.random.default_rng(len(lengths)).permutation(len(lengths))
    batches = length_batches(order, [lengths], size, np.random.default_rng(1), pool)
    naive = []
    for first in range(0, len(order), size * pool):
        part = sorted(order[first : first + size * pool].tolist(), key=lambda number: lengths[number])
        naive += [part[start : start + size] for start in range(0, len(part), size)]
    assert sorted(batch.tolist() for batch in batches) == sorted(naive)


def test_the_order_of_batches_is_drawn():
    lengths = np.arange(100)
    drawn = [
        [batch[0] for batch in length_batches(lengths, [lengths], 5, np.random.default_rng(seed))] for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] != sorted(drawn[0])


@given(st.lists(st.integers(0, 40), min_size=1, max_size=200), st.integers(1, 60), st.integers(0, 9))
def test_whole_groups_are_held_out(drawn, most, seed):
    _, groups = np.unique(drawn, return_inverse=True)
    is_held_out = held_out_groups(groups, np.random.default_rng(seed), most)
    inside, outside = set(groups[is_held_out].tolist()), set(groups[~is_held_out].tolist())
    assert inside
    assert not inside & outside
    assert len(inside) <= -(-len(set(drawn)) // 20)
    assert is_held_out.sum() <= min(most, len(drawn) // 2) or len(inside) == 1


def test_the_held_out_groups_are_drawn():
    groups = np.arange(400)
    masks = [held_out_groups(groups, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert masks[0].sum() == masks[2].sum() == 20
    assert (masks[0] == masks[1]).all()
    assert (masks[0] != masks[2]).any()
    assert held_out_groups(np.arange(100_000), np.random.default_rng(1)).sum() == 2000


def test_a_fingerprint_is_of_the_bytes_of_all_parts():
    numbers = np.arange(3)
    expected = hashlib.sha256(numbers.tobytes() + b"ab").hexdigest()[:16]
    assert fingerprint((numbers, b"a", b"b")) == expected
    texts = Phrases.from_lists([[1, 2], [3]])
    parts = list(text_parts([texts], [[b"x", b"y"]]))
    assert fingerprint(parts) == fingerprint((texts.offsets, texts.words, b"x\ny"))


def test_lengths_and_vocabularies():
    sources, targets = Phrases.from_lists([[0, 1], [1, 1, 1], [2]]), Phrases.from_lists([[0], [1], [1, 0, 2]])
    pairs = TextPairs(sources, targets, [b"a", b"b", b"c"], [b"x", b"y", b"z"], True)
    short = pairs.up_to(2)
    assert (len(short), short.escaped) == (1, True)
    assert len(pairs.up_to(3)) == 3
    with pytest.raises(ValueError, match="no pair has 0 words"):
        pairs.up_to(0)
    source = pairs.source_vocabulary(2, 0)
    assert source.words == [b"<unk>", b"b"]
    assert source.counts.tolist() == [2, 4]
    assert pairs.target_vocabulary(1, 2).words == [b"<unk>", b"x", b"y"]
    known = pairs.target_vocabulary(1, 0, {b"y", b"other"})
    assert known.words == [b"<unk>", b"y"]
    assert known.counts.tolist() == [3, 2]
    ids = pairs.in_ids(source, known)
    assert [s.tolist() for s in ids.sources] == [[0, 1], [1, 1, 1], [0]]
    assert [t.tolist() for t in ids.targets] == [[0], [1], [1, 0, 0]]


@pytest.mark.parametrize("count", [4, 100, 3000])
def test_whole_groups_of_texts_are_held_out(count):
    pairs = texts(count, longest=3)
    train, development = held_out(pairs, 1)
    assert len(train) + len(development) == count
    assert 1 <= len(development) <= min(2000, max(count // 2, 1))
    sides = [{tuple(source.tolist()) for source in part.sources} for part in (train, development)]
    assert not sides[0] & sides[1]
    again = held_out(pairs, 1)[1]
    assert np.array_equal(again.sources.words, development.sources.words)
    if count == 3000:
        assert abs(len(sides[1]) - (len(sides[0]) + len(sides[1])) / 20) < 2
        other_development = held_out(pairs, 2)[1]
        assert not np.array_equal(other_development.sources.words, development.sources.words)


def test_one_source_alone_cannot_be_held_out():
    pairs = texts(1)
    with pytest.raises(ValueError, match="the same source"):
        held_out(pairs.select(np.zeros(5, np.int64)), 1)
