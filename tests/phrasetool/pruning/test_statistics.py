import numpy as np

from phrasetool.pruning.statistics import PruneStatistics


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
    assert report["without_opinion"] == 4
    assert report["by_source_length"] == {
        "0": {"entries": 2, "kept": 2},
        "1": {"entries": 4, "kept": 2},
        "2": {"entries": 2, "kept": 2},
        "7": {"entries": 2, "kept": 2},
        "8+": {"entries": 6, "kept": 4},
    }


def test_statistics_of_nothing():
    assert PruneStatistics().as_dict("")["kept_share"] == 1.0
