"""Sinks of decided blocks, each compared with the decisions."""

import gzip

import numpy as np
import pyarrow.parquet as pq
import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.reasons_file import ReasonsWriter
from moses_compat.jobs.sinks import (
    Counts,
    DecidedBlock,
    Decisions,
    KeptScores,
    SelectedLines,
    SurvivingPairs,
)
from moses_compat.lines.fields import line_offsets_of
from moses_compat.lines.hashes import hash_pairs
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.saved_scores import SavedScores, ScoreWriter
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.decision import Decision, Reasons
from tests import naive
from tests.commands import read, write
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES

DATA = TABLES["seven fields"] + b"no entry\n" + MALFORMED.replace(b"0.25", b"0.25 0.5 1")
LINES = naive.split_lines(DATA)
MALFORMED_HERE = [line.fault != "ok" for line in naive.parse_table(DATA, 4)[0]]


@pytest.fixture
def path(tmp_path):
    return str(write(tmp_path / "t", DATA))


def masks(seed=3):
    """Return random decisions about all lines."""
    rng = np.random.default_rng(seed)
    fails, protected, silent = rng.random((3, len(LINES))) < [[0.6], [0.3], [0.2]]
    # Rules do not apply to malformed lines.
    malformed = np.array(MALFORMED_HERE)
    return fails & ~malformed, protected | malformed, silent


def decided_blocks(path, scan, reasons=None, similar=True):
    fails, protected, silent = masks()
    with Input(path) as source:
        reader = EntryReader(source, scan, ColumnSimilarities(2, 3, "raw") if similar else None, fingerprints=True)
        for item in reader.items():
            result = reader(item)
            part = slice(result.raw.first_entry, result.raw.first_entry + result.raw.lines)
            decision = Decision(fails[part], protected[part], silent[part])
            yield DecidedBlock(result, decision, reasons.part(part) if reasons else None)


def send(path, sinks, on_error="keep", size=300, **more):
    """Prepare the blocks last to first, as threads may, and write them in order."""
    blocks = list(decided_blocks(path, TableScan(on_error, 1, size), **more))
    prepared = [[sink.prepare(block) for sink in sinks] for block in reversed(blocks)]
    for part in reversed(prepared):
        for sink, data in zip(sinks, part, strict=True):
            sink.write(data)
    return len(blocks)


def expected_keep(on_error):
    fails, protected, _ = masks()
    return ~(fails & ~protected) & ~(np.array(MALFORMED_HERE) & (on_error == "skip"))


@pytest.mark.parametrize("on_error", ["keep", "skip"])
@pytest.mark.parametrize("size", [1, 300, 1 << 20])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_kept_and_rejected_lines(path, tmp_path, on_error, size, ending):
    kept_path, rejected_path = tmp_path / f"kept{ending}", tmp_path / f"gone{ending}"
    with Output(str(kept_path)) as out, Output(str(rejected_path)) as rejected:
        count = send(path, [SelectedLines(out), SelectedLines(rejected, rejected=True)], on_error, size)
    assert count == 1 or size < 1 << 20
    keep = expected_keep(on_error)
    fails, protected, _ = masks()
    assert read(kept_path) == b"".join(line for line, is_kept in zip(LINES, keep, strict=True) if is_kept)
    # A skipped malformed line does not count as pruned.
    pruned = fails & ~protected
    assert read(rejected_path) == b"".join(line for line, is_pruned in zip(LINES, pruned, strict=True) if is_pruned)
    assert 0 < pruned.sum() < len(LINES)
    if ending:
        assert gzip.decompress(kept_path.read_bytes()) == read(kept_path)


@pytest.mark.parametrize("on_error", ["keep", "skip"])
def test_surviving_pairs(path, on_error):
    surviving = SurvivingPairs()
    send(path, [surviving], on_error)
    keep = expected_keep(on_error)
    text = np.frombuffer(DATA, np.uint8)
    expected = hash_pairs(text, line_offsets_of(text), keep)[keep]
    assert np.concatenate(surviving.hashes).tolist() == expected.tolist()


@pytest.mark.parametrize("on_error", ["keep", "skip"])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_counts(path, on_error, size):
    counts = Counts()
    send(path, [counts], on_error, size)
    fails, protected, silent = masks()
    malformed = np.array(MALFORMED_HERE)
    lines, groups = naive.parse_table(DATA, 4)
    keep, total = expected_keep(on_error), counts.total
    assert (total.entries, total.sources) == (len(lines), len(groups) - 1)
    assert total.kept == keep.sum()
    assert total.removed == {"below_threshold": (fails & ~protected).sum()}
    assert total.protected == (fails & protected).sum()
    assert total.unscored == (silent & ~malformed).sum()
    assert (total.malformed_kept, total.malformed_skipped) == (
        (malformed.sum(), 0) if on_error == "keep" else (0, malformed.sum())
    )
    assert malformed.sum() == 1 + len(MALFORMED_LINES)
    assert not total.removed_by


def reasons_of(seed=5):
    rng = np.random.default_rng(seed)
    criterion_scores = rng.normal(size=(len(LINES), 2)).astype(np.float32)
    return Reasons(("count", "semantic"), criterion_scores, rng.random((len(LINES), 2)) < 0.5)


@pytest.mark.parametrize("size", [1, 300])
def test_reasons(path, tmp_path, size):
    reasons, counts = reasons_of(), Counts()
    with Output(str(tmp_path / "why")) as out, ReasonsWriter(out, reasons.names) as writer:
        send(path, [writer, counts], size=size, reasons=reasons)
    fails, protected, _ = masks()
    rows = pq.read_table(tmp_path / "why").to_pylist()
    # Failed entries have a row even if they are kept.
    assert [row["line"] for row in rows] == (np.flatnonzero(fails) + 1).tolist()
    result = np.array([[row["count"], row["semantic"]] for row in rows], np.float32)
    assert result.tobytes() == reasons.criterion_scores[fails].tobytes()
    labels = {}
    for i in np.flatnonzero(fails & ~protected):
        label = "+".join(np.array(reasons.names)[reasons.fails[i]]) or "together"
        labels[label] = labels.get(label, 0) + 1
    assert counts.total.removed_by == labels


def test_without_reasons_there_are_no_rows(path, tmp_path):
    with Output(str(tmp_path / "why")) as out, ReasonsWriter(out, ("semantic",)) as writer:
        send(path, [writer])
    assert pq.read_table(tmp_path / "why").num_rows == 0


def test_similarities_of_all_entries_are_saved(path, tmp_path):
    with ScoreWriter(str(tmp_path / "saved"), "columns") as writer:
        send(path, [KeptScores(writer)])
    saved = SavedScores(str(tmp_path / "saved"))
    lines = naive.parse_table(DATA, 4)[0]
    marks, scores = saved.take(len(lines))
    good = ~np.array(MALFORMED_HERE)
    expected = [line.values[2:4] if line.fault == "ok" else (0, 0) for line in lines]
    np.testing.assert_allclose(scores.similarities[good], np.array(expected, np.float32)[good], atol=1e-6)
    assert scores.scored.tolist() == good.tolist()
    numbers = [naive.fnv(line.pair, 32) for line in lines if line.fault == "ok"]
    assert marks.pairs[good].tolist() == numbers
    assert ((marks.lines == 0) >= ~good).all()
    saved.finish("t", len(lines))


@pytest.mark.parametrize("similar", [False, True])
@pytest.mark.parametrize("told", [False, True])
def test_decisions_as_arrays(path, similar, told):
    decisions, reasons = Decisions(), reasons_of() if told else None
    count = send(path, [decisions], "skip", reasons=reasons, similar=similar)
    assert len(decisions.blocks) == count > 3
    result = {name: np.concatenate([block[name] for block in decisions.blocks]) for name in decisions.blocks[0]}
    fails, protected, _ = masks()
    names = ["keep", "fails", "protected"]
    names += ["similarity_st", "similarity_ts"] * similar + ["count", "semantic"] * told
    assert [*result] == names
    assert result["keep"].tolist() == expected_keep("skip").tolist()
    assert result["fails"].tolist() == fails.tolist()
    assert result["protected"].tolist() == protected.tolist()
    if told:
        assert np.column_stack([result["count"], result["semantic"]]).tobytes() == reasons.criterion_scores.tobytes()
    if similar:
        values = [line.values if line.fault == "ok" else (0, 0, 0, 0) for line in naive.parse_table(DATA, 4)[0]]
        good = ~np.array(MALFORMED_HERE)
        for column, name in ((2, "similarity_st"), (3, "similarity_ts")):
            expected = np.array([row[column] for row in values], np.float32)
            np.testing.assert_allclose(result[name][good], expected[good], atol=1e-6)
