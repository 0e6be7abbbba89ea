"""Detection of sources that come back, compared with a dictionary, and resumption of interrupted runs.

Interrupted pruning and annotation are resumed and give the same output, byte for byte.

Exactly the sources that come back are found, whatever the ends of blocks and the kind of input.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import re
import threading

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moses_compat.files import paths
from moses_compat.files.streams import Input
from moses_compat.jobs.annotate import AnnotateRequest, annotate
from moses_compat.jobs.prune import prune
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.measures.similarities import ColumnSimilarities, EncoderRequest
from moses_compat.tables import source_order
from moses_compat.tables.blocks import TableScan, raw_blocks
from moses_compat.tables.parser import scan_lines
from moses_compat.tables.source_order import FEW_LINES, SourceGroups, SourceOrder, read_prefixes
from phrasetool.errors import DataError
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from tests.commands import read, write
from tests.power_cuts import PowerCut, cut_after
from tests.tables import TABLES
from tests.text_encoder_folders import static_folder, table_lines

ENTRY = " ||| x ||| 1\n"
__all__ = ["cut_after"]
DATA = TABLES["seven fields"]
REQUESTS = {
    "threshold": {"threshold": Threshold.of(0.6)},
    "size": {"target_size": 0.7},
    "size by a method": {"target_size": 0.5, "method": "probability+semantic"},
}
# Few hashes, so that many come back; 0 is no source.  A byte holds sizes up to 255.
GROUP = st.tuples(st.integers(0, 6), st.sampled_from([1, 2, 254, 255, 256, 511, 70_000]))


@pytest.fixture
def strict(monkeypatch):
    """Refuse tables of a few lines, too, and allow a pipe of the same inode to be read again."""
    monkeypatch.setattr(source_order, "FEW_LINES", 0)
    monkeypatch.setattr(paths, "read_pipes", None)


def look_through(path, scan, block_bytes=30, needed=True, whole_groups=True):
    """Return the results of the blocks, which are the numbers of their first entries."""
    with Input(str(path)) as source:
        order = SourceOrder(source, scan, needed)
        looks = (
            (order.look(raw, scan_lines(raw.text, raw.scores)), raw.first_entry)
            for raw in raw_blocks(source, block_bytes, whole_groups=whole_groups)
        )
        return list(order.follow(looks))


def first_return(lines):
    """Return the number of the first line whose source occurred before other sources; None if there is none."""
    sources = [(i, " ".join(line.split("|||")[0].split())) for i, line in enumerate(lines, 1) if "|||" in line]
    for k in range(1, len(sources)):
        number, source = sources[k]
        if source != sources[k - 1][1] and source in [earlier for _, earlier in sources[:k]]:
            return number
    return None


@contextlib.contextmanager
def as_file(path, text):
    yield write(path, text)


@contextlib.contextmanager
def as_gzip(path, text):
    yield write(path, gzip.compress(text))


@contextlib.contextmanager
def as_pipe(path, text):
    def send():
        # The reader may stop before the end.
        with contextlib.suppress(BrokenPipeError), open(path, "wb") as pipe:
            pipe.write(text)

    os.mkfifo(path)
    writer = threading.Thread(target=send)
    writer.start()
    yield path
    writer.join()
    path.unlink()


def random_lines(rng):
    """Return lines of a table in Moses' order, another or none; some without a source, some with odd white space."""
    words = rng.sample(["a", "a b", "b", "a !", "\u00e9", "c d", "c", "z", "A", "ab", "a|", "a b c"], rng.randint(1, 9))
    kind = rng.randrange(5)
    if kind == 0:
        words.sort(key=str.lower)
    sources = [word for word in words for _ in range(rng.randint(1, 3))]
    if kind > 0:
        sources.sort(key=lambda source: (source + " |||").encode())
    if kind == 2:
        rng.shuffle(sources)
    if kind == 3:
        sources.insert(rng.randrange(len(sources) + 1), rng.choice(sources))
    lines = [source + ENTRY for source in sources]
    if kind == 4:
        lines = [line.replace(" ", rng.choice(["  ", "\t", " "]), rng.randint(1, 2)) for line in lines]
        lines = [rng.choice(["", "", " "]) + line for line in lines]
    if rng.random() < 0.3:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(["\n", "no bars\n", "a ||| x\n"]))
    return lines


@pytest.mark.parametrize(
    ("block_bytes", "whole"), [(1, True), (30, True), (1 << 20, True), (1, False), (30, False), (60, False)]
)
@pytest.mark.parametrize("kind", [as_file, as_gzip, as_pipe])
def test_the_first_source_that_comes_back(tmp_path, strict, block_bytes, whole, kind):
    rng = random.Random(4)
    result = 0
    for _ in range(150):
        lines = random_lines(rng)
        number = first_return(lines)
        with kind(tmp_path / "t", "".join(lines).encode()) as table:
            if number is None:
                look_through(table, TableScan(), block_bytes, whole_groups=whole)
                continue
            result += 1
            source = " ".join(lines[number - 1].split("|||")[0].split())
            message = f"^{re.escape(str(table))}:{number}: the source {source!r} occurs again after other sources"
            with pytest.raises(DataError, match=message.replace("|", "[|]")):
                look_through(table, TableScan(), block_bytes, whole_groups=whole)
    assert 40 < result < 110


def test_nothing_is_stored_for_a_sorted_table(tmp_path, monkeypatch):
    rng = random.Random(1)
    words = sorted({" ".join(rng.choices("abcdefg", k=rng.randint(1, 4))) + " |||" for _ in range(300)})
    table = write(tmp_path / "t", "".join(f"{word} x ||| 1\n" * 2 for word in words).encode())
    monkeypatch.setattr(source_order, "Hashed", None)
    monkeypatch.setattr(source_order, "side_keys", None)
    assert len(look_through(table, TableScan())) > 100


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_any_white_space(tmp_path, strict, block_bytes):
    rng = random.Random(8)
    result = 0
    for _ in range(400):
        sources = {"".join(rng.choices("ab |\t\x01", [3, 3, 3, 1, 1, 1], k=rng.randint(1, 5))) for _ in range(12)}
        lines = sorted(source + "||| x ||| 1\n" for source in sources if "||" not in source + "|")
        number = first_return(lines)
        table = write(tmp_path / "t", "".join(lines).encode())
        if number is None:
            look_through(table, TableScan(), block_bytes)
            continue
        result += 1
        with pytest.raises(DataError, match=f"t:{number}: the source"):
            look_through(table, TableScan(), block_bytes)
    assert 100 < result < 380


def test_another_source_between_two_spellings_of_a_source(tmp_path, strict):
    table = write(tmp_path / "t", f"a  b{ENTRY}a a{ENTRY}a b{ENTRY}".encode())
    with pytest.raises(DataError, match="t:3: the source 'a b' occurs again"):
        look_through(table, TableScan())


def test_a_table_that_is_shorter_when_it_is_read_again(tmp_path, strict):
    table = write(tmp_path / "t", f"b{ENTRY}c{ENTRY}a{ENTRY}".encode())
    with Input(str(table)) as source:
        order = SourceOrder(source, TableScan())
        raws = list(raw_blocks(source, 1))
        write(table, f"b{ENTRY}".encode())
        with pytest.raises(DataError, match="has 1 lines now, but had 2 when"):
            list(order.follow((order.look(raw, scan_lines(raw.text)), None) for raw in raws))


def test_white_space_and_malformed_lines_do_not_separate_sources(tmp_path, strict):
    text = f"no bars\n\na  b{ENTRY}a b{ENTRY}b{ENTRY}\n a\tb{ENTRY}"
    with pytest.raises(DataError, match="t:7: the source 'a b' occurs again"):
        look_through(write(tmp_path / "t", text.encode()), TableScan())


def test_with_force_there_is_one_warning(tmp_path, strict):
    recorded = []
    table = write(tmp_path / "t", (f"a{ENTRY}b{ENTRY}" * 3).encode())
    look_through(table, TableScan(force=True, warn=recorded.append))
    (message,) = recorded
    assert "t:3: the source 'a' occurs again" in message


def test_without_a_need_for_order_there_is_no_warning(tmp_path, strict):
    table = write(tmp_path / "t", (f"a{ENTRY}b{ENTRY}" * 3).encode())
    assert look_through(table, TableScan(), 1, needed=False) == list(range(6))


def test_a_table_of_a_few_lines_causes_a_warning(tmp_path):
    warnings, entry = [], f"a{ENTRY}b{ENTRY}".encode()
    scan = TableScan(warn=warnings.append)
    look_through(write(tmp_path / "t", entry * (FEW_LINES // 2)), scan)
    assert len(warnings) == 1
    with pytest.raises(DataError, match=r"t:3: the source 'a' occurs again"):
        look_through(write(tmp_path / "t", entry * (FEW_LINES // 2 + 1)), scan)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", REQUESTS.values(), ids=REQUESTS)
def test_interrupted_pruning_is_resumed(tmp_path, cut_after, options, threads):
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
    expected = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("out.gz", *files):
        (tmp_path / name).unlink()
    resumed = PruneRequest(**{**vars(request), "resume": True})
    stops = 0
    while True:
        actual = cut_after(3)
        try:
            result = prune(resumed)
            break
        except PowerCut:
            stops += 1
            assert len(actual) == 3
            assert not out.exists()
    assert stops > 2
    assert isinstance(result.statistics, PruneStatistics)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected


def test_interrupted_annotation_is_resumed(tmp_path, cut_after):
    table = write(tmp_path / "t.gz", DATA)
    request = AnnotateRequest(str(table), str(tmp_path / "out.gz"), scan=TableScan(block_bytes=300), resume=True)
    sources = [ColumnSimilarities(1, 3, "raw")]
    result = cut_after(-1)
    expected = annotate(request, more=sources)
    data, blocks = read(tmp_path / "out.gz"), len(result)
    (tmp_path / "out.gz").unlink()
    cut_after(2)
    with pytest.raises(PowerCut):
        annotate(request, more=sources)
    assert (tmp_path / "out.gz.unfinished").is_dir()
    result = cut_after(-1)
    assert annotate(request, more=sources) == expected
    assert len(result) == blocks - 2
    assert read(tmp_path / "out.gz") == data
    assert not (tmp_path / "out.gz.unfinished").exists()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_store_of_vectors_takes_finished_blocks_into_account(tmp_path, cut_after, threads):
    """Otherwise, phrases of these blocks would seem to belong to another table."""
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


def test_a_successful_run_without_resume_removes_leftovers(tmp_path, cut_after):
    table = write(tmp_path / "t", DATA)
    request = AnnotateRequest(str(table), str(tmp_path / "out"), scan=TableScan(block_bytes=300), resume=True)
    cut_after(1)
    sources = [ColumnSimilarities(1, 3, "raw")]
    with pytest.raises(PowerCut):
        annotate(request, more=sources)
    assert (tmp_path / "out.unfinished").is_dir()
    annotate(AnnotateRequest(str(table), str(tmp_path / "out")), more=sources)
    assert not (tmp_path / "out.unfinished").exists()


@given(st.lists(st.lists(GROUP, max_size=6), max_size=5))
@example([[(1, 256), (1, 1)]])
@example([[(0, 1), (0, 1)]])
@example([[(3, 1)], [], [(2, 300), (3, 1), (2, 1)]])
def test_groups_that_come_back_and_their_first_line(blocks):
    groups = SourceGroups()
    known, returning, line, first = set(), 0, 1, 0
    for block in blocks:
        hashes, sizes = np.array(block, np.int64).reshape(-1, 2).T.copy()
        groups.add(hashes, sizes)
        # The arguments may be overwritten afterwards.
        hashes[:] = sizes[:] = -1
        for number, size in block:
            if number and number in known:
                returning += 1
                first = first or line
            known.add(number)
            line += size
    assert groups.returning() == (returning, first)


SOURCES = st.lists(st.lists(st.sampled_from([b"a", b"b", b"!", b"ab"]), min_size=1, max_size=3), min_size=1, max_size=9)


@given(SOURCES, st.booleans())
def test_beginnings_of_sources(workspace, sources, labelled):
    """Beginnings that come back and the keys of CreateProbingPT equal those of naive Python."""
    text = b"".join(b" ".join([*source, *[b"[X]"] * labelled]) + b" ||| x ||| 1\n" for source in sources)
    with Input(str(write(workspace / "prefixes", text))) as source:
        result = read_prefixes(source, labelled)
    known, returning, first, groups = set(), 0, 0, []
    before = []
    for number, words in enumerate(sources, 1):
        common = next((k for k in range(len(words)) if words[: k + 1] != before[: k + 1]), len(words))
        for size in range(common + 1, len(words) + 1):
            beginning = tuple(words[:size])
            if beginning in known:
                returning, first = returning + 1, first or number
            known.add(beginning)
        if words != before:
            groups.append(max(len(words) - common, 1))
        before = words
    assert (result.returning, result.first, result.sources) == (returning, first, len(groups))
    assert result.keys == sum(groups[:-1]) + 1
