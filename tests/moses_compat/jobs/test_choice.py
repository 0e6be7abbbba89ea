"""What is protected in a table of some size."""

import numpy as np
import pytest

from moses_compat.jobs.choice import protection, rule_for_size
from moses_compat.jobs.prune_request import PruneRequest
from phrasetool.pruning.protection import KeepBest
from tests.measures import measures_of

# Sources of 5, 2 and 9 entries; the last has two words.
MEASURES = measures_of([0, 5, 7, 16], [1, 1, 2], np.zeros(16, np.bool_))


@pytest.mark.parametrize("entries", [0, 5, 10, 16])
def test_what_was_asked_for_stays_whatever_the_size(entries):
    rule = rule_for_size(PruneRequest("t", keep_top=4, protect="all"), MEASURES)
    assert rule(entries) == KeepBest(4, "all")
    assert rule_for_size(PruneRequest("t", keep_top=0), MEASURES)(entries) == KeepBest(0, "words")


@pytest.mark.parametrize(
    ("protect", "sizes"), [("words", [5, 2]), (None, [5, 2]), ("all", [5, 2, 9]), ("none", [])]
)  # fmt: skip
@pytest.mark.parametrize("entries", range(17))
def test_else_as_many_as_there_is_room_for(protect, sizes, entries):
    """At most three fifths of the table, but one of every source."""
    fitting = [k for k in range(1, 11) if sum(min(k, size) for size in sizes) <= 0.6 * entries]
    found = rule_for_size(PruneRequest("t", protect=protect), MEASURES)(entries)
    assert found == KeepBest(max(fitting, default=1), protect or "words")


@pytest.mark.parametrize(
    ("best", "text"),
    [(KeepBest(1, "words"), "the best of every one-word source"), (KeepBest(3, "all"), "the 3 best of every source")],
)
def test_in_words(best, text):
    assert protection(best) == text
