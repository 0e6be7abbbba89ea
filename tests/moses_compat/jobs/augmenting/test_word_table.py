import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs.augmenting.word_table import read_words, words_of
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests.commands import write

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
    found = table.entries
    assert sorted(found) == ["a", "é"]
    assert [(entry.target, entry.scores) for entry in found["a"]] == [
        ("y z", (0.5, 0.6, 0.7, 0.8)), ("x", (0.1, 0.2, 0.3, 0.4)),
    ]  # fmt: skip
    assert (found.count("a"), found.count("é")) == (7, 1)
    assert table.known == {"a", "é"}
    assert not table.augmented


def lines(*scores):
    return "".join(f"{word} ||| x ||| 1 1 1 1 {more}\n" for word, more in zip("abcdef", scores, strict=False))


@pytest.mark.parametrize(
    ("text", "augmented", "learnt"),
    [
        # A penalty, as old tables have one.
        (lines("2.718", "2.718"), False, "ab"),
        (lines("2.71828", "2.71828"), False, "ab"),
        (lines("1", "1"), False, "ab"),
        # What happens to be 1 now and then.
        (lines("1 1", "0.5 2.71828", "1 0.3"), False, "abc"),
        (lines("0.5 1 1", "0.2 1 2.71828", "1 1 1"), True, "ac"),
        (lines("0.5 1 1", "0.2 2.71828 2.71828", "1 1 1"), True, "ac"),
        # A column that is always 1 may be a flag that nothing has set.
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
    assert raised.value.remedy == "name those of then"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a ||| x ||| 1 1\n", "t:1: the entries have 2 scores"),
        ("a|N ||| x|N ||| 1 1 1 1\n", r"t:1: the word a\|N has factors"),
    ],
)
def test_tables_of_which_nothing_can_be_made(tmp_path, line, said):
    with pytest.raises(DataError, match=said):
        read_table(tmp_path, line)


@pytest.mark.parametrize(
    ("text", "words", "together"), [("a b\nb\n", {"a": 1, "b": 2}, True), ("c\n\nb", {"c": 1, "b": 1}, False)]
)
def test_words_of_a_text(tmp_path, text, words, together):
    assert words_of(str(write(tmp_path / "text", text.encode()))) == (words, together)
