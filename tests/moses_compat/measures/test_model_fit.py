"""The sample of a table, and the checks of a model on it."""

import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.lines.insert_scores import SCALES
from moses_compat.measures import model_fit
from moses_compat.measures.model_fit import FitCheck, TableSample, columns_of
from moses_compat.tables.blocks import raw_blocks
from phrasetool.errors import DataError
from tests.commands import run_inside, write
from tests.tables import TABLES
from tests.variants import for_each

LINES = [b"%s %d ||| %s ||| 0.5 0.25\n" % (b"w" * (i % 50 + 1), i, b"t" * (i % 30)) for i in range(9000)]


def sample_of(path, size):
    with Input(str(path)) as source:
        raws = raw_blocks(source, size)
        sample, blocks = TableSample.take(raws)
        return sample, blocks, b"".join(raw.text.tobytes() for raw in raws)


@pytest.mark.parametrize("look_ahead", [1 << 24, 300_000, 1])
def test_a_sample_is_spread_and_does_not_depend_on_blocks(tmp_path, monkeypatch, look_ahead):
    monkeypatch.setattr(model_fit, "LOOK_AHEAD", look_ahead)
    table = write(tmp_path / "t.gz", b"".join(LINES))
    collected = []
    for size in (1, 777, 100_000, 1 << 21):
        sample, blocks, rest = sample_of(table, size)
        collected.append(sample.text.tobytes())
        # Nothing that was read is lost.
        assert b"".join(raw.text.tobytes() for raw in blocks) + rest == b"".join(LINES)
    assert len(set(collected)) == 1
    positions = [LINES.index(line) for line in collected[0].splitlines(keepends=True)]
    assert positions == sorted(set(positions))
    if look_ahead == 1 << 24:
        assert 1500 < len(positions) <= 2000
        assert np.diff(positions).max() < 20


@pytest.mark.parametrize("lines", [1, 20])
def test_a_small_table_is_a_sample_of_itself(tmp_path, lines):
    data = b"".join(LINES[:lines])
    for text in (data, data[:-1]):
        assert sample_of(write(tmp_path / "t", text), 64)[0].text.tobytes() == data


def test_an_empty_table_has_no_sample(tmp_path):
    assert sample_of(write(tmp_path / "t", b""), 64)[:2] == (None, [])


@for_each("name", ["seven fields", "one line", "crlf three fields", "hierarchical", "factored both"])
@for_each("scale", SCALES)
def test_columns_of_the_same_model(model, model_folder, tmp_path, name, scale):
    table, out = write(tmp_path / "t", TABLES[name]), tmp_path / "out"
    assert columns_of(model, sample_of(table, 64)[0]) is None
    outcome = run_inside("annotate", table, "-m", model_folder, "-o", out, "--scale", scale, "-q")
    assert (outcome.code, outcome.err) == (0, "")
    sample = sample_of(out, 64)[0]
    assert columns_of(model, sample) == sample.scores - 2


def test_a_table_is_checked_once(model, tmp_path):
    """A table that is read twice is checked only at the first reading."""
    recorded = []

    class Listener(model_fit.Watch):
        def warn(self, message):
            recorded.append(message)

    out = tmp_path / "t"
    write(out, TABLES["seven fields"])
    check = FitCheck("m", Listener(), force=True, appended=True)
    for _ in range(2):
        with Input(str(out)) as source:
            blocks = list(check.look("t", model, raw_blocks(source, 64)))
        assert b"".join(raw.text.tobytes() for raw in blocks) == TABLES["seven fields"]
    assert recorded == []
    with pytest.raises(DataError, match=r"t: the model m does not match: it knows 0\.0%"):
        FitCheck("m").judge("t", model_fit.ModelCompatibility(9, 900, 900, 0.0, 1.0, 0, 0, None), lambda: None)


@pytest.mark.parametrize("ahead", [False, True])
def test_blocks_may_pass_before_the_model_is_judged(model, tmp_path, monkeypatch, ahead):
    out = write(tmp_path / "t", TABLES["seven fields"])
    check = FitCheck("m", ahead=ahead)
    judged = []
    monkeypatch.setattr(check, "_check", lambda *_: judged.append(True))
    with Input(str(out)) as source:
        blocks = check.look("t", model, raw_blocks(source, 64))
        first = next(blocks)
        assert (check.judged, bool(judged)) == (not ahead, not ahead)
        text = b"".join(raw.text.tobytes() for raw in (first, *blocks))
    assert text == TABLES["seven fields"]
    assert (check.judged, judged) == (True, [True])
