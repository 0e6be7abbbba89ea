"""Pruning from files to files, while streaming or after measuring; all output files appear or none."""

import json
import os

import numpy as np
import pytest

from moses_compat.jobs.prune import TableTooSmallError, prune, sweep
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.sinks import Decisions
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import Watch
from tests import naive
from tests.commands import read, write
from tests.pairwise import pairwise
from tests.tables import MALFORMED, TABLES
from tests.variants import for_each

DATA = TABLES["seven fields"]
LINES = naive.split_lines(DATA)


def ask(tmp_path, data=DATA, **options):
    """Return a request for a table whose scores 2 and 4 are similarities."""
    scan = TableScan(options.pop("on_error", "fail"), options.pop("threads", 1), 300)
    settings = {"columns": (1, 3), "scale": "raw", "output": str(tmp_path / "out"), "scan": scan, **options}
    if isinstance(settings.get("threshold"), float):
        settings["threshold"] = Threshold.of(settings["threshold"])
    return PruneRequest(str(write(tmp_path / "t", data)), **settings)


def naive_kept(threshold, keep_top=10, protect="all"):
    lines, groups = naive.parse_table(DATA, 4)
    similar = np.clip(np.array([[line.values[1], line.values[3]] for line in lines]), -1, 1).astype(np.float32)
    removed = naive.pruned_lines(lines, groups, similar, [True] * len(lines), threshold, keep_top, protect)
    return [i for i in range(len(lines)) if i not in removed]


@for_each(
    ("threads", "best", "threshold"),
    pairwise([1, 2], [(None, None), (2, "all"), (1, "words"), (None, "none")], [0.25, 0.6, 0.99]),
)
def test_the_paper_s_rule(tmp_path, threshold, best, threads):
    keep_top, protect = best
    result = prune(ask(tmp_path, threshold=threshold, keep_top=keep_top, protect=protect, threads=threads))
    expected = naive_kept(threshold, 10 if keep_top is None else keep_top, protect or "all")
    assert read(tmp_path / "out") == b"".join(LINES[i] for i in expected)
    assert (result.statistics.kept, result.statistics.entries) == (len(expected), len(LINES))
    assert result.signature.startswith(f"columns:2,4|scale:raw|rule:t{threshold:g}+k")
    assert result.criteria == ("semantic",)


def test_a_threshold_in_the_method(tmp_path):
    prune(ask(tmp_path, method="semantic:0.6"))
    assert read(tmp_path / "out") == b"".join(LINES[i] for i in naive_kept(0.6))


@pytest.mark.parametrize("size", [0.2, 0.5, 0.93, 1.0])
def test_a_size_gives_the_largest_table_that_a_threshold_can_leave(tmp_path, size):
    recorded = []

    class Listening(Watch):
        def say(self, message):
            recorded.append(message)

    prune(ask(tmp_path, target_size=size, protect="none"), Listening())
    written = naive.split_lines(read(tmp_path / "out"))
    values = sorted({float(np.float32(v)) for line in naive.parse_table(DATA, 4)[0] for v in line.values})
    fitting = [len(kept) for v in [*values, 2] if len(kept := naive_kept(v, 0, "none")) <= size * len(LINES)]
    assert len(written) == max(fitting)
    assert len(recorded) == 1
    assert float(recorded[0].split()[1]) <= 1.000001
    # No file of the first pass remains.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "t"]


@pytest.mark.parametrize("method", [None, "count"])
def test_too_many_are_protected(tmp_path, method):
    with pytest.raises(TableTooSmallError, match=r"t: .* of 164 entries .* more than the requested 1\.0%") as caught:
        prune(ask(tmp_path, target_size=0.01, keep_top=3, protect="all", method=method))
    assert caught.value.best == KeepBest(3, "all")
    assert isinstance(caught.value, PhraseToolError)
    assert not (tmp_path / "out").exists()


FILES = ["rejected", "reasons", "stats", "scores"]


@pytest.mark.parametrize("method", ["semantic", "count+semantic"])
def test_all_files_or_none(tmp_path, method):
    """The last line is malformed, so that the error occurs after all other work."""
    settings = {name: str(tmp_path / name) for name in FILES}
    settings |= {"target_size": 0.5, "protect": "none", "method": method}
    del settings["scores"]
    request = ask(tmp_path, DATA + b"no entry\n", **settings)
    with pytest.raises(DataError, match="t:165: expected at least 3 fields"):
        prune(request)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    result = prune(ask(tmp_path, **settings))
    kept, rejected = (naive.split_lines(read(tmp_path / name)) for name in ("out", "rejected"))
    assert sorted(kept + rejected) == sorted(LINES)
    assert json.loads((tmp_path / "stats").read_bytes()) == json.loads(json.dumps(result.as_dict()))
    assert result.statistics.removed == {"below_threshold": len(rejected)}


def test_the_table_appears_last(tmp_path, monkeypatch):
    renamed = []
    rename = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (renamed.append(os.path.basename(b)), rename(a, b))[1])
    prune(ask(tmp_path, threshold=0.5, rejected=str(tmp_path / "rejected"), stats=str(tmp_path / "stats")))
    assert renamed[-1] == "out"
    assert sorted(renamed) == ["out", "rejected", "stats"]


@pytest.mark.parametrize("cut", [{"threshold": 0.1}, {"target_size": 0.9, "protect": "none"}], ids=str)
def test_similarities_are_saved_and_reused(tmp_path, model_folder, cut):
    saved = str(tmp_path / "saved")
    first = prune(ask(tmp_path, columns=None, model_folder=str(model_folder), scores=saved, **cut))
    table = read(tmp_path / "out")
    # The second run needs no model.
    again = prune(ask(tmp_path, columns=None, model_folder="none", scores=saved, **cut))
    assert read(tmp_path / "out") == table
    assert (again.signature, again.statistics.kept) == (first.signature, first.statistics.kept)
    sweep(ask(tmp_path, columns=None, model_folder="none", scores=saved, sweep=[0.5], output="-"))


@pytest.mark.parametrize(
    "options",
    [{"threshold": 0.6}, {"target_size": 0.4, "method": "count+semantic"}, {"method": "count:30+semantic:0.5"}],
    ids=str,
)
def test_custom_sinks_receive_every_entry(tmp_path, options):
    decisions = Decisions()
    prune(ask(tmp_path, **options), more=[decisions])
    keep = np.concatenate([block["keep"] for block in decisions.blocks])
    assert read(tmp_path / "out") == b"".join(line for line, is_kept in zip(LINES, keep, strict=True) if is_kept)
    assert 0 < keep.sum() < len(LINES)


@pytest.mark.parametrize("on_error", ["skip", "keep"])
@pytest.mark.parametrize("method", [None, "random"])
def test_malformed_lines(tmp_path, on_error, method):
    result = prune(
        ask(tmp_path, MALFORMED, columns=(0, 1), threshold=1.0, protect="none", on_error=on_error, method=method)
    )  # fmt: skip
    counts = result.statistics
    assert (counts.malformed_kept, counts.malformed_skipped) == ((7, 0) if on_error == "keep" else (0, 7))
    expected = MALFORMED.splitlines(keepends=True)[1:8] if on_error == "keep" else []
    assert read(tmp_path / "out") == b"".join(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of threshold, target_size, max_bleu_loss and sweep"),
        ({"method": "composition", "threshold": 0.5}, "needs the weights of a model: give moses_ini"),
        ({"method": "significance", "threshold": 0.5}, "give corpus SOURCE TARGET"),
        ({"method": "usage", "target_size": 0.5}, "give forced_pairs PAIRS"),
        ({"max_bleu_loss": 0.5}, "give dev SOURCE REFERENCE and moses_ini INI"),
    ],
)  # fmt: skip
def test_missing_options(tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        prune(ask(tmp_path, **given))
    assert not (tmp_path / "out").exists()


def test_a_sorted_copy_is_pruned_and_removed(tmp_path):
    prune(ask(tmp_path, b"".join(reversed(LINES)), threshold=0.6, sort=True))
    expected = sorted(LINES[i] for i in naive_kept(0.6))
    assert sorted(naive.split_lines(read(tmp_path / "out"))) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "t"]
