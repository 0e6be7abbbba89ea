"""What interrupted work left is taken, and nothing else; tables come out the same bytes."""

import hashlib
import json

import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs.annotate import AnnotateCounts
from moses_compat.jobs.annotate_tables import AnnotateRequest, annotate
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.prune_tables import prune
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.tables import finished_blocks
from moses_compat.tables.blocks import TableScan, raw_blocks
from moses_compat.tables.finished_blocks import FinishedBlocks, follow_blocks, settings_of
from moses_compat.tables.parser import scan_lines
from moses_compat.tables.source_order import SourceOrder
from phrasetool import pipeline
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from tests.commands import read, write
from tests.tables import TABLES

DATA = TABLES["seven fields"]


class PowerCut(Exception):
    """The end comes from outside."""


@pytest.fixture(autouse=True)
def keep_everything_at_once(monkeypatch):
    monkeypatch.setattr(finished_blocks, "SECONDS", 0.0)


@pytest.fixture
def cut_after(monkeypatch):
    """Lets so many blocks be worked on, in all runs, and counts them."""
    done = []

    def install(blocks):
        done.clear()

        def run(items, work, threads):
            def counted(item):
                if len(done) == blocks:
                    raise PowerCut
                done.append(item)
                return work(item)

            return pipeline.run(items, counted, threads)

        monkeypatch.setattr(finished_blocks, "run", run)
        return done

    return install


def sizes(folder, finished, size=300):
    """The number of bytes of each block, made by way of `finished`."""
    path = folder / "table"
    with Input(str(path)) as source:
        scan = TableScan(block_bytes=size, finished=finished)
        order = SourceOrder(source, scan)

        def work(item):
            raw = item[0]
            look = order.look(raw, scan_lines(raw.text, line_offsets=raw.line_offsets))
            return look, (len(raw.text), np.arange(2, dtype=np.int32), AnnotateCounts(raw.lines))

        items = ((raw, None) for raw in raw_blocks(source, size))
        return [made[0] for _, made in follow_blocks("sizes", items, work, order, scan)]


def test_what_was_made_is_not_made_again(tmp_path, cut_after):
    path = write(tmp_path / "table", DATA)
    done = cut_after(-1)
    wanted = sizes(tmp_path, None)
    blocks = len(done)
    assert blocks > 4
    folder = tmp_path / "out.unfinished"
    for stop in (0, 1, 3):
        done = cut_after(stop)
        with pytest.raises(PowerCut), FinishedBlocks(str(tmp_path / "out"), str(path), {"a": "1"}) as finished:
            sizes(tmp_path, finished)
    assert len(list(folder.glob("sizes-*.blocks"))) == 4
    done = cut_after(-1)
    with FinishedBlocks(str(tmp_path / "out"), str(path), {"a": "1"}) as finished:
        assert sizes(tmp_path, finished) == wanted
        assert (finished.blocks, len(done)) == (4, blocks - 4)
    assert not folder.exists()


def left_over(tmp_path, cut_after):
    """A folder with one finished block."""
    path = write(tmp_path / "table", DATA)
    cut_after(1)
    with pytest.raises(PowerCut), FinishedBlocks(str(tmp_path / "out"), str(path), {"a": "1"}) as finished:
        sizes(tmp_path, finished)
    cut_after(-1)
    return tmp_path / "out.unfinished"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: None, "is of another run: a was 1, and is 2; delete the folder to begin anew"),
        (lambda folder: (folder.parent / "table").write_bytes(DATA[:-9] + b"\n"), "is of another run: table was "),
        (lambda folder: (folder / "settings.json").write_text("[" * 9), r"settings\.json: is damaged"),
    ],
)
def test_another_run(tmp_path, cut_after, change, message):
    folder = left_over(tmp_path, cut_after)
    change(folder)
    value = "2" if "a was" in message else "1"
    with pytest.raises(DataError, match=message), FinishedBlocks(
        str(tmp_path / "out"), str(tmp_path / "table"), {"a": value}
    ):  # fmt: skip
        pass
    assert folder.is_dir()


def test_a_table_that_changed_where_nobody_looks(tmp_path, cut_after, monkeypatch):
    monkeypatch.setattr(finished_blocks, "_HEAD_BYTES", 10)
    folder = left_over(tmp_path, cut_after)
    changed = bytearray(DATA)
    changed[20] ^= 1
    (tmp_path / "table").write_bytes(changed)
    with FinishedBlocks(str(tmp_path / "out"), str(tmp_path / "table"), {"a": "1"}) as finished, pytest.raises(
        DataError, match="was made of another table than "
    ):  # fmt: skip
        sizes(tmp_path, finished)
    assert not folder.exists()


def test_damaged_and_hostile_files(tmp_path, cut_after):
    folder = left_over(tmp_path, cut_after)
    path = next(folder.glob("*.blocks"))
    good = path.read_bytes()
    header = b'{"object": "os:mkdir", "parts": ["sentinel"]}'
    evil = len(header).to_bytes(8, "little") + header
    for data in (good[:-1], good[:20] + b"x" + good[21:], b"", hashlib.blake2b(evil, digest_size=16).digest() + evil):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"\.blocks: is damaged"), FinishedBlocks(
            str(tmp_path / "out"), str(tmp_path / "table"), {"a": "1"}
        ) as finished:  # fmt: skip
            sizes(tmp_path, finished)


def test_where_nothing_can_be_kept(tmp_path):
    path = write(tmp_path / "table", DATA)
    for output, table in (("-", path), ("/dev/null", path), (tmp_path / "out", "-")):
        with pytest.raises(PhraseToolError, match="expected files to read and to write"):
            FinishedBlocks(str(output), str(table), {})
    (tmp_path / "out.unfinished").write_text("")
    with pytest.raises(PhraseToolError, match=r"out\.unfinished: cannot write: "), FinishedBlocks(
        str(tmp_path / "out"), str(path), {}
    ):  # fmt: skip
        pass


def test_settings_are_what_files_hold(tmp_path, cut_after):
    file, folder = write(tmp_path / "file", b"abc"), tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({}))
    request = PruneRequest("t", threshold=Threshold.of(0.5), ini=str(file), model_folder=str(folder), seed=3)
    before = settings_of(request, ("table",))
    assert "table" not in before
    assert (before["seed"], before["ini"][:7], before["model folder"][:7]) == ("3", "3 bytes", "2 bytes")
    file.write_bytes(b"abd")
    after = settings_of(request, ("table",))
    assert {name for name in before if before[name] != after[name]} == {"ini"}


REQUESTS = {
    "threshold": {"threshold": Threshold.of(0.6)},
    "size": {"target_size": 0.7},
    "size by a method": {"target_size": 0.5, "method": "probability+semantic"},
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", REQUESTS.values(), ids=REQUESTS)
def test_interrupted_pruning_goes_on(tmp_path, cut_after, options, threads):
    table, out = write(tmp_path / "t", DATA), tmp_path / "out.gz"
    files = {name: str(tmp_path / name) for name in ("rejected", "reasons", "stats")}
    request = PruneRequest(
        str(table), columns=(1, 3), scale="raw", output=str(out), block_bytes=300, threads=threads, **files, **options
    )
    prune(request)
    wanted = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("out.gz", *files):
        (tmp_path / name).unlink()
    resumed = PruneRequest(**{**vars(request), "resume": True})
    stops = 0
    while True:
        done = cut_after(3)
        try:
            result = prune(resumed)
            break
        except PowerCut:
            stops += 1
            assert len(done) == 3
            assert not out.exists()
    assert stops > 2
    assert isinstance(result.statistics, PruneStatistics)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == wanted


def test_interrupted_annotation_goes_on(tmp_path, cut_after):
    table = write(tmp_path / "t.gz", DATA)
    request = AnnotateRequest(str(table), str(tmp_path / "out.gz"), scan=TableScan(block_bytes=300), resume=True)
    sources = [ColumnSimilarities(1, 3, "raw")]
    done = cut_after(-1)
    wanted = annotate(request, more=sources)
    data, blocks = read(tmp_path / "out.gz"), len(done)
    (tmp_path / "out.gz").unlink()
    cut_after(2)
    with pytest.raises(PowerCut):
        annotate(request, more=sources)
    assert (tmp_path / "out.gz.unfinished").is_dir()
    done = cut_after(-1)
    assert annotate(request, more=sources) == wanted
    assert len(done) == blocks - 2
    assert read(tmp_path / "out.gz") == data
    assert not (tmp_path / "out.gz.unfinished").exists()


def test_who_ends_well_without_it_needs_no_leftovers(tmp_path, cut_after):
    folder = left_over(tmp_path, cut_after)
    annotate(AnnotateRequest(str(tmp_path / "table"), str(tmp_path / "out")), more=[ColumnSimilarities(1, 3, "raw")])
    assert not folder.exists()
