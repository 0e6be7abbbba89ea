"""Pruning requests: default methods, missing inputs, streaming, and sources of similarities."""

import math

import numpy as np
import pytest

from moses_compat.jobs.prune_ranking import path_to_save, similarity_source
from moses_compat.jobs.prune_request import PruneRequest, UnusableRequest
from moses_compat.measures.similarities import ColumnSimilarities, FileSimilarities, ModelSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import SILENT
from tests.commands import write
from tests.measures import measures_of

EVERYTHING = {"ini": "i", "corpora": ("f", "e"), "forced_pairs": "p"}
SIZE = {"target_size": 0.5}
LOSS = {"max_bleu_loss": 0.5, "ini": "i", "dev": ("f", "e")}


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, "semantic"), ({"forced_pairs": "p"}, "semantic"), ({"corpora": ("f", "e")}, "semantic"),
        ({"ini": "i"}, "composition+semantic"), ({"ini": "i", "forced_pairs": "p"}, "composition+semantic+usage"),
        ({**EVERYTHING, "method": "count"}, "count"),
    ],
)  # fmt: skip
def test_the_best_possible_method_is_the_default(given, names):
    assert "+".join(PruneRequest("t", **SIZE, **given).parsed_method.names) == names


@pytest.mark.parametrize(
    ("method", "lacks"),
    [
        ("composition", "give moses_ini"), ("composition+count", "give moses_ini"), ("significance", "give corpus"),
        ("usage", "give forced_pairs"), ("count+significance", "give corpus"),
        # The first missing input is named.
        ("composition+usage+significance", "give moses_ini"),
    ],
)  # fmt: skip
def test_missing_inputs_of_a_method(method, lacks):
    with pytest.raises(UnusableRequest, match=lacks):
        PruneRequest("t", method=method, **SIZE)
    PruneRequest("t", method=method, **SIZE, **EVERYTHING)
    for alone in ("count", "semantic", "random", "probability"):
        PruneRequest("t", method=alone, **SIZE)


@pytest.mark.parametrize(
    ("given", "streams"),
    [
        ({"threshold": Threshold("0.5")}, True), ({"target_size": 0.5}, True), ({"sweep": [0.5]}, True),
        ({"method": "semantic:0.5"}, True), ({"method": "count", **SIZE}, False), ({"ini": "i", **SIZE}, False),
        ({"method": "count+semantic", **SIZE}, False), (LOSS, False), ({"method": "semantic", **LOSS}, False),
    ],
)  # fmt: skip
def test_only_semantic_pruning_streams(given, streams):
    assert PruneRequest("t", **given).streams == streams


def test_unknown_methods():
    with pytest.raises(UnusableRequest, match=r"method: .*sense"):
        PruneRequest("t", method="sense", **SIZE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reordering_table": "r"}, "give both {reordering_table} and {reordering_out}, or neither"),
        ({"target_size": 1.5}, "above 0, at most 1, not 1.5"), ({"target_size": math.nan}, "not NaN"),
        ({"scores": "s", "columns": (0, 1)}, "{scores} and {columns} are two sources"),
        ({"threshold": Threshold("2"), "target_size": None}, "{threshold}: "),
        ({"threshold": Threshold("a+e"), "target_size": None}, "goes with {method} significance alone"),
        ({"sweep": [0.5], "target_size": None, "stats": "s"}, "{sweep} writes no table"),
        ({"sweep": [0.5]}, "not both {target_size} and {sweep}"),
        ({"protect_frequent": "many"}, "{protect_frequent}: "),
        ({"dev": ("f", "e")}, "go with {max_bleu_loss}"), ({"reasons": "why.gz"}, "leave out .gz"),
        ({"table": "-"}, "{target_size} reads the table twice"),
        ({**LOSS, "target_size": None, "dev": None}, "give {dev}"),
        ({"method": "count+semantic", "scores": "nowhere"}, "nowhere: no such file"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used_together(given, message):
    with pytest.raises(UnusableRequest) as caught:
        PruneRequest(**{"table": "t", **SIZE, **given})
    assert message in caught.value.message
    flags = caught.value.worded({"target_size": "--target-size", "ini": "--moses-ini"})
    assert "{" not in str(caught.value) + flags
    assert ("--target-size" in flags) == ("{target_size}" in caught.value.message)


@pytest.mark.parametrize(
    ("given", "best"),
    [({}, KeepBest(10, "all")), ({"keep_top": 0}, KeepBest(0, "all")), ({"protect": "words"}, KeepBest(10, "words"))],
)  # fmt: skip
def test_protection_follows_the_paper_s_rule(given, best):
    assert PruneRequest("t", **SIZE, **given).best == best


def test_scan_settings_and_further_outputs():
    scan = TableScan("keep", 3, 77)
    files = {"reordering_out": "r", "rejected": "x", "reasons": "y", "stats": "z"}
    request = PruneRequest("t", **SIZE, scan=scan, reordering_table="t2", **files)
    request_scan = request.scan_for(SILENT)
    assert (request_scan.on_error, request_scan.threads, request_scan.block_bytes) == ("keep", 3, 77)
    assert request.outputs == ["r", "x", "y", "z"]
    assert PruneRequest("t", **SIZE).outputs == request.dry().outputs[1:] + [None] == [None] * 4


# Sources of 5, 2 and 9 entries; the last has two words.
MEASURES = measures_of([0, 5, 7, 16], [1, 1, 2], np.zeros(16, np.bool_))


@pytest.mark.parametrize("entries", [0, 5, 10, 16])
def test_requested_protection_does_not_depend_on_the_size(entries):
    rule = PruneRequest("t", **SIZE, keep_top=4, protect="all").rule_for_size(MEASURES)
    assert rule(entries) == KeepBest(4, "all")
    assert PruneRequest("t", **SIZE, keep_top=0).rule_for_size(MEASURES)(entries) == KeepBest(0, "words")


@pytest.mark.parametrize(
    ("protect", "sizes"), [("words", [5, 2]), (None, [5, 2]), ("all", [5, 2, 9]), ("none", [])]
)  # fmt: skip
def test_default_protection_depends_on_the_size(protect, sizes):
    """Protected entries are at most three fifths of the pruned table, but at least one of every source."""
    rule = PruneRequest("t", **SIZE, protect=protect).rule_for_size(MEASURES)
    for entries in range(17):
        fitting = [k for k in range(1, 11) if sum(min(k, size) for size in sizes) <= 0.6 * entries]
        assert rule(entries) == KeepBest(max(fitting, default=1), protect or "words"), entries


def test_sources_of_similarities(tmp_path, model_folder):
    saved = write(tmp_path / "kept", b"x")
    for options, kind in (
        ({"columns": (0, 1)}, ColumnSimilarities),
        ({"scores": str(saved)}, FileSimilarities),
        ({"scores": str(tmp_path / "none"), "model_folder": str(model_folder)}, ModelSimilarities),
        ({"model_folder": str(model_folder)}, ModelSimilarities),
    ):
        assert type(similarity_source(PruneRequest("t", **SIZE, **options))) is kind


def test_similarities_of_a_file_are_not_saved_again(tmp_path):
    request = PruneRequest("t", **SIZE, scores=str(write(tmp_path / "kept", b"x")))
    assert path_to_save(request, FileSimilarities(str(request.scores))) is None
    assert path_to_save(request, ColumnSimilarities(0, 1)) == request.scores
