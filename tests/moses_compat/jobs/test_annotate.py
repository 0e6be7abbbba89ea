"""Annotating a table: the order of columns, and what is counted."""

import numpy as np
import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.annotate import AnnotateCounts, annotate_table
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.pair_uses import PairUses
from moses_compat.measures.similarities import ColumnSimilarities, ModelSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests import naive
from tests.commands import read, write
from tests.tables import FAULTY, FAULTY_LINES, TABLES

DATA = TABLES["seven fields"]
SCANS = [TableScan("keep"), TableScan("keep", 2, 1), TableScan("keep", 2, 300)]


def annotate(folder, data, sources, scan=SCANS[0], **options):
    path = write(folder / "t", data)
    with Input(str(path)) as source, Output(str(folder / "out")) as out:
        counts = annotate_table(source, out, sources, scan, **options)
    return read(folder / "out"), counts


@pytest.mark.parametrize("scan", SCANS, ids=["one thread", "two threads", "small blocks"])
def test_columns_in_the_order_of_their_sources(tmp_path, scan):
    """Similarities come first, in the order of the sources; then p(e|f) and p(f|e) of forced decoding."""
    fields = [line.split(b"|||") for line in naive.split_lines(DATA)]
    rows = [(tuple(source.split()), tuple(target.split())) for source, target, *_ in fields]
    pairs = {row: 1 + i % 4 for i, row in enumerate(rows) if i % 3 == 0}
    text = b"".join(b"%s ||| %s ||| %d\n" % (b" ".join(s), b" ".join(t), n) for (s, t), n in pairs.items())
    forced = PairUses.read(str(write(tmp_path / "pairs", text)))
    sources = [ColumnSimilarities(1, 3, "raw"), ColumnSimilarities(0, 1, "raw")]
    found, counts = annotate(tmp_path, DATA, sources, scan, forced=forced, scale="raw")
    assert naive.cut_columns(found, 6) == DATA
    assert (counts.entries, counts.scores, counts.faulty) == (len(rows), 4, 0)
    assert counts.used == sum(row in pairs for row in rows)
    for row, line in zip(rows, naive.parse_table(found, 10)[0], strict=True):
        old, new = line.values[:4], line.values[4:]
        clipped = [min(value, 1.0) for value in old]
        assert new[:4] == pytest.approx([clipped[1], clipped[3], clipped[0], clipped[1]], abs=2e-6)
        totals = [sum(n for pair, n in pairs.items() if pair[side] == row[side]) for side in (0, 1)]
        expected = [(pairs.get(row, 0) + old[column]) / (totals[side] + 1) for side, column in ((0, 2), (1, 0))]
        assert new[4:] == pytest.approx(np.clip(expected, 1e-6, 1).tolist(), rel=1e-5)


class Written:
    """An output that knows what it was given."""

    def __init__(self):
        self.pieces = []

    def encode(self, text):
        return bytes(text)

    def write(self, data):
        self.pieces.append(data)


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_written_before_the_model_is_known_to_fit(tmp_path, model, monkeypatch, threads):
    path, scan = write(tmp_path / "t", DATA), TableScan("keep", threads, 1)
    whole = annotate(tmp_path, DATA, [ModelSimilarities(model)], scan)[0]
    for fits in (True, False):
        out, check = Written(), FitCheck("m", ahead=True)

        def judge(*_, out=out, fits=fits):
            assert out.pieces == []
            if not fits:
                raise DataError("t", "the model does not fit")

        monkeypatch.setattr(check, "_check", judge)
        with Input(str(path)) as source:
            if fits:
                annotate_table(source, out, [ModelSimilarities(model, check)], scan)
                assert b"".join(out.pieces) == whole
            else:
                with pytest.raises(DataError, match="does not fit"):
                    annotate_table(source, out, [ModelSimilarities(model, check)], scan)
                assert out.pieces == []


@pytest.mark.parametrize("on_error", ["keep", "skip"])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_faulty_lines_are_left_alone_or_out(tmp_path, model, on_error, size):
    found, counts = annotate(tmp_path, FAULTY, [ModelSimilarities(model)], TableScan(on_error, 1, size))
    lines = naive.split_lines(FAULTY)
    rows = naive.split_lines(found)
    assert counts.faulty == len(FAULTY_LINES)
    assert counts.entries == len(lines)
    if on_error == "keep":
        assert [rows[i - 1] for i in FAULTY_LINES] == [lines[i - 1] for i in FAULTY_LINES]
    assert naive.cut_columns(rows[0] + rows[-1], 2) == lines[0] + lines[-1]
    assert len(rows) == (9 if on_error == "keep" else 2)


def test_entries_without_an_opinion_are_those_of_the_first_source(tmp_path, model):
    unknown = b"qqq ||| the ||| 0.5 1\n" * 3 + b"das ||| the ||| 0.5 1\n"
    first, second = ModelSimilarities(model), ColumnSimilarities(0, 1, "raw")
    assert annotate(tmp_path, unknown, [first, second])[1].without_opinion == 3
    assert annotate(tmp_path, unknown, [second, first])[1].without_opinion == 0


def test_progress_is_told_of_every_block(tmp_path):
    told = []
    scan = TableScan(block_bytes=300, progress=lambda *seen: told.append(seen))
    annotate(tmp_path, DATA, [ColumnSimilarities(0, 1)], scan)
    assert len(told) > 3
    assert told[-1] == (len(DATA), DATA.count(b"\n"))
    assert told == sorted(told)


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing to append"):
        annotate(tmp_path, DATA, [])
    forced = PairUses.read(str(write(tmp_path / "pairs", b"a ||| b ||| 1\n")))
    with pytest.raises(DataError, match=r"t:1: the entries have 2 scores; .* the 4 that Moses' training writes"):
        annotate(tmp_path, FAULTY, [], forced=forced)
    assert not (tmp_path / "out").exists()


def test_counts_of_blocks_add_up():
    total = AnnotateCounts()
    total.add(AnnotateCounts(3, 1, 0, -1, 2))
    total.add(AnnotateCounts(4, 0, 2, 5, 1))
    assert total == AnnotateCounts(7, 1, 2, 5, 3)
