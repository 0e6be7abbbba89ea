import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs.bitexts import pair_blocks as room
from moses_compat.jobs.bitexts.pair_blocks import pair_blocks
from phrasetool.errors import DataError
from tests.commands import write


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(room, "PAIRS", 3)


def blocks(folder, source, target):
    paths = write(folder / "s", source), write(folder / "t", target)
    with Input(str(paths[0])) as first, Input(str(paths[1])) as second:
        return list(pair_blocks(first, second))


@pytest.mark.parametrize("end", [b"\n", b""])
def test_lines_stay_as_they_are(end, tmp_path):
    source, target = b"a\r\n\n b\tc\nd\x0be\nf" + end, b"A\nB\n\nC\nD" + end
    found = blocks(tmp_path, source, target)
    assert [(block.first, len(block)) for block in found] == [(0, 3), (3, 2)]
    assert b"".join(line for block in found for line in block.sources) == source
    assert b"".join(line for block in found for line in block.targets) == target
    assert found[0].written == ([b"a", b"", b"b c"], [b"A", b"B", b""])
    assert found[1].written == ([b"d\x0be", b"f"], [b"C", b"D"])


def test_fingerprints_tell_sides_and_pairs(tmp_path):
    first, second = blocks(tmp_path, b"a\nb\na\na\n", b"x\nx\ny\nx\n")
    assert len(set(first.hashes.tolist())) == 3
    assert second.hashes[0] == first.hashes[0]


@pytest.mark.parametrize(
    ("lines", "said"), [((2, 9), "s: the file ends after 2"), ((3, 1), "t: the file ends after 1")]
)
def test_files_of_different_lengths_are_refused(lines, said, tmp_path):
    short, long = sorted(lines)
    with pytest.raises(DataError) as error:
        blocks(tmp_path, b"a\n" * lines[0], b"b\n" * lines[1])
    assert f"ends after {short} lines" in str(error.value)
    assert f"has {long}" in str(error.value)
    assert said.partition(":")[0] in error.value.path


def test_nothing_is_no_block(tmp_path):
    assert blocks(tmp_path, b"", b"") == []
