"""Annotation of a table and its ini: order of columns, counts, and output files of which all or none appear."""

import os

import numpy as np
import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.ini.reading import read_moses_ini
from moses_compat.jobs.annotate import AnnotateCounts, AnnotateRequest, IniEdit, annotate, annotate_table, ini_of_table
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.pair_counts import PairUses
from moses_compat.measures.similarities import ColumnSimilarities, ModelSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.watch import Watch
from tests import naive
from tests.commands import read, write
from tests.moses_compat.engine.test_extracted import GOLDEN
from tests.tables import INI, MALFORMED, MALFORMED_LINES, TABLES

DATA = TABLES["seven fields"]
SCANS = [TableScan("keep"), TableScan("keep", 2, 1), TableScan("keep", 2, 300)]


def annotated_table(folder, data, sources, scan=SCANS[0], **options):
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
    result, counts = annotated_table(tmp_path, DATA, sources, scan, forced=forced, scale="raw")
    assert naive.cut_columns(result, 6) == DATA
    assert (counts.entries, counts.scores, counts.malformed) == (len(rows), 4, 0)
    assert counts.used == sum(row in pairs for row in rows)
    for row, line in zip(rows, naive.parse_table(result, 10)[0], strict=True):
        old, new = line.values[:4], line.values[4:]
        clipped = [min(value, 1.0) for value in old]
        assert new[:4] == pytest.approx([clipped[1], clipped[3], clipped[0], clipped[1]], abs=2e-6)
        totals = [sum(n for pair, n in pairs.items() if pair[side] == row[side]) for side in (0, 1)]
        expected = [(pairs.get(row, 0) + old[column]) / (totals[side] + 1) for side, column in ((0, 2), (1, 0))]
        assert new[4:] == pytest.approx(np.clip(expected, 1e-6, 1).tolist(), rel=1e-5)


class Written:
    """An output that records the pieces written to it."""

    def __init__(self):
        self.pieces = []

    def encode(self, text):
        return bytes(text)

    def write(self, data):
        self.pieces.append(data)


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_written_before_the_model_is_known_to_fit(tmp_path, model, monkeypatch, threads):
    path, scan = write(tmp_path / "t", DATA), TableScan("keep", threads, 1)
    whole = annotated_table(tmp_path, DATA, [ModelSimilarities(model)], scan)[0]
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
def test_malformed_lines_are_kept_or_skipped(tmp_path, model, on_error, size):
    result, counts = annotated_table(tmp_path, MALFORMED, [ModelSimilarities(model)], TableScan(on_error, 1, size))
    lines = naive.split_lines(MALFORMED)
    rows = naive.split_lines(result)
    assert counts.malformed == len(MALFORMED_LINES)
    assert counts.entries == len(lines)
    if on_error == "keep":
        assert [rows[i - 1] for i in MALFORMED_LINES] == [lines[i - 1] for i in MALFORMED_LINES]
    assert naive.cut_columns(rows[0] + rows[-1], 2) == lines[0] + lines[-1]
    assert len(rows) == (9 if on_error == "keep" else 2)


def test_unscored_entries_are_counted_for_the_first_source(tmp_path, model):
    unknown = b"qqq ||| the ||| 0.5 1\n" * 3 + b"das ||| the ||| 0.5 1\n"
    first, second = ModelSimilarities(model), ColumnSimilarities(0, 1, "raw")
    assert annotated_table(tmp_path, unknown, [first, second])[1].unscored == 3
    assert annotated_table(tmp_path, unknown, [second, first])[1].unscored == 0


def test_progress_is_reported_for_every_block(tmp_path):
    recorded = []
    scan = TableScan(block_bytes=300, progress=lambda *arguments: recorded.append(arguments))
    annotated_table(tmp_path, DATA, [ColumnSimilarities(0, 1, "raw")], scan)
    assert len(recorded) > 3
    assert recorded[-1] == (len(DATA), DATA.count(b"\n"))
    assert recorded == sorted(recorded)


def test_bad_requests(tmp_path):
    with pytest.raises(ValueError, match="nothing to append"):
        annotated_table(tmp_path, DATA, [])
    forced = PairUses.read(str(write(tmp_path / "pairs", b"a ||| b ||| 1\n")))
    with pytest.raises(DataError, match=r"t:1: the entries have 2 scores; .* the 4 that Moses' training writes"):
        annotated_table(tmp_path, MALFORMED, [], forced=forced)
    assert not (tmp_path / "out").exists()


def test_counts_of_blocks_add_up():
    total = AnnotateCounts()
    total.add(AnnotateCounts(3, 1, 0, -1, 2))
    total.add(AnnotateCounts(4, 0, 2, 5, 1))
    assert total == AnnotateCounts(7, 1, 2, 5, 3)


@pytest.fixture
def folder(tmp_path):
    """A folder with a table of four scores and its ini."""
    write(tmp_path / "t", DATA)
    write(tmp_path / "moses.ini", INI.replace("path=t ", f"path={tmp_path / 't'} ").encode())
    return tmp_path


def edit_of(folder, weight=0.25):
    ini, table, *outputs = (str(folder / name) for name in ("moses.ini", "t", "more.gz", "more.ini"))
    return IniEdit.of(ini_of_table(table, ini), table, *outputs, weight)


def request_of(folder, models=(), **options):
    return AnnotateRequest(str(folder / "t"), str(folder / "more.gz"), [str(model) for model in models], **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("models", [0, 1, 2])
@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("forced", [False, True])
def test_the_ini_has_a_weight_for_every_column(folder, model_folder, models, own, forced):
    if not models + own + forced:
        with pytest.raises(ValueError, match="nothing to append"):
            annotate(request_of(folder, edit=edit_of(folder)))
        assert names(folder) == ["moses.ini", "t"]
        return
    pairs = str(write(folder / "pairs", b"das ||| the ||| 2\n" + b"|||".join(DATA.split(b"|||")[:2]) + b"||| 1\n"))
    request = request_of(
        folder, [model_folder] * models, forced_pairs=pairs if forced else None, edit=edit_of(folder)
    )  # fmt: skip
    assert request.columns == 2 * (models + forced)
    counts = annotate(request, more=[ColumnSimilarities(1, 3, "raw")] * own)
    more = 2 * (models + own + forced)
    assert naive.cut_columns(read(folder / "more.gz"), more) == DATA
    assert (counts.entries, counts.scores, counts.malformed) == (DATA.count(b"\n"), 4, 0)
    after = read_moses_ini(str(folder / "more.ini"))
    (table,) = [feature for feature in after.features if feature.name == "TranslationModel0"]
    assert table.arguments["num-features"] == str(4 + more)
    assert after.resolve(table.arguments["path"]) == str(folder / "more.gz")
    assert after.weights["TranslationModel0"] == [0.1, 0.2, 0.3, 0.4] + [0.25] * more
    assert after.weights["Distortion0"] == [0.3]


def test_custom_columns_follow_those_of_models(folder, model_folder):
    custom = ColumnSimilarities(1, 3, "raw")
    annotate(request_of(folder, [model_folder], scale="raw"), more=[custom])
    with_custom = read(folder / "more.gz")
    annotate(request_of(folder, [model_folder], scale="raw"))
    assert naive.cut_columns(with_custom, 2) == read(folder / "more.gz")
    for line in naive.parse_table(with_custom, 8)[0]:
        assert line.values[6:] == pytest.approx([min(line.values[1], 1), min(line.values[3], 1)], abs=2e-6)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 300, 1 << 20])
def test_the_scan_changes_no_byte(folder, model_folder, threads, size):
    annotate(request_of(folder, [model_folder]))
    once = read(folder / "more.gz")
    annotate(request_of(folder, [model_folder], scan=TableScan(threads=threads, block_bytes=size)))
    assert read(folder / "more.gz") == once


def test_the_ini_is_renamed_last(folder, model_folder, monkeypatch):
    renamed = []
    rename = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (renamed.append(os.path.basename(b)), rename(a, b))[1])
    annotate(request_of(folder, [model_folder], edit=edit_of(folder)))
    assert renamed == ["more.gz", "more.ini"]


def test_both_files_or_none(folder, model_folder):
    edit = edit_of(folder)
    write(folder / "t", DATA + b"no entry\n")
    with pytest.raises(DataError, match="t:165: expected at least 3 fields"):
        annotate(request_of(folder, [model_folder], edit=edit))
    # The table has changed since the ini was checked.
    write(folder / "t", TABLES["lattice"])
    with pytest.raises(DataError, match="num-features=4, but the entries of the table have 2 scores"):
        annotate(request_of(folder, [model_folder], edit=edit))
    assert names(folder) == ["moses.ini", "t"]


def test_errors_of_an_ini_are_found_before_any_work(folder):
    write(folder / "t", MALFORMED)
    message = r"moses.ini:5: TranslationModel0 has num-features=4, but the entries of the table have 2 scores"
    with pytest.raises(DataError, match=message):
        edit_of(folder)
    (folder / "t").unlink()
    with pytest.raises(DataError, match="t: No such file"):
        edit_of(folder)


def test_a_table_without_entries_fits_any_ini(folder, model_folder):
    write(folder / "t", b"")
    edit = edit_of(folder)
    assert edit.scores == 4
    edit.check(-1)
    annotate(request_of(folder, [model_folder], edit=edit, scan=TableScan(allow_empty=True)))
    assert read(folder / "more.gz") == b""
    assert b"num-features=6" in read(folder / "more.ini")


def test_an_ini_for_a_given_number_of_columns(folder):
    with Output(str(folder / "more.ini")) as out:
        edit_of(folder, -0.5).write_to(out, 3)
    result = read_moses_ini(str(folder / "more.ini"))
    assert result.weights["TranslationModel0"] == [0.1, 0.2, 0.3, 0.4, -0.5, -0.5, -0.5]


class Listening(Watch):
    def __init__(self):
        self.said = []

    def say(self, message):
        self.said.append(message)


@pytest.mark.parametrize("pruned", [False, True])
def test_smoothing_a_pruned_table_is_reported(tmp_path, pruned):
    """Pairs that were seen only once are missing from a pruned table."""
    lines = naive.split_lines(read(GOLDEN / "table.3.gz"))
    if pruned:
        lines = [line for line in lines if float(line.split(b"|||")[4].split()[2]) > 1]
    write(tmp_path / "t", b"".join(lines))
    watch = Listening()
    counts = annotate(request_of(tmp_path, smoothing="kneser-ney"), watch)
    assert counts.entries == len(lines) > 0
    assert [("no entry of" in text and "was seen only once" in text) for text in watch.said] == [True] * pruned
