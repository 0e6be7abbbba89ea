"""Windows of entries, with a source that needs no network: scores must not depend on the blocks of lines."""

import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.lines.insert_scores import scale_logarithms
from moses_compat.measures import windowed_scores
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.windowed_scores import (
    ScoredEntries,
    ScoringQueue,
    TextPiece,
    WindowedScores,
    column_that_holds,
    drain,
)
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.pipeline import run
from tests.commands import write
from tests.syntax_models import random_syntax_model
from tests.variants import for_each

# Malformed lines among valid ones, including a run of them that is longer than a block.
LINES = [b"s%d ||| %s ||| 0.5" % (i // 3, b"t " * (i % 5 + 1)) for i in range(40)]
TABLE = b"".join(
    b"no entry\n" * (12 if i == 20 else i % 7 == 3) + line + b"\n" for i, line in enumerate(LINES)
) + b"no entry\n" * 3  # fmt: skip


class Lengths(WindowedScores):
    """Scores an entry by the length of its target, the size of its window, and its position in the window."""

    signature, column = "lengths", "length"

    def __init__(self, threads=1, folder=None):
        super().__init__(None, threads, folder)
        self.windows = []

    def orient(self, table, sample):
        self.oriented = len(sample.text)

    def parse(self, raw):
        block = TableParser(None, None, raw.scores, fingerprints=True)(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.malformed, TextPiece.of(block)

    def score(self, window):
        self.windows.append(len(window.hashes))
        return np.array(
            [
                -(len(target) + len(window.targets) / 100) - position / 10_000
                for position, target in enumerate(window.targets)
            ],
            np.float32,
        )

    def scored_entries(self, window, scores):
        return ScoredEntries(scores, np.ones(len(scores), np.int64), ~np.isnan(scores))


def scores_of(path, source, size, threads=1):
    with Input(str(path)) as table:
        reader = EntryReader(table, TableScan("keep", threads, size, allow_empty=True), source)
        result = [read.scores for read in run(reader.items(), reader, threads)]
    return np.concatenate([np.zeros((0, 1), np.float32), *(scores.similarities for scores in result)])[:, 0]


def naive_scores(window):
    """Yield the scores of the valid lines, in windows of this size."""
    targets = [b" ".join(line.split(b" ||| ")[1].split()) for line in LINES]
    for first in range(0, len(targets), window):
        part = targets[first : first + window]
        yield from (-(len(target) + len(part) / 100) - position / 10_000 for position, target in enumerate(part))


@for_each("window", [1, 7, 8, 40, 100])
@for_each(("size", "threads"), [(30, 1), (200, 2), (1 << 20, 1)])
def test_valid_entries_are_scored_in_windows_whatever_the_blocks(window, size, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", window)
    source = Lengths(threads)
    result = scores_of(write(tmp_path / "t", TABLE), source, size, threads)
    good = [line != b"no entry" for line in TABLE.splitlines()]
    assert len(result) == len(good)
    assert result[good] == pytest.approx(list(naive_scores(window)), abs=1e-5)
    assert np.isnan(result[~np.array(good)]).all()
    assert sorted(source.windows, reverse=True) == [window] * (40 // window) + [40 % window] * (40 % window > 0)
    assert source.oriented > 0


def test_a_table_without_valid_entries_has_no_scores(tmp_path):
    source = Lengths()
    result = scores_of(write(tmp_path / "t", b"no entry\n" * 5), source, 20)
    assert np.isnan(result).tolist() == [True] * 5
    assert source.windows == []


def test_finished_windows_are_reused_for_the_same_table_only(tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 9)
    pytest.importorskip("pyarrow", reason="the extra `scores` is not installed")
    path, folder = write(tmp_path / "t", TABLE), str(tmp_path / "parts")
    first, again = Lengths(folder=folder), Lengths(folder=folder)
    expected = scores_of(path, first, 200)
    assert np.array_equal(scores_of(path, again, 50), expected, equal_nan=True)
    assert (len(first.windows), again.windows) == (5, [])
    with pytest.raises(DataError, match="another table"):
        scores_of(write(tmp_path / "u", TABLE.replace(b"s1 ", b"x1 ")), Lengths(folder=folder), 200)


def test_a_column_is_recognised_by_its_values():
    logs = np.log(np.linspace(0.05, 0.9, 100)).astype(np.float32)
    written = scale_logarithms(logs)
    columns = np.column_stack([np.full(100, 0.5), written, written[::-1]])
    assert column_that_holds(logs, columns) == 1
    # Six significant digits, as in a table, and two changed lines out of a hundred.
    rounded = np.array([float(f"{value:.6g}") for value in written])
    rounded[[3, 50]] = 0.123
    assert column_that_holds(logs, np.column_stack([columns[:, 2], columns[:, 0], rounded])) == 2
    rounded[60] = 0.123
    assert column_that_holds(logs, rounded[:, None]) is None
    # Constant scores identify no column.
    assert column_that_holds(np.zeros(100, np.float32), np.ones((100, 1))) is None
    assert column_that_holds(np.zeros(0, np.float32), np.ones((0, 2))) is None
    assert column_that_holds(logs, np.ones((100, 0))) is None


def test_drained_elements_are_released_one_by_one():
    elements = [[1], [2], [3]]
    drained = []
    for item in drain(elements):
        drained.append((item, len(elements)))
    assert drained == [([1], 2), ([2], 1), ([3], 0)]


def scored(first, count):
    numbers = np.arange(first, first + count)
    return ScoredEntries(-numbers.astype(np.float32), numbers + 1, numbers % 3 > 0)


def test_blocks_take_the_scores_of_windows():
    queue = ScoringQueue()
    for first, count in ((0, 4), (4, 0), (4, 5)):
        queue.put(scored(first, count))
    result = queue.take_block(np.array([False, True, False]))
    assert np.isnan(result.logs[1])
    assert result.logs[[0, 2]].tolist() == [0, -1]
    assert (result.words.tolist(), result.scored.tolist()) == ([1, 1, 2], [False, False, True])
    assert queue.size == 7
    rest = queue.take(7)
    assert rest.logs.tolist() == [-i for i in range(2, 9)]
    assert queue.take(0).logs.tolist() == []


TEXT = b"a &apos; ||| b ||| 0.5\nno entry\na &apos; ||| c  d ||| 0.25\n"


def piece():
    text = np.frombuffer(TEXT, np.uint8)
    offsets = np.array([0, *(np.flatnonzero(text == 10) + 1)])
    block = TableParser(None, None, 1, fingerprints=True)(0, text, offsets)[0]
    return block, TextPiece.of(block)


def test_good_entries_are_read_as_text():
    block, result = piece()
    assert block.malformed.tolist() == [False, True, False]
    model = random_syntax_model()
    assert np.array_equal(model.encode(result.sources), model.encode([b"a '", b"a '"]))
    assert [text.split() for text in result.targets] == [[b"b"], [b"c", b"d"]]
    assert result.hashes.tolist() == block.fingerprints[[0, 2]].tolist()


def test_parts_join_to_the_whole():
    _, result = piece()
    again = TextPiece.joined([result.part(0, 1), result.part(1, 2)])
    assert (again.sources, again.targets) == (result.sources, result.targets)
    assert again.hashes.tolist() == result.hashes.tolist()
