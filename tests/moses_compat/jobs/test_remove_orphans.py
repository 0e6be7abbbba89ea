import gzip
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.remove_orphans import remove_orphans, table_pairs
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests import naive, naive_reordering
from tests.commands import read, write
from tests.tables import TABLES
from tests.variants import for_each


def in_step(folder, table, reordering, name="out", **options):
    """Remove the orphans of a reordering table on disk; return the output and the counts."""
    paths = write(folder / "table", table), write(folder / "reordering", reordering), folder / name
    with Input(str(paths[0])) as entries, Input(str(paths[1])) as source, Output(str(paths[2])) as output:
        shared = {name: value for name, value in options.items() if name != "on_error"}
        pairs = table_pairs(entries, TableScan("keep", **shared))
        counts = remove_orphans(source, output, pairs, TableScan(force=True, **options))
    return read(paths[2]), counts


def blanks(smallest):
    return st.sampled_from([b"", b" ", b" ", b" ", b"  ", b"\t", b" \t "][smallest:])


@st.composite
def lines(draw, scores):
    """Draw a line of few words with varying white space; sometimes a malformed one."""
    word = st.sampled_from([b"das", b"haus", b"gr\xfcn", b"w|NN", b"|", b"[X]"])
    sides = []
    for least in (1, 0):
        words = draw(st.lists(word, min_size=least, max_size=2))
        gaps = [draw(blanks(1)) for _ in words]
        sides.append(draw(blanks(1)) + b"".join(w + gap for w, gap in zip(words, gaps, strict=True)))
    numbers = [b"0.2"] * draw(st.sampled_from([scores] * 20 + [scores + 1, 0]))
    numbers += draw(st.sampled_from([[]] * 20 + [[b"x"], [b"nan"]]))
    line = sides[0].lstrip(b" \t") + b"|||" + sides[1] + b"|||" + draw(blanks(0)) + b" ".join(numbers)
    line += draw(st.sampled_from([b"", b"", b" ", b"  ", b" ||| 0-0 ||| 1 1 1"]))
    malformed = draw(st.integers(0, 30))
    return {0: b"", 1: b"das ||| haus", 2: b"das"}.get(malformed, line)


@st.composite
def tables(draw, scores):
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))
    data = b"".join(line + end for line in draw(st.lists(lines(scores), max_size=25)))
    return data[: -len(end)] if draw(st.booleans()) else data


blocks = st.sampled_from([1, 40, 200, 1 << 21])


@settings(max_examples=200)
@given(tables(2), tables(6), st.sampled_from(["skip", "keep"]), blocks, st.sampled_from([1, 2]))
def test_agrees_with_naive(workspace, table, reordering, on_error, block_bytes, threads):
    out, counts = in_step(workspace, table, reordering, on_error=on_error, threads=threads, block_bytes=block_bytes)
    assert out == naive_reordering.in_step(table, reordering, on_error)
    assert counts.as_dict() == naive_reordering.counts(table, reordering, on_error)


@given(tables(2), st.randoms(use_true_random=False), st.booleans(), blocks)
def test_all_lines_of_remaining_pairs_are_kept(workspace, table, rng, newline, block_bytes):
    """The reordering table has the pairs of the table in another order, some twice, and foreign pairs in between."""
    good = [line for line in naive.parse_table(table)[0] if line.fault == "ok"]
    rows = [b"%s ||| %s ||| 0.1 0.9 " % (line.source.strip(), line.target.strip()) for line in good]
    kept = rng.choices(rows, k=2 * len(rows)) + rows if rows else []
    orphans = [b"nie %d ||| gesehen ||| 0.1 0.9" % i for i in range(10)]
    mixed = kept + orphans
    rng.shuffle(mixed)
    out, counts = in_step(
        workspace, table, b"\n".join(mixed) + b"\n" * newline, on_error="fail", block_bytes=block_bytes
    )
    assert out == b"".join(row + b"\n" for row in mixed if row in kept)
    # Only pairs of lines that are malformed otherwise may have no line.
    malformed = {naive_reordering.pair(line) for line in naive.parse_table(table)[0]} - {None}
    assert counts.pairs_without_line == len(malformed - {naive_reordering.pair(line) for line in good})
    assert counts.orphans == len(orphans)


@for_each("table", TABLES)
def test_moses_tables(tmp_path, table):
    """The table itself as reordering table has no orphans; with half of the table, orphans are removed."""
    out, counts = in_step(tmp_path, table, table)
    newline = bool(table) and not table.endswith(b"\n")
    assert out == table + b"\n" * newline
    assert counts.newline_added == newline
    assert counts.pairs_without_line == counts.orphans == 0
    half = b"".join(naive.split_lines(table)[::2])
    out, counts = in_step(tmp_path, half, table, name="half.gz")
    assert out == naive_reordering.in_step(half, table)
    assert counts.as_dict() == naive_reordering.counts(half, table)


@pytest.mark.parametrize("name", ["reordering", "reordering trailing space"])
def test_threads_and_blocks_change_nothing(tmp_path, name):
    rows = naive.split_lines(TABLES[name]) * 30
    rows = [b"%d %s" % (i, row) for i, row in enumerate(rows)]
    table = b"".join(rows[::3])
    random.Random(1).shuffle(rows)
    outputs = set()
    for threads in (1, 2, 3):
        for block_bytes in (100, 7777, 1 << 21):
            out, counts = in_step(tmp_path, table, b"".join(rows), threads=threads, block_bytes=block_bytes)
            outputs.add((out, *counts.as_dict().values()))
    assert len(outputs) == 1
    assert next(iter(outputs))[0] == naive_reordering.in_step(table, b"".join(rows))


@for_each(
    ("line", "message"),
    [
        (b"das ||| the ||| 0.5 0.25 0.125", "expected 2 scores as on the lines before, found 3"),
        (b"das ||| the ||| 0.5", "expected 2 scores as on the lines before, found 1"),
        (b"das ||| the ||| 0.5 nan", "a score is NaN"),
        (b"das ||| the ||| 0.5 0.x", "a score is not a number"),
        (b"das ||| the", "expected at least 3 fields separated by |||, found 2"),
        (b"", "expected at least 3 fields separated by |||, found 1"),
    ],
)
@for_each("block_bytes", [1, 1 << 21])
def test_a_malformed_line(tmp_path, line, message, block_bytes):
    reordering = b"haus ||| house ||| 0.5 0.5\ndas ||| a ||| 0.5 0.5\n" + line + b"\n"
    with pytest.raises(DataError, match=r"reordering:3: ") as error:
        in_step(tmp_path, b"das ||| the ||| 1\n", reordering, block_bytes=block_bytes)
    assert message in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_table_of_sources_alone(tmp_path):
    with pytest.raises(DataError, match="names no pairs"):
        in_step(tmp_path, b"das ||| the ||| 1\n", b"das ||| 0.5 0.5\nhaus ||| 0.5 0.5\n")


@pytest.mark.parametrize("block_bytes", [1, 1 << 21])
@pytest.mark.parametrize(("line", "found"), [(b"haus ||| house", 2), (b"", 1)])
def test_a_phrase_table_with_a_line_without_a_pair(tmp_path, line, found, block_bytes):
    path = write(tmp_path / "table", b"das ||| the ||| 1\n" + line + b"\nist ||| is ||| x y\n")
    with Input(str(path)) as source, pytest.raises(DataError, match=rf"table:2: expected .*, found {found}$"):
        table_pairs(source, TableScan(block_bytes=block_bytes))
    for on_error in ("skip", "keep"):
        with Input(str(path)) as source:
            assert len(table_pairs(source, TableScan(on_error))) == 2


def test_progress_and_gzip(tmp_path):
    line_counts = []
    scan = TableScan(block_bytes=500, progress=lambda position, lines: line_counts.append(lines))
    path = write(tmp_path / "t.gz", TABLES["reordering"])
    with Input(str(path)) as source:
        pairs = table_pairs(source, scan)
    with Input(str(path)) as source, Output(str(tmp_path / "o.gz")) as output:
        remove_orphans(source, output, pairs, scan)
    lines = TABLES["reordering"].count(b"\n")
    assert len(line_counts) > 4
    assert line_counts.count(lines) == 2
    assert line_counts == sorted(line_counts[: len(line_counts) // 2]) * 2
    assert gzip.decompress((tmp_path / "o.gz").read_bytes()) == TABLES["reordering"]
