"""A source that comes back is found wherever blocks end, and nothing else is."""

import random

import pytest

from moses_compat.files.streams import Input
from moses_compat.tables.blocks import TableScan, raw_blocks
from moses_compat.tables.parser import scan_lines
from moses_compat.tables.source_order import FEW_LINES, SourceLook, SourceOrder
from phrasetool.errors import DataError
from tests.commands import write


def go_through(path, scan, block_bytes=30, lines_before=FEW_LINES):
    with Input(str(path)) as source:
        order = SourceOrder("t", scan)
        for raw in raw_blocks(source, block_bytes):
            found = scan_lines(raw.text, raw.scores)
            look = SourceLook.of(raw.text, found.line_offsets, found.source_ends, found.group_offsets)
            order.add(raw.first_entry + lines_before, look)
        order.finish()


def first_return(sources):
    """By hand: the number of the first line whose source stood before others; None if there is none."""
    for i in range(1, len(sources)):
        if sources[i] != sources[i - 1] and sources[i] in sources[:i]:
            return i + 1
    return None


@pytest.mark.parametrize("block_bytes", [1, 30, 1 << 20])
def test_the_first_source_that_comes_back(tmp_path, block_bytes):
    rng = random.Random(4)
    found = 0
    for _ in range(60):
        words = rng.sample(["a", "a b", "b", "a !", "\u00e9", "c d", "c", "z"], rng.randint(1, 8))
        sources = [word for word in words for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.6:
            rng.shuffle(sources)
        table = write(tmp_path / "t", b"".join(f"{source} ||| x ||| 1\n".encode() for source in sources))
        line = first_return(sources)
        if line is None:
            go_through(table, TableScan(), block_bytes)
            continue
        found += 1
        with pytest.raises(
            DataError, match=f"^t:{FEW_LINES + line}: the source '{sources[line - 1]}' comes back after others"
        ):
            go_through(table, TableScan(), block_bytes)
    assert 20 < found < 50


def test_blanks_make_no_other_source_and_faulty_lines_none(tmp_path):
    table = write(tmp_path / "t", b"no bars\n\na  b ||| x ||| 1\na b ||| y ||| 1\nb ||| x ||| 1\n\n a\tb ||| z ||| 1\n")
    with pytest.raises(DataError, match=f"t:{FEW_LINES + 7}: the source 'a b' comes back"):
        go_through(table, TableScan())


def test_by_force_it_is_said_once(tmp_path):
    said = []
    table = write(tmp_path / "t", b"a ||| x ||| 1\nb ||| x ||| 1\n" * 3)
    go_through(table, TableScan(force=True, warn=said.append))
    (message,) = said
    assert message.startswith(f"t:{FEW_LINES + 3}: the source 'a' comes back")


def test_a_table_of_a_few_lines_is_warned_of(tmp_path):
    said, entry = [], b"a ||| x ||| 1\nb ||| x ||| 1\n"
    scan = TableScan(warn=said.append)
    go_through(write(tmp_path / "t", entry * (FEW_LINES // 2)), scan, lines_before=0)
    assert len(said) == 1
    with pytest.raises(DataError, match=r"^t:3: the source 'a' comes back"):
        go_through(write(tmp_path / "t", entry * (FEW_LINES // 2 + 1)), scan, lines_before=0)
