"""What a pruning run is asked for: the method that follows, what it lacks, and whether the table streams."""

import numpy as np
import pytest

from moses_compat.jobs.prune_request import PruneRequest
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.thresholds import Threshold
from tests.measures import measures_of

EVERYTHING = {"ini": "i", "corpora": ("f", "e"), "forced_pairs": "p"}


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, "semantic"), ({"forced_pairs": "p"}, "semantic"), ({"corpora": ("f", "e")}, "semantic"),
        ({"ini": "i"}, "composition+semantic"), ({"ini": "i", "forced_pairs": "p"}, "composition+semantic+usage"),
        ({**EVERYTHING, "method": "count"}, "count"),
    ],
)  # fmt: skip
def test_the_best_method_that_is_possible(given, names):
    request = PruneRequest("t", **given)
    method = request.parsed_method()
    assert "+".join(method.names) == names
    assert request.lacking(method) is None


@pytest.mark.parametrize(
    ("method", "lacks"),
    [
        ("composition", "weights"), ("composition+count", "weights"), ("significance", "corpora"),
        ("usage", "forced_pairs"),
        ("count+significance", "corpora"), ("count", None), ("semantic", None), ("random", None), ("probability", None),
        # The first that is found out.
        ("composition+usage+significance", "weights"),
    ],
)  # fmt: skip
def test_what_a_method_lacks(method, lacks):
    request = PruneRequest("t", method=method)
    assert request.lacking(request.parsed_method()) == lacks
    there = PruneRequest("t", method=method, **EVERYTHING)
    assert there.lacking(there.parsed_method()) is None


@pytest.mark.parametrize(
    ("given", "streams"),
    [
        ({"threshold": Threshold("0.5")}, True), ({"target_size": 0.5}, True), ({"sweep": [0.5]}, True),
        ({"method": "semantic:0.5"}, True), ({"method": "count"}, False), ({"ini": "i"}, False),
        ({"method": "count+semantic"}, False), ({"max_bleu_loss": 0.5}, False),
        ({"method": "semantic", "max_bleu_loss": 0.0}, False),
    ],
)  # fmt: skip
def test_meaning_alone_streams(given, streams):
    request = PruneRequest("t", **given)
    assert request.streams(request.parsed_method()) == streams


def test_methods_that_there_are_not():
    with pytest.raises(ValueError, match="sense"):
        PruneRequest("t", method="sense").parsed_method()


@pytest.mark.parametrize(
    ("given", "best"),
    [({}, KeepBest(10, "all")), ({"keep_top": 0}, KeepBest(0, "all")), ({"protect": "words"}, KeepBest(10, "words"))],
)  # fmt: skip
def test_what_stays_is_the_paper_s_rule(given, best):
    assert PruneRequest("t", **given).best == best


def test_how_a_table_is_read_and_what_is_written_besides():
    request = PruneRequest(
        "t", threads=3, block_bytes=77, on_error="keep", reordering_out="r", rejected="x", reasons="y", stats="z"
    )
    scan = request.scan()
    assert (scan.on_error, scan.threads, scan.block_bytes) == ("keep", 3, 77)
    assert request.outputs == ["r", "x", "y", "z"]
    assert PruneRequest("t").outputs == [None] * 4


# Sources of 5, 2 and 9 entries; the last has two words.
MEASURES = measures_of([0, 5, 7, 16], [1, 1, 2], np.zeros(16, np.bool_))


@pytest.mark.parametrize("entries", [0, 5, 10, 16])
def test_what_was_asked_for_stays_whatever_the_size(entries):
    rule = PruneRequest("t", keep_top=4, protect="all").rule_for_size(MEASURES)
    assert rule(entries) == KeepBest(4, "all")
    assert PruneRequest("t", keep_top=0).rule_for_size(MEASURES)(entries) == KeepBest(0, "words")


@pytest.mark.parametrize(
    ("protect", "sizes"), [("words", [5, 2]), (None, [5, 2]), ("all", [5, 2, 9]), ("none", [])]
)  # fmt: skip
@pytest.mark.parametrize("entries", range(17))
def test_else_as_many_as_there_is_room_for(protect, sizes, entries):
    """At most three fifths of the table, but one of every source."""
    fitting = [k for k in range(1, 11) if sum(min(k, size) for size in sizes) <= 0.6 * entries]
    found = PruneRequest("t", protect=protect).rule_for_size(MEASURES)(entries)
    assert found == KeepBest(max(fitting, default=1), protect or "words")
