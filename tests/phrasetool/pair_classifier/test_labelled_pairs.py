import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from phrasetool.pair_classifier.labelled_pairs import (
    KnownTranslations,
    batch_negatives,
    contained_pairs,
    containment_negatives,
    encoded_logits,
    epoch_batches,
    random_pairs,
)
from phrasetool.phrases import Phrases
from tests.parallel_models import WORDS, random_classifier, toy_pairs

# Short texts, so that some are equal.
TEXTS = toy_pairs(60, longest=2)


def true_pairs():
    return {(s.tobytes(), t.tobytes()) for s, t in zip(TEXTS.sources, TEXTS.targets, strict=True)}


def test_random_negatives_are_wrong_and_five_per_pair():
    labelled = random_pairs(TEXTS, 5, 1)
    for row, column, parallel in zip(labelled.rows, labelled.columns, labelled.parallel, strict=True):
        pair = TEXTS.sources[row].tobytes(), labelled.targets[column].tobytes()
        assert (pair in true_pairs()) == parallel
    assert labelled.parallel.sum() == 60
    assert np.bincount(labelled.rows).tolist() == [6] * 60
    assert np.array_equal(random_pairs(TEXTS, 5, 1).columns, labelled.columns)
    assert not np.array_equal(random_pairs(TEXTS, 5, 2).columns, labelled.columns)


def test_contained_negatives_are_wrong():
    labelled = contained_pairs(TEXTS, 1)
    assert len(labelled) > 110
    for row, column in zip(labelled.rows[60:], labelled.columns[60:], strict=True):
        assert (TEXTS.sources[row].tobytes(), labelled.targets[column].tobytes()) not in true_pairs()
    assert labelled.parallel.tolist() == [True] * 60 + [False] * (len(labelled) - 60)


def test_logits_of_labelled_pairs():
    classifier, _ = random_classifier()
    labelled = contained_pairs(TEXTS, 1)
    logits, sources = encoded_logits(classifier, labelled)
    targets = classifier.sentence_vectors(1, labelled.targets, WORDS[1])
    for i in (0, 59, 60, 100):
        row, column = labelled.rows[i : i + 1], labelled.columns[i : i + 1]
        expected = classifier.pair_logits(
            sources[row], TEXTS.sources.lengths[row], targets[column], labelled.targets.lengths[column]
        )
        assert abs(logits[i] - expected[0]) < 1e-5
    assert np.array_equal(encoded_logits(classifier, labelled, sources)[0], logits)


TEXT = st.lists(st.integers(0, 2), max_size=2).map(tuple)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12), st.data())
def test_against_a_set_of_pairs(pairs, data):
    known = KnownTranslations(*(Phrases.from_lists(side) for side in zip(*pairs, strict=True)))
    batch = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=6)))
    expected = [[(pairs[i][0], pairs[j][1]) in set(pairs) for j in batch] for i in batch]
    assert known.among(batch).tolist() == expected
    assert known.translates(batch, batch[::-1]).tolist() == [
        (pairs[i][0], pairs[j][1]) in set(pairs) for i, j in zip(batch, batch[::-1], strict=True)
    ]
    target = data.draw(TEXT)
    for i in batch.tolist():
        assert known.has(i, np.array(target, np.int32)) == ((pairs[i][0], target) in set(pairs))


DRAWN_TEXTS = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 9), min_size=1, max_size=9)), min_size=1)


def is_cut(made, target):
    share = len(made) / len(target)
    positions = range(len(target) - len(made) + 1)
    return 0.35 <= share <= 0.65 and any(target[i : i + len(made)] == made for i in positions)


def is_joined(made, target, targets):
    return any(made in (target + other, other + target) for other in targets)


@given(DRAWN_TEXTS, st.integers(0, 100))
def test_negatives_contain_the_target_or_a_part_of_it_and_are_not_translations(pairs, seed):
    sources, targets = [[source] for source, _ in pairs], [target for _, target in pairs]
    phrases = Phrases.from_lists(targets)
    known = KnownTranslations(Phrases.from_lists(sources), phrases)
    negatives, pair_numbers = containment_negatives(phrases, np.arange(len(pairs)), known, np.random.default_rng(seed))
    assert len(negatives) == len(pair_numbers)
    for text, pair in zip(negatives, pair_numbers.tolist(), strict=True):
        words = text.tolist()
        assert is_cut(words, targets[pair]) or is_joined(words, targets[pair], targets)
        assert (pairs[pair][0], words) not in pairs


def test_half_of_the_negatives_are_cut_and_half_are_joined():
    rng = np.random.default_rng(1)
    targets = Phrases.from_lists([rng.integers(0, 1000, rng.integers(4, 20)).tolist() for _ in range(500)])
    known = KnownTranslations(Phrases.from_lists([[i] for i in range(500)]), targets)
    numbers = np.arange(500)
    negatives, pair_numbers = containment_negatives(targets, numbers, known, np.random.default_rng(2))
    assert pair_numbers.tolist() == numbers.tolist()
    shorter = negatives.lengths < targets.lengths
    assert 200 < shorter.sum() < 300
    shares = (negatives.lengths / targets.lengths)[shorter]
    assert shares.min() >= 0.35
    assert shares.max() <= 0.65
    assert abs(shares.mean() - 0.5) < 0.02
    repeated, _ = containment_negatives(targets, numbers, known, np.random.default_rng(2))
    assert np.array_equal(repeated.words, negatives.words)


def test_no_negatives_for_a_source_without_wrong_targets():
    # The target has one word; joined with itself, it is a translation, too.
    targets = Phrases.from_lists([[1], [1, 1]])
    known = KnownTranslations(Phrases.from_lists([[0], [0]]), targets)
    negatives, pair_numbers = containment_negatives(targets.part(0, 1), np.array([0]), known, np.random.default_rng(1))
    assert (len(negatives), len(pair_numbers)) == (0, 0)


@given(hnp.arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 8))), st.integers(0, 6), st.integers(0, 99))
def test_each_source_gets_distinct_wrong_targets(wrong, count, seed):
    rows, columns = batch_negatives(wrong, count, np.random.default_rng(seed))
    assert wrong[rows, columns].all()
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    assert np.bincount(rows, minlength=len(wrong)).tolist() == np.minimum(wrong.sum(1), count).tolist()


def test_all_wrong_targets_are_drawn_equally_often():
    wrong = ~np.eye(12, dtype=bool)
    rng = np.random.default_rng(1)
    counts = np.zeros((12, 12))
    for _ in range(400):
        np.add.at(counts, batch_negatives(wrong, 5, rng), 1)
    expected = 400 * 5 / 11
    assert np.abs(counts[wrong] - expected).max() < 5 * np.sqrt(expected)


@given(st.integers(1, 300), st.integers(1, 40))
def test_batches_have_every_pair_once_and_similar_sizes(pairs, size):
    batches = epoch_batches(pairs, size, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(pairs))
    sizes = [len(batch) for batch in batches]
    assert len(sizes) == -(-pairs // size)
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
