"""Reading a table block by block."""

import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.similarities import ColumnSimilarities, SimilarityReader
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.pruning.protection import KeepBest
from tests import naive
from tests.commands import write
from tests.pairwise import pairwise
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES
from tests.variants import for_each


def read(path, scan, *options, **more):
    with Input(str(path)) as source:
        reader = EntryReader(source, scan, *options, **more)
        return [reader(item) for item in reader.items()]


@for_each("size", [1, 300, 1 << 20])
@for_each("name", ["seven fields", "lexicalised", "groups that come back", "empty"])
def test_blocks_make_up_the_table(tmp_path, name, size):
    data = TABLES[name]
    requested = (1, 0) if name in ("seven fields", "lexicalised") else (0,)
    result = read(write(tmp_path / "t", data), TableScan(block_bytes=size), columns=lambda scores: requested)
    lines, groups = naive.parse_table(data, naive.first_score_count(data))
    assert b"".join(part.block.text.tobytes() for part in result) == data
    heads = [first + part.block.first_entry for part in result for first in part.block.group_offsets[:-1].tolist()]
    assert heads == (groups[:-1] if lines else [])
    columns = np.concatenate([np.zeros((0, len(requested))), *(part.columns for part in result)])
    expected = [[line.values[column] for column in requested] for line in lines]
    np.testing.assert_allclose(columns, np.array(expected).reshape(-1, len(requested)), rtol=1e-12)
    assert all(part.scores is None and part.passes.all() and not part.faults for part in result)
    assert all(not len(part.block.fingerprints) for part in result)


def test_fingerprints_are_made_on_request(tmp_path):
    data = TABLES["seven fields"]
    (part,) = read(write(tmp_path / "t", data), TableScan(), fingerprints=True)
    assert part.block.fingerprints.tolist() == [naive.fnv(line.pair, 32) for line in naive.parse_table(data, 4)[0]]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_faults(tmp_path, size):
    path = write(tmp_path / "t", MALFORMED)
    good = [i + 1 not in MALFORMED_LINES for i in range(9)]
    for on_error, passing in (("keep", [True] * 9), ("skip", good)):
        result = read(path, TableScan(on_error, block_bytes=size), ColumnSimilarities(1, 0, "raw"))
        assert [mark for part in result for mark in part.passes.tolist()] == passing
        assert sum(part.faults for part in result) == len(MALFORMED_LINES)
        assert [mark for part in result for mark in part.scores.scored.tolist()] == good
    with pytest.raises(DataError, match="t:2: a score is not a number"):
        read(path, TableScan(block_bytes=size))


class RecordingWatch(SimilarityReader):
    """A source that records its calls."""

    signature = "told"

    def __init__(self):
        self.calls = []

    def reader(self, table):
        return self

    def take(self, lines):
        self.calls.append(lines)
        return len(self.calls)

    def finish(self, entries):
        self.calls.append(("finish", entries))


def test_a_source_is_called_for_every_block_in_order(tmp_path):
    data, recorder = TABLES["seven fields"], RecordingWatch()
    with Input(str(write(tmp_path / "t", data))) as source:
        reader = EntryReader(source, TableScan(block_bytes=300), recorder)
        parts = [(raw.lines, part) for raw, part in reader.items()]
        reader.finish(data.count(b"\n"))
    assert len(parts) > 3
    assert parts == [(lines, [number]) for number, lines in enumerate(recorder.calls[:-1], 1)]
    assert recorder.calls[-1] == ("finish", data.count(b"\n"))


def test_without_a_source_nothing_is_taken(tmp_path):
    with Input(str(write(tmp_path / "t", TABLES["model 1"]))) as source:
        reader = EntryReader(source, TableScan())
        assert [part for _, part in reader.items()] == [[]]
        reader.finish(12345)


class Counted(SimilarityReader):
    """A source that scores entries by the lengths of both sides, and counts the entries that it scores."""

    signature, by_entry = "counted", True

    def __init__(self, model):
        self.vocabularies = model.source_vocabulary, model.target_vocabulary
        self.asked = 0

    def reader(self, table):
        return self

    def score(self, block, columns, taken):
        self.asked += len(block)
        sources = np.repeat(block.sources.lengths, np.diff(block.group_offsets))
        lengths = np.stack([sources, block.targets.lengths], 1).astype(np.float32)
        lengths[block.malformed] = 0
        return Scores(-lengths, ~block.malformed & (sources != 2))


@for_each(
    ("size", "name", "best"),
    pairwise(
        [1, 300, 1 << 20],
        ["seven fields", "groups that come back", "malformed"],
        [KeepBest(0, "all"), KeepBest(3, "all"), KeepBest(10, "words"), KeepBest(1, "none")],
    ),
)
def test_settled_entries_are_not_scored(tmp_path, model, name, size, best):
    path = write(tmp_path / "t", {**TABLES, "malformed": MALFORMED}[name])
    scan = TableScan("keep", block_bytes=size)
    everything, some = Counted(model), Counted(model)
    settled = 0
    for whole, part in zip(
        read(path, scan, everything), read(path, scan, some, settled=best.keeps_everything), strict=True
    ):
        groups = whole.block.group_offsets
        is_settled = np.repeat(best.keeps_everything(groups, whole.block.source_lengths), np.diff(groups))
        settled += part.settled
        assert part.settled == is_settled.sum()
        assert part.scores.similarities[~is_settled].tolist() == whole.scores.similarities[~is_settled].tolist()
        assert part.scores.scored[~is_settled].tolist() == whole.scores.scored[~is_settled].tolist()
        good = ~whole.block.malformed[is_settled]
        assert part.scores.scored[is_settled].tolist() == good.tolist()
        assert part.scores.similarities[is_settled].tolist() == [[float(mark)] * 2 for mark in good]
    assert everything.asked == some.asked + settled
