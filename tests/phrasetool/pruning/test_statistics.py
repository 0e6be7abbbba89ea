import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.disk.packed_values import packed, unpacked
from phrasetool.pruning.decision import OfSize, Ranking, Rule, decide
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import (
    KeepBest,
    KeepBestWithinBudget,
    frequent_count,
    frequent_rows,
    frequent_translations,
)
from phrasetool.pruning.sizes import TooSmallError
from phrasetool.pruning.statistics import OccurrenceCounts, PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from tests.measures import measures_of

NUMBERS = st.sampled_from([0.0, 0.1, 0.333333, 1.0, 2.0, 3.0, 99.0, 100.0, 101.0, 150.0, 200.0, 1e6, 1.5599e6])
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.booleans()), max_size=30)


def is_mutual(target, source, joint):
    return 2 * joint > source and 2 * joint > target


def counted(rows, first=0, limit=100):
    counts = np.array([row[:3] for row in rows], np.float64).reshape(-1, 3)
    removed = np.array([row[3] for row in rows], np.bool_)
    malformed = np.zeros(len(rows), np.bool_)
    return OccurrenceCounts.of(counts, malformed, removed, lambda row: (f"s{first + row}", "t"), limit)


@given(ROWS, st.sampled_from([0, 1, 100]))
def test_mutual_translations(rows, limit):
    counts = np.array([row[:3] for row in rows]).reshape(-1, 3)
    expected = [i for i, row in enumerate(rows) if row[2] > limit and is_mutual(*row[:3])]
    assert frequent_rows(counts, limit).tolist() == expected
    assert np.flatnonzero(frequent_translations(counts, limit)).tolist() == expected


@pytest.mark.parametrize(
    ("counts", "mutual"),
    [
        ((300, 300, 150), False), ((299, 299, 150), True), ((299, 300, 150), False), ((300, 299, 150), False),
        ((100, 100, 100), False), ((101, 101, 101), True), ((math.nan, 150, 150), False), ((150, 150, math.nan), False),
    ],
)  # fmt: skip
def test_more_than_half_and_more_than_the_count(counts, mutual):
    assert frequent_translations(np.array([counts], np.float64), 100).tolist() == [mutual]


@given(ROWS, st.lists(st.integers(0, 30), max_size=4))
def test_blocks_add_up_to_the_table(rows, cuts):
    expected, total = counted(rows), OccurrenceCounts()
    borders = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    parts = [counted(rows[a:b], a) for a, b in pairwise(borders)]
    for part in parts:
        total += part
    assert total == expected
    assert OccurrenceCounts.merged(json.loads(json.dumps(part.as_dict())) for part in parts) == expected
    assert unpacked(packed(expected)) == expected
    removed = [row for row in rows if row[3]]
    assert expected.total == sum(round(row[2] * 10**6) for row in rows)
    assert expected.removed == sum(round(row[2] * 10**6) for row in removed)
    order = sorted((i for i, row in enumerate(rows) if row[3]), key=lambda i: -rows[i][2])
    assert [entry.source for entry in expected.frequent] == [f"s{i}" for i in order[:5]]
    mutual = [i for i in order if rows[i][2] > 100 and is_mutual(*rows[i][:3])]
    assert expected.mutual == len(mutual)
    assert [entry.source for entry in expected.frequent_mutual] == [f"s{i}" for i in mutual[:5]]


def test_a_report():
    result = counted([(30, 30, 27, True), (2, 2, 0.5, False), (200, 200, 150, True)])
    assert result.report() == {
        "total": 177.5, "removed": 177, "removed_share": 0.997183, "entries_without_joint_count": 0,
        "entries_with_derived_count": 0,
        "most_frequent_removed": [
            {"source": "s2", "target": "t", "count": 150}, {"source": "s0", "target": "t", "count": 27},
        ],
        "mutual_translations_removed": {
            "seen_more_than": 100, "entries": 1, "most_frequent": [{"source": "s2", "target": "t", "count": 150}],
        },
    }  # fmt: skip


def test_one_entry_without_a_count_is_enough_for_no_report():
    result = counted([(30, 30, 27, True), (2, 2, math.nan, True)])
    assert (result.missing, result.report()) == (1, None)
    malformed = OccurrenceCounts.of(
        np.full((1, 3), math.nan), np.ones(1, np.bool_), np.zeros(1, np.bool_), lambda row: ("", "")
    )
    assert (malformed.missing, malformed.report()["total"], malformed.report()["removed_share"]) == (0, 0, 0.0)


# Three sources of 3, 2 and 1 entries; the counts make entries 1 and 4 mutual.
OCCURRENCES = [[500, 500, 5], [500, 500, 400], [9, 500, 1], [700, 900, 300], [700, 900, 500], [700, 30, 20]]
MEASURES = measures_of(
    [0, 3, 5, 6], [1, 1, 2], np.zeros(6, np.bool_), counts=[6, 5, 4, 3, 2, 1], occurrences=OCCURRENCES
)


def test_protected_entries_are_part_of_a_size():
    ranking = Ranking.of(parse_method("count"), MEASURES)
    plain = decide(ranking, OfSize(0.5), KeepBest(0, "none"))
    assert np.flatnonzero(plain.keep).tolist() == [0, 1, 2]
    protecting = decide(ranking, OfSize(0.5), KeepBest(0, "none", 100))
    assert np.flatnonzero(protecting.keep).tolist() == [0, 1, 4]
    assert np.flatnonzero(protecting.protected).tolist() == [1, 4]
    assert np.flatnonzero(decide(ranking, OfSize(0.5), KeepBest(0, "none", 450)).keep).tolist() == [0, 1, 4]
    with pytest.raises(TooSmallError, match="2 of 6 entries"):
        decide(ranking, OfSize(0.2), KeepBest(0, "none", 100))


def test_the_number_of_best_entries_fits_the_size():
    """Frequent entries count towards the size, too."""
    assert KeepBestWithinBudget.of(MEASURES, "all").best(6) == KeepBest(1, "all")
    assert KeepBestWithinBudget.of(MEASURES, "words").best(6) == KeepBest(1, "words")
    assert KeepBestWithinBudget.of(MEASURES, "words").best(9) == KeepBest(10, "words")
    assert KeepBestWithinBudget.of(MEASURES, "words", 100).best(9) == KeepBest(1, "words", 100)


def test_thresholds_spare_frequent_entries():
    rule = Rule.of(parse_method("count"), KeepBest(0, "none", 100), threshold=Threshold("10"))
    decision = rule.decide(rule.ranking(MEASURES))
    assert decision.fails.all()
    assert np.flatnonzero(decision.keep).tolist() == [1, 4]


def test_choices():
    assert [frequent_count(choice, True) for choice in (None, "none", 0, 7)] == [100, None, 0, 7]
    assert [frequent_count(choice, False) for choice in (None, "none", 0, 7)] == [None, None, 0, 7]
    for wrong in ("7", -1, True, 1.5):
        with pytest.raises(ValueError, match="expected a count"):
            frequent_count(wrong, True)
    with pytest.raises(ValueError, match="must not be negative"):
        KeepBest(1, "all", -1)
    assert (KeepBest(2, "words").text, KeepBest(2, "words", 5).text) == ("k2+words", "k2+words+frequent5")


def test_statistics_add_up():
    total = PruneStatistics()
    lengths = np.array([1, 1, 2, 7, 8, 9, 30, 0])
    keep = np.array([1, 0, 1, 1, 0, 1, 1, 1], np.bool_)
    for _ in range(2):
        part = PruneStatistics(8, 5, 6, {"a": 1, "b": 1}, 3, 2, 0, 0)
        part.count_lengths(lengths, keep)
        total += part
    report = total.as_dict("model:x")
    assert report["schema_version"] == 1
    assert report["signature"] == "model:x"
    assert (report["entries"], report["sources"], report["kept"]) == (16, 10, 12)
    assert report["kept_share"] == 0.75
    assert report["removed"] == {"a": 2, "b": 2}
    assert report["protected_by_best_k"] == 6
    assert report["unscored"] == 4
    assert report["by_source_length"] == {
        "0": {"entries": 2, "kept": 2},
        "1": {"entries": 4, "kept": 2},
        "2": {"entries": 2, "kept": 2},
        "7": {"entries": 2, "kept": 2},
        "8+": {"entries": 6, "kept": 4},
    }


def test_statistics_of_an_empty_table():
    assert PruneStatistics().as_dict("")["kept_share"] == 1.0
