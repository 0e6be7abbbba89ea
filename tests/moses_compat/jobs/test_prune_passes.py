"""The second pass of pruning by a method."""

import numpy as np
import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.prune import prune_decided
from moses_compat.jobs.sinks import Counts, SelectedLines
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.pruning.decision import Decision
from tests.commands import write

LINES = [b"a ||| x ||| 1\n", b"a ||| y ||| 1\n", b"bad\n", b"b c ||| z ||| 1\n", b"d ||| z ||| 1\n"]


def decision(fails, protected=(), silent=()):
    def mask(numbers):
        return np.isin(np.arange(len(LINES)), list(numbers))

    return Decision(mask(fails), mask(protected), mask(silent))


def prune(folder, decided, lines=LINES, **scan):
    table = write(folder / "t", b"".join(lines))
    with Input(str(table)) as source, Output(str(folder / "o")) as out, Output(str(folder / "r")) as rejected:
        counts = Counts()
        sinks = [SelectedLines(out), SelectedLines(rejected, rejected=True), counts]
        prune_decided(source, decided, None, sinks, TableScan(**{"on_error": "keep", **scan}))
    return counts.total, (folder / "o").read_bytes(), (folder / "r").read_bytes()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block_bytes", [1, 20, 1 << 20])
def test_failing_entries_are_removed_unless_protected(tmp_path, threads, block_bytes):
    counts, kept, rejected = prune(
        tmp_path, decision([1, 3, 4], [3], [0]), threads=threads, block_bytes=block_bytes
    )  # fmt: skip
    assert kept == b"".join(LINES[i] for i in (0, 2, 3))
    assert rejected == b"".join(LINES[i] for i in (1, 4))
    assert (counts.entries, counts.kept, counts.removed, counts.protected) == (5, 3, {"below_threshold": 2}, 1)
    assert (counts.unscored, counts.malformed_kept) == (1, 1)


def test_malformed_lines_follow_the_policy(tmp_path):
    assert LINES[2] not in prune(tmp_path, decision([]), on_error="skip")[1]
    with pytest.raises(DataError, match="t:3: expected at least 3 fields"):
        prune(tmp_path, decision([]), on_error="fail")


@pytest.mark.parametrize(("lines", "message"), [(LINES * 2, "more than the 5 lines"), (LINES[:4], "has 4 lines now")])
def test_a_changed_table_is_refused(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        prune(tmp_path, decision([]), lines)
    assert not (tmp_path / "o").exists()
