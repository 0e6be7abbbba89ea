import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs.augmenting.word_table import read_word_entries, unknown_words
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests.commands import write

TABLE = (
    "a ||| x ||| 0.1 0.2 0.3 0.4 ||| 0-0 ||| 5 7 2 |||\na ||| y z ||| 0.5 0.6 0.7 0.8 ||| 0-0 ||| 5 7 2\n"
    "a b ||| x ||| 1 1 1 1\né ||| w ||| 1 1 1 1\n"
)


@pytest.mark.parametrize("scan", [TableScan(), TableScan(threads=2, block_bytes=1)])
def test_entries_of_single_words(tmp_path, scan):
    with Input(str(write(tmp_path / "t", TABLE.encode()))) as source:
        found = read_word_entries(source, scan)
    assert sorted(found) == ["a", "é"]
    assert [(entry.target, entry.scores) for entry in found["a"]] == [
        ("y z", (0.5, 0.6, 0.7, 0.8)), ("x", (0.1, 0.2, 0.3, 0.4)),
    ]  # fmt: skip
    assert (found.count("a"), found.count("é")) == (7, 1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a ||| x ||| 1 1\n", "t:1: the entries have 2 scores"),
        ("a|N ||| x|N ||| 1 1 1 1\n", r"t:1: the word a\|N has factors"),
    ],
)
def test_tables_of_which_nothing_can_be_made(tmp_path, line, said):
    with Input(str(write(tmp_path / "t", line.encode()))) as source, pytest.raises(DataError, match=said):
        read_word_entries(source, TableScan())


def test_words_without_entries(tmp_path):
    texts = [str(write(tmp_path / name, text.encode())) for name, text in (("1", "a b\nb\n"), ("2", "c b"))]
    assert unknown_words(texts, {"a"}) == {"b": 3, "c": 1}
