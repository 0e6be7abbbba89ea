"""Words of tables compared with naive readers, and inserted entries compared with sorting all lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.augmented_tables import (
    _merged,
    phrase_lines,
    read_words,
    reordering_lines,
    word_orientations,
    words_of,
    write_augmented,
)
from moses_compat.tables.blocks import TableScan
from phrasetool.augment.augmenter import NewEntry
from phrasetool.errors import DataError
from tests.commands import read, write

TABLE = (
    "a ||| x ||| 0.1 0.2 0.3 0.4 ||| 0-0 ||| 5 7 2 |||\na ||| y z ||| 0.5 0.6 0.7 0.8 ||| 0-0 ||| 5 7 2\n"
    "a b ||| x ||| 1 1 1 1\né ||| w ||| 1 1 1 1\n"
)


PLAIN = TableScan()


def read_table(tmp_path, text, columns=2, scan=PLAIN):
    with Input(str(write(tmp_path / "t", text.encode()))) as source:
        return read_words(source, columns, scan)


@pytest.mark.parametrize("scan", [TableScan(), TableScan(threads=2, block_bytes=1)])
def test_entries_of_single_words(tmp_path, scan):
    table = read_table(tmp_path, TABLE, scan=scan)
    result = table.entries
    assert sorted(result) == ["a", "é"]
    assert [(entry.target, entry.scores) for entry in result["a"]] == [
        ("y z", (0.5, 0.6, 0.7, 0.8)), ("x", (0.1, 0.2, 0.3, 0.4)),
    ]  # fmt: skip
    assert (result.count("a"), result.count("é")) == (7, 1)
    assert table.known == {"a", "é"}
    assert not table.augmented


def lines(*scores):
    return "".join(f"{word} ||| x ||| 1 1 1 1 {more}\n" for word, more in zip("abcdef", scores, strict=False))


@pytest.mark.parametrize(
    ("text", "augmented", "learnt"),
    [
        # A phrase penalty, as in old tables.
        (lines("2.718", "2.718"), False, "ab"),
        (lines("2.71828", "2.71828"), False, "ab"),
        (lines("1", "1"), False, "ab"),
        # Scores that are 1 by chance.
        (lines("1 1", "0.5 2.71828", "1 0.3"), False, "abc"),
        (lines("0.5 1 1", "0.2 1 2.71828", "1 1 1"), True, "ac"),
        (lines("0.5 1 1", "0.2 2.71828 2.71828", "1 1 1"), True, "ac"),
        # A column that is always 1 may be an indicator feature that is never set.
        (lines("1 1 1", "1 1 2.71828"), True, "a"),
        (lines("2.71828 1 1", "2.71828 1 2.71828"), True, "a"),
    ],
)  # fmt: skip
def test_flags_of_an_earlier_run(tmp_path, text, augmented, learnt):
    table = read_table(tmp_path, text)
    assert table.augmented == augmented
    assert "".join(sorted(table.entries)) == learnt
    assert table.known == {line[0] for line in text.splitlines()}


@pytest.mark.parametrize("columns", [1, 4])
def test_flags_of_other_sources_of_evidence(tmp_path, columns):
    with pytest.raises(DataError, match=f"with another number of sources of evidence than {columns}") as raised:
        read_table(tmp_path, lines("1 1 1", "1 2.71828 1", "1 1 1"), columns)
    assert raised.value.remedy == "name the sources of that run"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a ||| x ||| 1 1\n", "t:1: the entries have 2 scores"),
        ("a|N ||| x|N ||| 1 1 1 1\n", r"t:1: the word a\|N has factors"),
    ],
)
def test_unsupported_tables(tmp_path, line, said):
    with pytest.raises(DataError, match=said):
        read_table(tmp_path, line)


@pytest.mark.parametrize(
    ("text", "words", "together"), [("a b\nb\n", {"a": 1, "b": 2}, True), ("c\n\nb", {"c": 1, "b": 1}, False)]
)
def test_words_of_a_text(tmp_path, text, words, together):
    assert words_of(str(write(tmp_path / "text", text.encode()))) == (words, together)


ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "a b", "b", "c d"]), st.lists(st.integers(0, 1000), min_size=3, max_size=3)),
    min_size=1,
    max_size=20,
)


def means(folder, text, **scan):
    with Input(str(write(folder / "r", text.encode()))) as source:
        return word_orientations(source, {"a", "b"}, "table", TableScan(**scan))


@given(ROWS, st.integers(1, 2), st.integers(1, 200))
def test_the_mean_over_words(workspace, rows, threads, block_bytes):
    text = "".join(f"{source} ||| x ||| {' '.join(f'{n / 1000:g}' for n in row)}\n" for source, row in rows)
    expected = [row for source, row in rows if " " not in source]
    if not expected:
        with pytest.raises(DataError, match="no entry whose source is one word"):
            means(workspace, text)
        return
    result = means(workspace, text, threads=threads, block_bytes=block_bytes)
    np.testing.assert_allclose(result, np.mean(expected, 0) / 1000, atol=1e-9)
    # The result is bit-identical for all blocks and threads.
    assert (result == means(workspace, text)).all()


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
def test_new_entries_are_inserted_in_sorted_order(workspace, pairs, words, threads, block_bytes):
    known = sorted(
        {f"{' '.join(source)} ||| {target} ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n" for source, target in pairs}, key=str.encode
    )
    # Some words are sources of the table, but it contains none of the new targets.
    new = {word: [entry("x y", 1), entry("z", 0)] for word in words}
    expected = [line.replace("1 1 1 1 |||", "1 1 1 1 1 1 |||") for line in known]
    for word in new:
        expected.append(f"{word} ||| x y ||| 0.5 0.25 0.125 1 1 2.71828 ||| 0-0 0-1 ||| 1 1 1\n")
        expected.append(f"{word} ||| z ||| 0.5 0.25 0.125 1 2.71828 1 ||| 0-0 ||| 1 1 1\n")
    result = augmented(workspace, known, new, threads=threads, block_bytes=block_bytes)
    assert result == "".join(sorted(expected, key=str.encode))


def test_other_forms_and_malformed_lines(tmp_path):
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


@pytest.mark.parametrize("on_error", ["skip", "keep"])
@pytest.mark.parametrize("block_bytes", [1, 64, 1000])
def test_new_lines_have_the_form_of_the_first_entry(tmp_path, on_error, block_bytes):
    words = "!", "aa", "z"
    malformed = ["# ||| x\n", "# ||| y ||| 1 x\n", "b ||| x ||| 1 1 1 1 1\n"]
    known = [f"{word} ||| x ||| 1 1 1 1 ||| 0-0 ||| 3 2 1 ||| |||\n" for word in "ac"]
    new = [f"{word} ||| y ||| 0.5 0.25 0.125 1 2.71828 ||| 0-0 ||| 1 1 1 ||| |||\n" for word in words]
    known_and_new = [line.replace("1 1 1 1 |||", "1 1 1 1 1 |||") for line in known] + new
    result = augmented(
        tmp_path, sorted(malformed + known), {word: [entry("y", 0)] for word in words}, 1,
        on_error=on_error, block_bytes=block_bytes,
    )  # fmt: skip
    assert result == "".join(sorted(known_and_new + malformed * (on_error == "keep")))


def test_lines_of_a_source_stay_in_their_order():
    assert _merged(b"a ||| y\na ||| b\n", b"a ||| a\na ||| z\n") == b"a ||| a\na ||| y\na ||| b\na ||| z\n"


@pytest.mark.parametrize("block_bytes", [1, 1000])
def test_an_unsorted_table_is_refused(tmp_path, block_bytes):
    with pytest.raises(DataError, match="not sorted bytewise"):
        augmented(tmp_path, ["b ||| x ||| 1 1 1 1\n", "a ||| x ||| 1 1 1 1\n"], {}, 1, block_bytes=block_bytes)


def test_existing_flags(tmp_path):
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
