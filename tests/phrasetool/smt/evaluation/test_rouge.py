import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.evaluation.rouge import rouge_n

# Candidate, reference, and what rouge-score 0.1.2 gives with words as spaces separate them.
GOLDEN = [
    ("police kill the gunman", "police killed the gunman", 0.75, 0.3333333333333333),
    ("the gunman kill police", "police killed the gunman", 0.75, 0.3333333333333333),
    ("the the the cat mat sat on", "the cat sat on the mat", 0.923076923076923, 0.3636363636363636),
    ("a a b b a a", "a a a b", 0.8, 0.7499999999999999),
    ("a man , a dog", "A man , a dog", 0.8000000000000002, 0.75),
    ("word", "word", 1.0, 0.0),
    ("x y", "a b c", 0.0, 0.0),
    ("", "a b", 0.0, 0.0),
    ("two men ride a bike down a blue hill . .", "two people ride a blue bike down the hill .",
     0.761904761904762, 0.4210526315789474),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from("abc"), max_size=7)


@pytest.mark.parametrize("order", [1, 2])
def test_golden_values(order):
    candidates, references = ([line[which].split() for line in GOLDEN] for which in (0, 1))
    expected = [line[1 + order] for line in GOLDEN]
    np.testing.assert_allclose(rouge_n(candidates, references, order), expected, atol=1e-12)


def naive(candidate, reference, order):
    """Cross the n-grams that match off the reference's, one by one."""
    ours, theirs = ([words[i : i + order] for i in range(len(words) - order + 1)] for words in (candidate, reference))
    left, matches = list(theirs), 0
    for gram in ours:
        if gram in left:
            left.remove(gram)
            matches += 1
    if not matches:
        return 0.0
    precision, recall = matches / len(ours), matches / len(theirs)
    return 2 * precision * recall / (precision + recall)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4), st.integers(1, 3))
def test_against_the_definition(pairs, order):
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    found = rouge_n(ours, theirs, order)
    np.testing.assert_allclose(found, [naive(*pair, order) for pair in pairs], atol=1e-12)
    np.testing.assert_array_equal(found, rouge_n(theirs, ours, order))


def test_bad_requests():
    with pytest.raises(ValueError, match="1 candidates, 0 references"):
        rouge_n([["a"]], [], 1)
    with pytest.raises(ValueError, match="n = 0"):
        rouge_n([["a"]], [["a"]], 0)
