"""Pruning and annotation that were interrupted go on, and end with the same bytes."""

import pytest

from moses_compat.jobs.annotate import AnnotateRequest, annotate
from moses_compat.jobs.prune import prune
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.measures.similarity_requests import EncoderRequest
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from tests.commands import read, write
from tests.power_cuts import PowerCut, cut_after
from tests.tables import TABLES
from tests.text_encoder_folders import static_folder, table_lines

__all__ = ["cut_after"]
DATA = TABLES["seven fields"]
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
        str(table),
        columns=(1, 3),
        scale="raw",
        output=str(out),
        scan=TableScan(threads=threads, block_bytes=300),
        **files,
        **options,
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


@pytest.mark.parametrize("threads", [1, 2])
def test_a_store_of_vectors_knows_of_blocks_that_were_finished(tmp_path, cut_after, threads):
    """Else the phrases of these would seem to be of another table."""
    table, store = write(tmp_path / "t", table_lines(400)), str(tmp_path / "store")
    encoder = EncoderRequest(str(static_folder(tmp_path / "static")), store=store)
    scan, plain = TableScan(block_bytes=2000, threads=threads), str(tmp_path / "plain")
    annotate(AnnotateRequest(str(table), plain, encoder=encoder, scan=scan))
    pruning = {"table": str(table), "encoder": encoder, "scan": scan}
    for options in ({"threshold": Threshold.of(0.5)}, {"target_size": 0.5, "method": "probability+semantic"}):
        prune(PruneRequest(**pruning, **options, output=f"{plain}-pruned"))
        cut_after(3)
        with pytest.raises(PowerCut):
            prune(PruneRequest(**pruning, **options, output=str(tmp_path / "pruned"), resume=True))
        cut_after(-1)
        prune(PruneRequest(**pruning, **options, output=str(tmp_path / "pruned"), resume=True))
        assert read(tmp_path / "pruned") == read(tmp_path / "plain-pruned")
    request = AnnotateRequest(str(table), str(tmp_path / "out"), encoder=encoder, scan=scan, resume=True)
    cut_after(3)
    with pytest.raises(PowerCut):
        annotate(request)
    cut_after(-1)
    annotate(request)
    assert read(tmp_path / "out") == read(tmp_path / "plain")


def test_who_ends_well_without_it_needs_no_leftovers(tmp_path, cut_after):
    table = write(tmp_path / "t", DATA)
    request = AnnotateRequest(str(table), str(tmp_path / "out"), scan=TableScan(block_bytes=300), resume=True)
    cut_after(1)
    sources = [ColumnSimilarities(1, 3, "raw")]
    with pytest.raises(PowerCut):
        annotate(request, more=sources)
    assert (tmp_path / "out.unfinished").is_dir()
    annotate(AnnotateRequest(str(table), str(tmp_path / "out")), more=sources)
    assert not (tmp_path / "out.unfinished").exists()
