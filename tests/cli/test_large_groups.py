"""A source with more entries than a block holds.

Commands that process entries one by one need bounded memory and write the same bytes.  Commands that need all entries
of a source together have a limit, and report the line of a source that exceeds it.
"""

import pytest

from moses_compat.tables import blocks
from tests.commands import run_inside, write

TABLE = b"".join(b"das ||| the %d ||| 0.%02d 0.5 0.25 0.5 ||| 0-0 ||| 2 2 1\n" % (i, i % 97 + 1) for i in range(400))
ONE_BY_ONE = {
    "annotate": ("annotate", "T", "-m", "M", "-o", "O", "--force"),
    "annotate forced": ("annotate", "T", "--forced-pairs", "P", "--smoothing", "none", "-o", "O"),
    "threshold-filter": ("threshold-filter", "0:0.4", "T", "-o", "O"),
    "remove-orphans": ("remove-orphans", "T", "--reordering-table", "R", "-o", "O"),
}
TOGETHER = {
    "annotate": ("annotate", "T", "-m", "M", "-o", "O", "--scale", "softmax", "--force"),
    "threshold-filter": ("threshold-filter", "0:0.4", "T", "-o", "O", "--keep-words"),
    "filter-pt": ("filter-pt", "T", "-n", "5", "-o", "O"),
    "prune": ("prune", "T", "--similarity-columns", "1,2", "--scale", "raw", "-t", "0.3", "-o", "O"),
}


@pytest.fixture
def files(tmp_path, model_folder):
    write(tmp_path / "T", TABLE)
    write(tmp_path / "P", b"das ||| the 7 ||| 3\ndas ||| the 300 ||| 2\n")
    write(tmp_path / "R", b"".join(b"das ||| the %d ||| 0.5 0.5\n" % i for i in range(0, 500, 3)))
    return {name: tmp_path / name for name in "TPRO"} | {"M": model_folder}


def run(files, arguments, *more):
    outcome = run_inside(*(files.get(word, word) for word in arguments), *more)
    output = files["O"].read_bytes() if files["O"].exists() else None
    files["O"].unlink(missing_ok=True)
    return outcome, output


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_entries_that_are_processed_one_by_one(files, monkeypatch, name):
    outcome, whole = run(files, ONE_BY_ONE[name])
    assert outcome.code == 0, outcome.err
    monkeypatch.setattr(blocks, "LARGEST_GROUP", 2048)
    for threads in (1, 2):
        outcome, output = run(files, ONE_BY_ONE[name], "--block-bytes", 1000, "--threads", threads)
        assert (outcome.code, output == whole) == (0, True), outcome.err
    assert whole.count(b"\n") > 100


@pytest.mark.parametrize("name", TOGETHER)
def test_entries_that_are_needed_together(files, monkeypatch, name):
    outcome, whole = run(files, TOGETHER[name])
    assert outcome.code == 0, outcome.err
    monkeypatch.setattr(blocks, "LARGEST_GROUP", 2048)
    outcome, output = run(files, TOGETHER[name], "--block-bytes", 1000)
    assert (outcome.code, output) == (1, None)
    assert "T:1: the entries of this source take more than 2,048 bytes; --block-bytes allows more" in outcome.err
    assert run(files, TOGETHER[name], "--block-bytes", 100_000)[1] == whole
