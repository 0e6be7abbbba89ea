"""The form that binarisers need: deviations from it, and copies in this form."""

import random
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.tables import canonical as sorted_table
from moses_compat.tables.blocks import raw_blocks
from moses_compat.tables.canonical import canonical_line, examine, sort_lines, write_copy
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import read, write
from tests.tables import TABLES

GOOD = b"das ||| the ||| 0.5 0.25 ||| 0-0 ||| 3 2 1 ||| |||\n"


def naive_tokens(line):
    """Return the tokens of the fields of a line, as in Moses' text loader."""
    fields = line.rstrip(b"\n").removesuffix(b"\r").split(b"|||")
    return [[token for token in field.replace(b"\t", b" ").split(b" ") if token] for field in fields]


def naive_form(lines):
    """Return the first lines (from 1; 0: none) that are odd, out of order, of a repeated pair, without an alignment."""
    result = [0, 0, 0, 0]
    for number, line in enumerate(lines, 1):
        fields = naive_tokens(line)
        odd = canonical_line(line) not in (line, line.removesuffix(b" "))
        before = lines[number - 2] if number > 1 else None
        pair = before is not None and b"|||".join(before.split(b"|||")[:2]) == b"|||".join(line.split(b"|||")[:2])
        aligned = len(fields) > 3 and fields[3] != []
        for k, wrong in enumerate((odd, before is not None and line < before, pair, not aligned)):
            if wrong and not result[k]:
                result[k] = number
    return result


@st.composite
def lines_of_tables(draw):
    source = st.sampled_from([b"a", b"a b", b"a  b", b" a", b"b\xc3\xa9", b"a!", b"b ", b"a\tb", b"a\x01"])
    target = st.sampled_from([b"x", b"x y", b"", b"y", b"x  y", b"\xff"])
    scores = st.sampled_from([b"0.5 1", b"0.5 0.25", b"0.5  1", b"1 1 "])
    rest = st.sampled_from([b"", b" |||", b" ||| 0-0", b" ||| 0-0 ||| 1 1 1 ||| |||", b" ||| ||| 1 1 1", b"||| 0-0"])
    separator = st.sampled_from([b" ||| ", b" ||| ", b" ||| ", b"|||", b"  ||| "])

    def line():
        return draw(source) + b" ||| " + draw(target) + draw(separator) + draw(scores) + draw(rest)

    lines = [line() for _ in range(draw(st.integers(1, 8)))]
    return sorted(lines) if draw(st.booleans()) else lines


@given(lines_of_tables(), st.booleans())
def test_deviations_from_the_form(workspace, lines, ended):
    path = write(workspace / "table", b"\n".join(lines) + (b"\n" if ended else b""))
    form = examine(str(path))
    result = [form.odd_line, form.unsorted_line, form.duplicate_line, form.unaligned_line]
    expected = naive_form(lines)
    # A good line may count as odd (a space too many at its end), which only causes an unnecessary copy.
    assert bool(result[0]) >= bool(expected[0])
    assert result[1:] == expected[1:]
    assert (form.entries, form.scores) == (len(lines), 2)


@given(lines_of_tables(), st.booleans(), st.booleans())
def test_a_copy_is_ready_and_holds_the_same_entries(workspace, lines, ended, own):
    path = write(workspace / "table", b"\n".join(lines) + (b"\n" if ended else b""))
    copy = workspace / "copy.gz"
    with pytest.MonkeyPatch.context() as patch:
        if own:
            patch.setattr(sorted_table, "_system_sort", lambda: None)
        write_copy(examine(str(path)), str(copy))
    form = examine(str(copy))
    assert form.ready
    assert form.gzip
    copied = read(copy).split(b"\n")
    assert copied.pop() == b""
    assert sorted(map(naive_tokens, copied)) == sorted(map(naive_tokens, lines))
    # Binarisers compare the beginnings of lines.
    keys = [b" ||| ".join(field.strip() for field in line.split(b"|||")[:2]) + b" ||| " for line in copied]
    assert keys == sorted(keys)
    sources = [key.split(b" ||| ")[0] + b" ||| " for key in keys]
    assert sources == sorted(sources)


def test_lines_across_blocks(tmp_path, monkeypatch):
    lines = sorted(b"%d ||| x ||| 0.5" % number for number in range(3000))
    monkeypatch.setattr(sorted_table, "raw_blocks", lambda source: raw_blocks(source, 64))
    form = examine(str(write(tmp_path / "table", b"\n".join(lines))))
    assert (form.entries, form.sources, form.odd_line, form.unsorted_line) == (3000, 3000, 0, 0)
    assert form.unaligned_line == 1
    lines[1500], lines[1501] = lines[1501], lines[1500]
    lines.insert(2500, lines[2499])
    form = examine(str(write(tmp_path / "table", b"\n".join(lines))))
    assert (form.sources, form.unsorted_line, form.duplicate_line) == (3000, 1502, 2501)


def test_a_line_that_begins_like_a_shorter_one(tmp_path):
    shorter, longer = b"a ||| x ||| 1\n", b"a ||| x ||| 1 ||| 0-0\n"
    form = examine(str(write(tmp_path / "table", shorter + longer)))
    assert (form.unsorted_line, form.duplicate_line) == (0, 2)
    assert examine(str(write(tmp_path / "table", longer + shorter))).unsorted_line == 2


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("run_bytes", [1, 1 << 26])
def test_sorting_equals_that_of_the_system(tmp_path, monkeypatch, own, run_bytes):
    monkeypatch.setattr(sorted_table, "_RUN_BYTES", run_bytes)
    if own:
        monkeypatch.setattr(sorted_table, "_system_sort", lambda: None)
    rng = random.Random(7)
    lines = [bytes(rng.choice(b"ab \x01\t\xc3\xa9|!") for _ in range(rng.randint(0, 6))) for _ in range(500)]
    pieces = [b"".join(line + b"\n" for line in lines[i : i + 50]) for i in range(0, 500, 50)]
    result = b"".join(sort_lines(pieces, str(tmp_path), 2))
    assert result == b"".join(line + b"\n" for line in sorted(lines))
    system_sort = subprocess.run(["sort"], input=b"".join(pieces), capture_output=True, env={"LC_ALL": "C"}, check=True)
    assert result == system_sort.stdout
    assert list(tmp_path.iterdir()) == []


def test_without_a_system_sort(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert b"".join(sort_lines([b"b\n", b"a\n"], str(tmp_path))) == b"a\nb\n"


def test_a_sort_that_fails(tmp_path, monkeypatch):
    broken = tmp_path / "sort"
    broken.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo GNU coreutils; exit; fi\necho sort: no space left >&2\nexit 2\n'
    )
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PhraseToolError, match="cannot sort: sort: no space left"):
        list(sort_lines([b"b\n"] * 100_000, str(tmp_path)))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"das haus ||| the house ||| 1 ||| 0-0 1-1 ||| 1 1 1 ||| |||", None),
        (b"! |||  ||| 1 1", None),
        (b"das|||the|||1", b"das ||| the ||| 1"),
        (b" das\t haus ||| the  |||  1   0.5 ||| ||| 1 1 \r", b"das haus ||| the ||| 1 0.5 ||| ||| 1 1"),
        (b"a ||| b ||| 1 ||| 0-0 ||| 1 ||| ||| ||| 8 ||| 9", b"a ||| b ||| 1 ||| 0-0 ||| 1 ||| |||"),
        (b"a ||| b ||| 1 ||| ", b"a ||| b ||| 1 |||"),
    ],
)
def test_canonical_lines(line, expected):
    assert canonical_line(line) == (line if expected is None else expected)
    assert canonical_line(canonical_line(line)) == canonical_line(line)


@pytest.mark.parametrize(
    ("table", "factors", "rules"),
    [
        ("seven fields", (1, 1), False),
        ("factored target", (1, 2), False),
        ("pipes", (1, 1), False),
        ("target syntax", (1, 1), True),
    ],
)
def test_factors_and_rules(tmp_path, table, factors, rules):
    form = examine(str(write(tmp_path / "table.gz", TABLES[table])))
    assert (form.source_factors, form.target_factors) == factors
    assert form.rules is rules


def test_reordering_scores_in_a_property(tmp_path):
    line = b"das ||| the ||| 0.5 ||| 0-0 ||| 1 1 1 ||| ||| {{LexRO 0.2 0.2 0.6 0.2 0.2 0.6}}\n"
    assert examine(str(write(tmp_path / "table", line))).reordering_scores == 6
    assert examine(str(write(tmp_path / "table", GOOD))).reordering_scores == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "table: holds no entry"),
        (GOOD + b"das ||| a ||| 1\n", "table:2: expected 2 scores as on the lines before, found 1"),
        (GOOD + b"das ||| a\n", "table:2: expected at least 3 fields"),
        (GOOD + b"\n", "table:2: expected at least 3 fields"),
        (GOOD + b" ||| a ||| 1 1\n", "table:2: the source is empty"),
        (GOOD * 3 + b"das ||| a ||| 1 -0.5\n", "table:4: a negative score"),
        (GOOD + b"das ||| a ||| 1 nan\n", "table:2: a score is NaN"),
    ],
)
def test_bad_input(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        examine(str(write(tmp_path / "table", text)))
