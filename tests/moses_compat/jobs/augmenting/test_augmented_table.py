"""New entries among those of a table, against sorting all lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.augmenting.augmented_table import _merged, write_augmented
from moses_compat.jobs.augmenting.new_lines import phrase_lines, reordering_lines
from moses_compat.tables.blocks import TableScan
from phrasetool.augment.augmenter import NewEntry
from phrasetool.errors import DataError
from tests.commands import read, write

WORDS = st.text("abé-", min_size=1, max_size=3)


def augmented(folder, lines, new, columns=2, **scan):
    path = write(folder / "t.gz", "".join(lines).encode())
    with Input(str(path)) as source, Output(str(folder / "o.gz")) as output:
        count = write_augmented(source, output, new, phrase_lines(new, columns), columns, TableScan(**scan))
    assert count == len(lines)
    return read(folder / "o.gz").decode()


def entry(target, source):
    return NewEntry(target, (0.5, 0.25, 0.125, 1.0), frozenset({source}), "")


@given(
    st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=2), WORDS), min_size=1, max_size=30),
    st.sets(WORDS, max_size=8), st.integers(1, 2), st.integers(20, 400),
)  # fmt: skip
def test_new_entries_stand_in_their_places(workspace, pairs, words, threads, block_bytes):
    known = sorted(
        {f"{' '.join(source)} ||| {target} ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n" for source, target in pairs}, key=str.encode
    )
    # Some words are sources of the table; none of its targets is new.
    new = {word: [entry("x y", 1), entry("z", 0)] for word in words}
    expected = [line.replace("1 1 1 1 |||", "1 1 1 1 1 1 |||") for line in known]
    for word in new:
        expected.append(f"{word} ||| x y ||| 0.5 0.25 0.125 1 1 2.71828 ||| 0-0 0-1 ||| 1 1 1\n")
        expected.append(f"{word} ||| z ||| 0.5 0.25 0.125 1 2.71828 1 ||| 0-0 ||| 1 1 1\n")
    found = augmented(workspace, known, new, threads=threads, block_bytes=block_bytes)
    assert found == "".join(sorted(expected, key=str.encode))


def test_other_forms_and_faulty_lines(tmp_path):
    new = {"b": [entry("y", 0)]}
    assert augmented(tmp_path, ["a ||| x ||| 1 1 1 1 0.5\n", "c ||| x ||| 1 1 1 1 0.5\n"], new, 1) == (
        "a ||| x ||| 1 1 1 1 0.5 1\nb ||| y ||| 0.5 0.25 0.125 1 1 2.71828\nc ||| x ||| 1 1 1 1 0.5 1\n"
    )
    lines = ["a ||| x ||| 1 1 1 1\n", "a ||| x\n", "c ||| x ||| 1 1 1 1\n"]
    assert augmented(tmp_path, lines, new, 1, on_error="keep").splitlines()[1:3] == [
        "a ||| x",
        "b ||| y ||| 0.5 0.25 0.125 1 2.71828",
    ]
    assert len(augmented(tmp_path, lines, new, 1, on_error="skip").splitlines()) == 3


def test_lines_of_a_source_stay_in_their_order():
    assert _merged(b"a ||| y\na ||| b\n", b"a ||| a\na ||| z\n") == b"a ||| a\na ||| y\na ||| b\na ||| z\n"


@pytest.mark.parametrize("block_bytes", [1, 1000])
def test_an_unsorted_table_is_refused(tmp_path, block_bytes):
    with pytest.raises(DataError, match="not sorted bytewise"):
        augmented(tmp_path, ["b ||| x ||| 1 1 1 1\n", "a ||| x ||| 1 1 1 1\n"], {}, 1, block_bytes=block_bytes)


def test_flags_that_are_there_already(tmp_path):
    lines = "a ||| x ||| 1 1 1 1 0.5 1\nc ||| x ||| 1 1 1 1 0.5 2.71828\n"
    new = {"b": [entry("y", 0)]}
    path = write(tmp_path / "t", lines.encode())
    with Input(str(path)) as source, Output(str(tmp_path / "o")) as output:
        write_augmented(source, output, new, phrase_lines(new, 1, appended=False), 0, TableScan())
    assert read(tmp_path / "o").decode().splitlines() == [
        "a ||| x ||| 1 1 1 1 0.5 1", "b ||| y ||| 0.5 0.25 0.125 1 1 2.71828", "c ||| x ||| 1 1 1 1 0.5 2.71828",
    ]  # fmt: skip


def test_a_reordering_table(tmp_path):
    new = {"b": [entry("z", 0), entry("y w", 1)]}
    path = write(tmp_path / "r", b"a ||| x ||| 0.6 0.2 0.2\nc ||| x ||| 0.2 0.2 0.6\n")
    with Input(str(path)) as source, Output(str(tmp_path / "o")) as output:
        write_augmented(source, output, new, reordering_lines(new, np.array([0.4, 0.2, 0.4])), 0, TableScan())
    assert read(tmp_path / "o").decode().splitlines() == [
        "a ||| x ||| 0.6 0.2 0.2", "b ||| y w ||| 0.4 0.2 0.4", "b ||| z ||| 0.4 0.2 0.4", "c ||| x ||| 0.2 0.2 0.6",
    ]  # fmt: skip
