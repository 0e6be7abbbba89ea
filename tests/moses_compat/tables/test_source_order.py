"""A source that comes back is found wherever blocks end and however the table comes, and nothing else is."""

import contextlib
import gzip
import os
import random
import re
import threading

import pytest

from moses_compat.files import notices
from moses_compat.files.streams import Input
from moses_compat.tables import source_order
from moses_compat.tables.blocks import TableScan, raw_blocks
from moses_compat.tables.parser import scan_lines
from moses_compat.tables.source_order import FEW_LINES, SourceOrder
from phrasetool.errors import DataError
from tests.commands import write

ENTRY = " ||| x ||| 1\n"


@pytest.fixture
def strict(monkeypatch):
    """Tables of a few lines are refused, too; and a pipe is no other one that was here before."""
    monkeypatch.setattr(source_order, "FEW_LINES", 0)
    monkeypatch.setattr(notices, "read_pipes", None)


def look_through(path, scan, block_bytes=30, needed=True, whole_groups=True):
    """What comes out of the blocks, which is their first entries."""
    with Input(str(path)) as source:
        order = SourceOrder(source, scan, needed)
        looks = (
            (order.look(raw, scan_lines(raw.text, raw.scores)), raw.first_entry)
            for raw in raw_blocks(source, block_bytes, whole_groups=whole_groups)
        )
        return list(order.follow(looks))


def first_return(lines):
    """By hand: the number of the first line whose source stood before others; None if there is none."""
    sources = [(i, " ".join(line.split("|||")[0].split())) for i, line in enumerate(lines, 1) if "|||" in line]
    for k in range(1, len(sources)):
        number, source = sources[k]
        if source != sources[k - 1][1] and source in [other for _, other in sources[:k]]:
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
        # Whoever reads may stop before the end.
        with contextlib.suppress(BrokenPipeError), open(path, "wb") as pipe:
            pipe.write(text)

    os.mkfifo(path)
    writer = threading.Thread(target=send)
    writer.start()
    yield path
    writer.join()
    path.unlink()


def random_lines(rng):
    """Lines of a table: in Moses' order, in another, or in none; some without a source, some with odd blanks."""
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
    found = 0
    for _ in range(150):
        lines = random_lines(rng)
        number = first_return(lines)
        with kind(tmp_path / "t", "".join(lines).encode()) as table:
            if number is None:
                look_through(table, TableScan(), block_bytes, whole_groups=whole)
                continue
            found += 1
            source = " ".join(lines[number - 1].split("|||")[0].split())
            message = f"^{re.escape(str(table))}:{number}: the source {source!r} comes back after others"
            with pytest.raises(DataError, match=message.replace("|", "[|]")):
                look_through(table, TableScan(), block_bytes, whole_groups=whole)
    assert 40 < found < 110


def test_of_a_sorted_table_nothing_is_kept(tmp_path, monkeypatch):
    rng = random.Random(1)
    words = sorted({" ".join(rng.choices("abcdefg", k=rng.randint(1, 4))) + " |||" for _ in range(300)})
    table = write(tmp_path / "t", "".join(f"{word} x ||| 1\n" * 2 for word in words).encode())
    monkeypatch.setattr(source_order, "Hashed", None)
    monkeypatch.setattr(source_order, "side_keys", None)
    assert len(look_through(table, TableScan())) > 100


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_whatever_blanks_are_written(tmp_path, strict, block_bytes):
    rng = random.Random(8)
    found = 0
    for _ in range(400):
        sources = {"".join(rng.choices("ab |\t\x01", [3, 3, 3, 1, 1, 1], k=rng.randint(1, 5))) for _ in range(12)}
        lines = sorted(source + "||| x ||| 1\n" for source in sources if "||" not in source + "|")
        number = first_return(lines)
        table = write(tmp_path / "t", "".join(lines).encode())
        if number is None:
            look_through(table, TableScan(), block_bytes)
            continue
        found += 1
        with pytest.raises(DataError, match=f"t:{number}: the source"):
            look_through(table, TableScan(), block_bytes)
    assert 100 < found < 380


def test_two_spellings_of_a_source_between_which_another_ascends(tmp_path, strict):
    table = write(tmp_path / "t", f"a  b{ENTRY}a a{ENTRY}a b{ENTRY}".encode())
    with pytest.raises(DataError, match="t:3: the source 'a b' comes back"):
        look_through(table, TableScan())


def test_a_table_that_has_lost_lines_when_it_is_read_again(tmp_path, strict):
    table = write(tmp_path / "t", f"b{ENTRY}c{ENTRY}a{ENTRY}".encode())
    with Input(str(table)) as source:
        order = SourceOrder(source, TableScan())
        raws = list(raw_blocks(source, 1))
        write(table, f"b{ENTRY}".encode())
        with pytest.raises(DataError, match="has 1 lines now, but had 2 when"):
            list(order.follow((order.look(raw, scan_lines(raw.text)), None) for raw in raws))


def test_blanks_make_no_other_source_and_faulty_lines_none(tmp_path, strict):
    text = f"no bars\n\na  b{ENTRY}a b{ENTRY}b{ENTRY}\n a\tb{ENTRY}"
    with pytest.raises(DataError, match="t:7: the source 'a b' comes back"):
        look_through(write(tmp_path / "t", text.encode()), TableScan())


def test_by_force_it_is_said_once(tmp_path, strict):
    said = []
    table = write(tmp_path / "t", (f"a{ENTRY}b{ENTRY}" * 3).encode())
    look_through(table, TableScan(force=True, warn=said.append))
    (message,) = said
    assert "t:3: the source 'a' comes back" in message


def test_where_the_order_does_not_matter_nothing_is_said(tmp_path, strict):
    table = write(tmp_path / "t", (f"a{ENTRY}b{ENTRY}" * 3).encode())
    assert look_through(table, TableScan(), 1, needed=False) == list(range(6))


def test_a_table_of_a_few_lines_is_warned_of(tmp_path):
    said, entry = [], f"a{ENTRY}b{ENTRY}".encode()
    scan = TableScan(warn=said.append)
    look_through(write(tmp_path / "t", entry * (FEW_LINES // 2)), scan)
    assert len(said) == 1
    with pytest.raises(DataError, match=r"t:3: the source 'a' comes back"):
        look_through(write(tmp_path / "t", entry * (FEW_LINES // 2 + 1)), scan)
