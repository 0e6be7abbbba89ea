"""Sources of similarities: a model, a file, columns, and a custom source."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.annotate import annotate_table
from moses_compat.jobs.prune import prune_table
from moses_compat.jobs.sinks import SelectedLines
from moses_compat.lines.insert_scores import scale_similarities
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.saved_scores import ScoreWriter
from moses_compat.measures.similarities import ColumnSimilarities, FileSimilarities, ModelSimilarities, SimilarityReader
from moses_compat.tables.blocks import LineMarks, TableScan
from phrasetool.errors import DataError
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.pruning.decision import Rule
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.thresholds import Threshold
from tests import naive
from tests.commands import write
from tests.pairwise import pairwise
from tests.tables import MALFORMED, TABLES
from tests.variants import for_each

SCANS = [TableScan("keep"), TableScan("keep", 2, 1), TableScan("keep", 2, 300)]


class LineLengths:
    """A custom source: the share of even bytes, and the second score.  It records its calls."""

    signature = "lengths"

    def __init__(self, column=1):
        self.column = column
        self.taken, self.finished, self.tables = [], [], []

    def reader(self, table):
        self.tables.append(table)
        return _LengthReader(self)


class _LengthReader(SimilarityReader):
    fingerprints = True

    def __init__(self, source):
        self._source, self._lines = source, 0

    def columns(self, scores, first_entry):
        return (self._source.column,)

    def take(self, lines):
        self._source.taken.append(lines)
        self._lines += lines
        # The number of the first line.
        return self._lines - lines

    def score(self, block, columns, taken):
        assert taken == block.first_entry
        assert len(block.fingerprints) == len(block)
        assert columns.shape == (len(block), 1)
        shares = [
            sum(byte % 2 == 0 for byte in line) / len(line) for line in naive.split_lines(block.text.tobytes())
        ]  # fmt: skip
        similar = np.column_stack([shares, np.clip(columns[:, 0], -1, 1)]).astype(np.float32)
        # Lines of an even number of bytes have no score.
        scored = np.diff(block.line_offsets) % 2 == 1
        return Scores(np.where(block.malformed[:, None], 0, similar).astype(np.float32), scored & ~block.malformed)

    def finish(self, entries):
        self._source.finished.append(entries)


def expected_of(data):
    """Return the lines, groups, similarities and scored lines of a table, by naive Python."""
    lines, groups = naive.parse_table(data, naive.first_score_count(data))
    similar, scored = [], []
    for line in lines:
        text = data[line.start : line.end]
        good = line.fault == "ok"
        share = float(np.float32(sum(byte % 2 == 0 for byte in text) / len(text)))
        similar.append((share, float(np.float32(np.clip(line.values[1], -1, 1)))) if good else (0.0, 0.0))
        scored.append(good and len(text) % 2 == 1)
    return lines, groups, similar, scored


NAMES = ["seven fields", "lexicalised", "model 1"]


@for_each(
    ("scan", "name", "best"), pairwise(SCANS, NAMES, [KeepBest(2, "all"), KeepBest(1, "words"), KeepBest(0, "none")])
)
def test_pruning_by_a_custom_source(tmp_path, name, scan, best):
    data = TABLES[name] + b"no entry\n"
    lines, groups, similar, scored = expected_of(data)
    custom = LineLengths()
    rule = Rule.of(parse_method("semantic"), best, threshold=Threshold("0.65"))
    path = str(write(tmp_path / "t.gz", data))
    with Input(path) as source, Output(str(tmp_path / "out")) as out:
        prune_table(source, custom, rule, [SelectedLines(out)], scan)
    removed = naive.pruned_lines(lines, groups, similar, scored, 0.65, best.k, best.protect)
    assert 0 < len(removed) < len(lines)
    kept = [line for i, line in enumerate(naive.split_lines(data)) if i not in removed]
    assert (tmp_path / "out").read_bytes() == b"".join(kept)
    assert (custom.tables, sum(custom.taken), custom.finished) == ([path], len(lines), [len(lines)])


@pytest.mark.parametrize(("scan", "name", "scale"), pairwise(SCANS, NAMES, ["exp", "probability", "raw"]))
def test_annotation_by_a_custom_source_and_a_model(tmp_path, model, name, scan, scale):
    data = TABLES[name] + b"no entry\n"
    lines, _, similar, scored = expected_of(data)
    path = str(write(tmp_path / "t", data))

    def annotate(*sources):
        with Input(path) as source, Output(str(tmp_path / "out")) as out:
            counts = annotate_table(source, out, sources, scan, scale=scale)
        return (tmp_path / "out").read_bytes(), counts

    text, counts = annotate(LineLengths())
    assert naive.cut_columns(text, 2) == data
    assert counts.unscored == sum(not is_scored for is_scored in scored) - 1
    both = annotate(ModelSimilarities(model), LineLengths())[0]
    assert naive.cut_columns(both, 2) == annotate(ModelSimilarities(model))[0]
    written = scale_similarities(np.array(similar, np.float32), scale)
    for annotated in (text, both):
        for line, expected in zip(naive.parse_table(annotated, -1)[0][: len(lines) - 1], written, strict=False):
            np.testing.assert_allclose(line.values[-2:], expected, rtol=1e-5, atol=1e-6)


def scored_blocks(path, source, scan=SCANS[0], columns=lambda scores: ()):
    """Return the blocks of a table with their scores."""
    with Input(path) as table:
        reader = EntryReader(table, scan, source, columns=columns)
        result = [reader(item) for item in reader.items()]
        reader.finish(sum(len(read.block) for read in result))
    return result


def joined(found):
    parts = [read.scores for read in found]
    return np.concatenate([part.similarities for part in parts]), np.concatenate([part.scored for part in parts])


@pytest.mark.parametrize("scan", SCANS, ids=["one thread", "two threads", "small blocks"])
def test_a_model_and_a_file_of_its_scores_are_equivalent(tmp_path, model, scan):
    data = TABLES["seven fields"] + b"no entry\n"
    path, saved = str(write(tmp_path / "t", data)), str(tmp_path / "saved")
    source = ModelSimilarities(model)
    similar, scored = joined(scored_blocks(path, source, scan))
    with Input(path) as table, ScoreWriter(saved, source.signature) as writer:
        reader = EntryReader(table, scan, source, fingerprints=True)
        for item in reader.items():
            read = reader(item)
            writer.write(LineMarks.of(read.raw, read.block), read.scores)
    file = FileSimilarities(saved)
    assert file.signature == source.signature == model.signature
    again = joined(scored_blocks(path, file, scan))
    assert again[0].tobytes() == similar.tobytes()
    assert again[1].tolist() == scored.tolist()
    assert not scored[-1]
    lines = naive.parse_table(data, 4)[0]
    for i in range(0, len(lines) - 1, 11):
        ids = [
            naive.word_ids(field, vocabulary.words)
            for field, vocabulary in (
                (lines[i].source, model.source_vocabulary), (lines[i].target, model.target_vocabulary),
            )
        ]  # fmt: skip
        np.testing.assert_allclose(similar[i], naive.similarities(*ids, model), atol=1e-4)
        assert scored[i] == all(any(side) for side in ids)


def test_an_unchanged_table_is_not_parsed_again(tmp_path, model, monkeypatch):
    data = TABLES["seven fields"]
    path, saved = str(write(tmp_path / "t", data)), str(tmp_path / "saved")
    similar, scored = joined(scored_blocks(path, ModelSimilarities(model)))
    with Input(path) as table, ScoreWriter(saved, "m") as writer:
        reader = EntryReader(table, SCANS[2], ModelSimilarities(model), fingerprints=True)
        for item in reader.items():
            read = reader(item)
            writer.write(LineMarks.of(read.raw, read.block), read.scores)
    again = write(tmp_path / "other", data.replace(b"0.5", b"0.6", 1))

    def look(path, scan):
        with Input(str(path)) as table:
            reader = EntryReader(table, scan, FileSimilarities(saved), fields=False)
            result = [reader(item) for item in reader.items()]
        assert joined(result)[0].tobytes() == similar.tobytes()
        assert joined(result)[1].tolist() == scored.tolist()
        assert all(part.passes.all() and not part.faults for part in result)
        return [len(part.block.source_ends) > 0 for part in result]

    assert not any(look(path, SCANS[2]))
    assert look(path, SCANS[0]) == [True]
    parsed = look(again, SCANS[2])
    assert parsed.count(True) == 1
    assert len(parsed) > 3


@given(st.data())
def test_a_changed_table_is_read_as_if_its_lines_were_unknown(workspace, saved_table, data):
    whole, saved = saved_table
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 3))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position : position + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2) | st.just(b"|"))
    path = write(workspace / "changed", bytes(changed))
    scan = TableScan(
        data.draw(st.sampled_from(["keep", "skip", "fail"])), 1, data.draw(st.sampled_from([1, 300, 1 << 20]))
    )

    def look(fields):
        collected = []
        try:
            with Input(str(path)) as table:
                reader = EntryReader(table, scan, FileSimilarities(saved), fields=fields)
                for item in reader.items():
                    read = reader(item)
                    block, scores = read.block, read.scores
                    arrays = (
                        block.line_offsets, block.group_offsets, block.source_lengths, block.malformed, read.passes,
                        scores.similarities, scores.scored,
                    )  # fmt: skip
                    collected.append((block.text.tobytes(), [array.tolist() for array in arrays], block.ascending))
        except DataError as error:
            collected.append(str(error))
        return collected

    assert look(True) == look(False)


@pytest.fixture(scope="module")
def saved_table(tmp_path_factory, model):
    """A table, and similarities that were saved in small blocks."""
    folder, data = tmp_path_factory.mktemp("saved"), TABLES["lexicalised"]
    with Input(str(write(folder / "t", data))) as table, ScoreWriter(str(folder / "saved"), "m") as writer:
        reader = EntryReader(table, SCANS[2], ModelSimilarities(model), fingerprints=True)
        for item in reader.items():
            read = reader(item)
            writer.write(LineMarks.of(read.raw, read.block), read.scores)
    return data, str(folder / "saved")


def test_a_file_of_more_or_of_other_entries(tmp_path, model):
    saved = str(tmp_path / "saved")
    data = TABLES["seven fields"]
    with Input(str(write(tmp_path / "t", data))) as table, ScoreWriter(saved, "m") as writer:
        reader = EntryReader(table, SCANS[0], ModelSimilarities(model), fingerprints=True)
        for item in reader.items():
            read = reader(item)
            writer.write(LineMarks.of(read.raw, read.block), read.scores)
    shorter = write(tmp_path / "less", data[: data.rindex(b"\n", 0, -1) + 1])
    count = data.count(b"\n")
    with pytest.raises(DataError, match=rf"has {count} rows, but .*less has {count - 1} entries"):
        scored_blocks(str(shorter), FileSimilarities(saved))
    changed = write(tmp_path / "other", data.replace(b"the house", b"the mouse"))
    with pytest.raises(DataError, match="made from another table"):
        scored_blocks(str(changed), FileSimilarities(saved))


@given(
    st.lists(st.tuples(st.floats(0.2, 1), st.floats(0.2, 1), st.floats(0.2, 1)), min_size=1, max_size=9),
    st.permutations([0, 1, 2]), st.sampled_from(["exp", "probability", "raw"]),
)  # fmt: skip
def test_columns_are_unscaled(workspace, rows, places, scale):
    undo = {"exp": lambda x: 1 + np.log(x), "probability": lambda x: 2 * x - 1, "raw": lambda x: x}[scale]
    data = b"".join(b"a ||| b%d ||| %.9g %.9g %.9g\n" % (i, *row) for i, row in enumerate(rows)) + b"no entry\n"
    path = str(write(workspace / "t", data))
    first, second, third = places
    source = ColumnSimilarities(first, second, scale)
    assert source.signature == f"columns:{first + 1},{second + 1}|scale:{scale}"
    # Columns that the caller requests are returned separately.
    (read,) = scored_blocks(path, source, columns=lambda scores: (third, first))
    expected = undo(np.array(rows)[:, [first, second]])
    np.testing.assert_allclose(read.scores.similarities[:-1], expected, atol=2e-6)
    assert read.scores.scored.tolist() == [True] * len(rows) + [False]
    np.testing.assert_allclose(read.columns[:-1], np.array(rows)[:, [third, first]], rtol=1e-8)


def test_a_missing_column(tmp_path):
    path = str(write(tmp_path / "t", MALFORMED))
    with pytest.raises(DataError, match="t:1: column 3 was requested, but entries have 2 scores"):
        scored_blocks(path, ColumnSimilarities(2, 0))
    # The number of scores is unknown for a table without entries.
    (read,) = scored_blocks(str(write(tmp_path / "none", b"no entry\n")), ColumnSimilarities(7, 8))
    assert not read.scores.scored.any()
