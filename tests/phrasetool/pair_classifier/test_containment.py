import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier.containment import containment_negatives
from phrasetool.pair_classifier.known_translations import KnownTranslations
from phrasetool.phrases import Phrases

TEXTS = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 9), min_size=1, max_size=9)), min_size=1)


def is_cut(made, target):
    share = len(made) / len(target)
    places = range(len(target) - len(made) + 1)
    return 0.35 <= share <= 0.65 and any(target[i : i + len(made)] == made for i in places)


def is_joined(made, target, targets):
    return any(made in (target + other, other + target) for other in targets)


@given(TEXTS, st.integers(0, 100))
def test_each_contains_the_target_or_is_a_part_of_it_and_is_no_translation(pairs, seed):
    sources, targets = [[source] for source, _ in pairs], [target for _, target in pairs]
    phrases = Phrases.from_lists(targets)
    known = KnownTranslations(Phrases.from_lists(sources), phrases)
    made, of = containment_negatives(phrases, np.arange(len(pairs)), known, np.random.default_rng(seed))
    assert len(made) == len(of)
    for text, pair in zip(made, of.tolist(), strict=True):
        words = text.tolist()
        assert is_cut(words, targets[pair]) or is_joined(words, targets[pair], targets)
        assert (pairs[pair][0], words) not in pairs


def test_half_are_cut_and_half_joined_and_the_seed_fixes_them():
    rng = np.random.default_rng(1)
    targets = Phrases.from_lists([rng.integers(0, 1000, rng.integers(4, 20)).tolist() for _ in range(500)])
    known = KnownTranslations(Phrases.from_lists([[i] for i in range(500)]), targets)
    numbers = np.arange(500)
    made, of = containment_negatives(targets, numbers, known, np.random.default_rng(2))
    assert of.tolist() == numbers.tolist()
    shorter = made.lengths < targets.lengths
    assert 200 < shorter.sum() < 300
    shares = (made.lengths / targets.lengths)[shorter]
    assert shares.min() >= 0.35
    assert shares.max() <= 0.65
    assert abs(shares.mean() - 0.5) < 0.02
    again, _ = containment_negatives(targets, numbers, known, np.random.default_rng(2))
    assert np.array_equal(again.words, made.words)


def test_a_source_for_which_nothing_is_wrong_gives_none():
    # Its target has one word; joined with itself it is a translation, too.
    targets = Phrases.from_lists([[1], [1, 1]])
    known = KnownTranslations(Phrases.from_lists([[0], [0]]), targets)
    made, of = containment_negatives(targets.part(0, 1), np.array([0]), known, np.random.default_rng(1))
    assert (len(made), len(of)) == (0, 0)
