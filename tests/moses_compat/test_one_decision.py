"""Streaming a table, measuring it as a whole and the loaded model lead to the same decisions."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.experiments.compared_tables import TableDecisions
from moses_compat.experiments.settings import PruningSystem
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.prune import prune, prune_decided, prune_table
from moses_compat.jobs.prune_ranking import measures_of
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.sinks import Counts, SelectedLines
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.measure import MeasureRequest, measure_table
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.decision import Rule, explain, rank
from phrasetool.pruning.measures import SIMILARITIES
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.sizes import TooSmallError
from phrasetool.pruning.thresholds import Threshold
from tests.commands import write

# Few different scores, so that there are ties; BROKEN are malformed lines.
SCORES = st.sampled_from(["-1", "-0.5", "0", "0.25", "0.5", "0.7", "1"])
# Joint counts of 5 to 8 make mutual translations, because the other two counts are 9.
ENTRIES = st.tuples(
    st.sampled_from(["a", "b", "a b", "c", "[X] a"]), st.sampled_from(["x", "y", "x y", "z"]), SCORES, SCORES,
    st.integers(1, 8),
)  # fmt: skip
BROKEN = st.sampled_from(["a ||| x", "b ||| x ||| 1", "", "a ||| x ||| nan 1 1 1"])
LINES = st.lists(st.one_of(ENTRIES, ENTRIES, ENTRIES, BROKEN), min_size=1, max_size=40)
PROTECTIONS = st.tuples(st.integers(0, 3), st.sampled_from(["all", "words", "none"]))


def text_of(lines):
    """Return a table of four scores, set by its first line; the first two are unscaled similarities."""
    rows = [
        "a ||| first ||| 0 0 0 0 ||| ||| 9 9 1",
        *(
            line if isinstance(line, str) else "{0} ||| {1} ||| {2} {3} {3} 0 ||| ||| 9 9 {4}".format(*line)
            for line in sorted(lines, key=lambda line: line[0] if isinstance(line, tuple) else "a")
        ),
    ]
    return "".join(f"{row}\n" for row in rows).encode()


SIMILAR = ColumnSimilarities(0, 1, "raw")
MEANING = {SIMILARITIES: SIMILAR}
SCANS = st.builds(TableScan, st.just("keep"), st.sampled_from([1, 2]), st.sampled_from([1, 60, 1 << 20]))


def streamed(folder, table, rule, scan):
    counts = Counts()
    with Input(str(table)) as source, Output(str(folder / "streamed")) as out:
        prune_table(source, SIMILAR, rule, [SelectedLines(out), counts], scan)
    return (folder / "streamed").read_bytes(), counts.total


def as_a_whole(folder, table, rule, measures, scan):
    counts, ranking = Counts(), rule.ranking(measures)
    decision = rule.decide(ranking)
    reasons = explain(ranking, decision)
    with Input(str(table)) as source, Output(str(folder / "whole")) as out:
        prune_decided(source, decision, reasons, [SelectedLines(out), counts], scan)
    return (folder / "whole").read_bytes(), counts.total


@settings(max_examples=80)
@given(LINES, PROTECTIONS, st.sampled_from(["none", 0, 4, 6]), st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.7, 2.0]), SCANS)
def test_a_threshold_of_similarity(workspace, lines, protection, frequent, threshold, scan):
    table = write(workspace / "table", text_of(lines))
    best = KeepBest(*protection, None if frequent == "none" else frequent)
    rule = Rule.of(parse_method("semantic"), best, threshold=Threshold.of(threshold))
    with Input(str(table)) as source:
        measures = measure_table(source, MeasureRequest(similarities=MEANING, scan=scan, occurrences=True)).whole()
    first, counted = streamed(workspace, table, rule, scan)
    second, counted_again = as_a_whole(workspace, table, rule, measures, scan)
    assert first == second
    assert counted.as_dict("") == counted_again.as_dict("")
    k, protect = protection
    system = PruningSystem("semantic", "", "threshold", threshold, protect, k, protect_frequent=frequent)
    keep = TableDecisions(measures).keep(system)
    rows = text_of(lines).splitlines(keepends=True)
    assert first == b"".join(row for row, is_kept in zip(rows, keep, strict=True) if is_kept)


@settings(max_examples=60)
@given(LINES, PROTECTIONS, st.sampled_from([0.2, 0.5, 0.8, 1.0]), st.sampled_from([
    ("semantic", ""), ("count", ""), ("count+semantic", "product"), ("count+probability+semantic", "rank"),
    ("count+semantic", "union"), ("semantic:0.3", ""), ("count:2+semantic:0.3", "intersection"),
]), st.sampled_from([None, "none", 3, 6]))  # fmt: skip
def test_files_and_loaded_model(workspace, lines, protection, size, method, frequent):
    """For every rule, `prune` writes the entries that the loaded model keeps."""
    name, combine = method
    k, protect = protection
    table, has_threshold = write(workspace / "table", text_of(lines)), ":" in name
    request = PruneRequest(
        str(table), target_size=None if has_threshold else size, method=name, combine=combine or None, keep_top=k,
        protect=protect, columns=(0, 1), scale="raw", output=str(workspace / "out"), scan=TableScan("keep"),
        stats=str(workspace / "stats"), protect_frequent=frequent,
    )  # fmt: skip
    with Input(str(table)) as source:
        measure_request = MeasureRequest(similarities=MEANING, scan=request.scan, occurrences=True)
        measures = measure_table(source, measure_request).whole()
    cut = ("threshold", 0.0) if has_threshold else ("size", size)
    system = PruningSystem(name, combine, *cut, protect, k, protect_frequent=frequent)
    try:
        keep = TableDecisions(measures).keep(system)
    except TooSmallError as error:
        with pytest.raises(Exception, match=str(error).split(" (")[0]):
            prune(request)
        return
    result = prune(request)
    rows = text_of(lines).splitlines(keepends=True)
    assert (workspace / "out").read_bytes() == b"".join(row for row, is_kept in zip(rows, keep, strict=True) if is_kept)
    assert result.statistics.kept == keep.sum() == json.loads((workspace / "stats").read_bytes())["kept"]


@given(LINES, PROTECTIONS, SCANS)
def test_a_block_is_ranked_as_its_table(workspace, lines, protection, scan):
    table = write(workspace / "table", text_of(lines))
    method, best = parse_method("semantic"), KeepBest(*protection)
    with Input(str(table)) as source:
        whole = rank(method, measure_table(source, MeasureRequest(similarities=MEANING, scan=scan)).whole())
    with Input(str(table)) as source:
        reader = EntryReader(source, scan, SIMILAR)
        parts = [rank(method, measures_of(reader(item))) for item in reader.items()]
    for values, name in ((whole.scores, "scores"), (whole.keys, "keys"), (whole.silent, "silent")):
        np.testing.assert_array_equal(values, np.concatenate([getattr(part, name) for part in parts]))
    np.testing.assert_array_equal(whole.protected(best), np.concatenate([part.protected(best) for part in parts]))
