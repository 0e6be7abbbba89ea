"""Permutation test of reference lines, compared with an enumeration of all permutations."""

from itertools import permutations
from math import log

import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.line_correspondence import ERROR_RATE, line_correspondence

WORDS = 400


def naive(offered, reference):
    """Return the p-value over all orders, and the share of shared words in excess of an average order."""
    sets = [set(line) for line in offered]
    weights = {word: log(len(sets) / sum(word in line for line in sets)) for line in sets for word in line}
    known = [{word for word in line if word >= 0} for line in reference]

    def shared(order):
        return [words & known[row] for words, row in zip(sets, order, strict=True)]

    orders = list(permutations(range(len(sets))))
    sums = [sum(weights[word] for line in shared(order) for word in line) for order in orders]
    counts = [sum(map(len, shared(order))) for order in orders]
    p = np.mean([total >= sums[0] - 1e-9 for total in sums])
    return p, (counts[0] - np.mean(counts)) / sum(map(len, reference))


def text(rng, lines, shortest=2, longest=6):
    """Return random lines that end with the same word; frequent words have low ids."""
    return [
        [*(WORDS * rng.random(rng.integers(shortest, longest)) ** 3).astype(int).tolist(), WORDS] for _ in range(lines)
    ]


def known_part(rng, lines, share):
    """Return a share of the words of each line, and four random words for each."""
    return [[*(w for w in line if rng.random() < share), *rng.integers(0, WORDS, 4).tolist()] for line in lines]


def test_all_orders():
    rng = np.random.default_rng(1)
    values = []
    for share in (0.0, 0.2, 0.4) * 4:
        reference = text(rng, 6)
        reference[2].append(-1)
        offered = known_part(rng, reference, share)
        fit = line_correspondence(*map(Phrases.from_lists, (offered, reference)))
        p, beyond = naive(offered, reference)
        assert fit.share == pytest.approx(beyond)
        # Three standard errors with 999 orders.
        assert fit.p_value == pytest.approx(p, abs=3 * (p * (1 - p) / 999) ** 0.5 + 0.002)
        values.append(p)
    assert min(values) < 0.01
    assert max(values) > 0.3


@pytest.mark.parametrize("lines", [10, 60, 2000])
def test_errors_of_both_kinds(lines):
    """Unrelated references are accepted at the stated rate; correct ones of which a third is known are not rejected."""
    rng = np.random.default_rng(lines)
    trials = 300 if lines < 1000 else 10
    accepted = refused = 0
    for _ in range(trials):
        reference = text(rng, lines)
        offered = Phrases.from_lists(known_part(rng, reference, 0.35 if lines > 10 else 0.6))
        refused += line_correspondence(offered, Phrases.from_lists(reference)).rejected
        accepted += not line_correspondence(offered, Phrases.from_lists(text(rng, lines))).rejected
    assert refused == 0
    # The 99.9 % quantile of the number of acceptances at the stated rate.
    assert accepted <= trials * ERROR_RATE + 3.1 * (trials * ERROR_RATE) ** 0.5


@pytest.mark.parametrize("move", [1, -2, 5])
def test_moved_lines(move):
    rng = np.random.default_rng(2)
    reference = text(rng, 700, 6, 10)
    offered = Phrases.from_lists(known_part(rng, reference, 0.6))
    moved = Phrases.from_lists(reference).select(np.roll(np.arange(700), -move))
    fit = line_correspondence(offered, moved)
    assert (fit.moved, fit.rejected) == (move, True)


def test_uninformative_texts():
    same = Phrases.from_lists([[1, 2, 3]] * 20)
    fit = line_correspondence(same, same)
    assert np.isnan(fit.p_value)
    assert not fit.rejected
    nothing = line_correspondence(
        Phrases.from_lists([[i] for i in range(20)]), Phrases.from_lists([[30 + i] for i in range(20)])
    )
    assert (nothing.p_value, nothing.share, nothing.rejected) == (1, 0, True)
    # Different source lines have different translations, and every order of equal lines matches equally well.
    equal_references = line_correspondence(Phrases.from_lists([[i] for i in range(20)]), Phrases.from_lists([[5]] * 20))
    assert (equal_references.p_value, equal_references.rejected) == (1, True)
    for lines in (0, 3):
        with pytest.raises(ValueError, match="reference of"):
            line_correspondence(Phrases.from_lists([[1]] * lines), Phrases.from_lists([]))
