"""Short version of `benchmarks/faults.py`: fewer kills, limits and inputs, fixed seeds; inputs found by fuzzing."""

import warnings
from pathlib import Path

import pytest

from tests.breaking import limits
from tests.breaking.fuzzing import target_names
from tests.breaking.killing import kill_command
from tests.breaking.places import Place
from tests.breaking.totals import added_inputs, added_kills, check_seed
from tests.breaking.writers import WRITERS, Writer
from tests.conftest import ROOT
from tests.fuzz.worker import Worker, family_of, inputs_of

FOUND = sorted((ROOT / "tests/fuzz/found").iterdir())
BATCHES = {"table": 1, "alignments": 4, "reordering table": 2}
KILLED = {"prune": 4, "annotate": 4, "convert": 2}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("faults"), ("click", "numpy", "numba", "pyarrow.parquet"), tables_alone=True)
    yield place
    place.close()


def writer_of(command):
    return next(writer for writer in WRITERS if writer.command == command)


@pytest.mark.parametrize("command", KILLED)
def test_killed_at_any_moment(place, command):
    result = kill_command(place, writer_of(command), KILLED[command])
    assert result.faults == []
    assert result.counts["killed"] >= KILLED[command] - 1


def test_partial_outputs_are_detected(place, monkeypatch):
    """The harness detects an output that is written in place and a file that is left behind."""
    script = place.inputs / "careless.py"
    script.write_text(
        "import sys, time\nopen('stray', 'w').close()\nwith open('out', 'w') as out:\n"
        "    for i in range(25):\n        print(i, file=out, flush=True)\n        time.sleep(0.004)\n"
    )
    monkeypatch.setattr(place, "script", str(script))
    result = kill_command(place, Writer("careless", ("out",)), 3)
    assert any("out is neither old nor new" in fault for fault in result.faults)


LACKS = {"RLIMIT_FSIZE": 1000, "EIO": 1000, "small disk": 8192, "RLIMIT_AS": 110 << 20, "RLIMIT_NOFILE": 6}


@pytest.mark.parametrize("name", LACKS)
def test_scarce_resources(place, name):
    if name == "EIO" and not limits.build_shim(place):
        pytest.skip("there is no C compiler here")
    lack = next(lack for lack in limits.LACKS if lack.name == name)
    result = limits.starve(place, writer_of("prune"), (limits.with_amount(lack, LACKS[name]),), 1)
    assert result.faults == []
    if name == "small disk" and not result.counts[name]:
        pytest.skip("no disk can be mounted here")
    assert result.counts["refused"] + result.counts["aborted by a library"] == 1


def attempt(name, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        family_of(name).attempt(data)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_inputs_found_by_fuzzing(path):
    """Each input once caused a traceback, a numpy warning or excessive memory use."""
    attempt(path.name.rpartition("-")[0].replace("-", " "), path.read_bytes())


@pytest.mark.parametrize("name", target_names())
def test_damaged_inputs(name, tmp_path):
    if name in ("encoder folder", "checkpoint"):
        pytest.importorskip("torch" if name == "checkpoint" else "tokenizers")
    target = family_of(name)
    worker = Worker(target, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in range(BATCHES.get(name, 1)):
            worker.run(inputs_of(target, 7, batch))
    assert worker.faults == {}
    assert worker.inputs > worker.refused or name == "safetensors header"


def test_a_lost_line_is_detected(tmp_path):
    """The harness detects a lost line and isolates it among several lines."""
    from tests.fuzz.target import Target, Wrong

    def run(data):
        if b"x\n" in data:
            raise Wrong("x is lost")

    worker = Worker(Target("lines", [b"a"], run, lines=4, head=b"h"), tmp_path)
    worker.run([b"a", b"b", b"x", b"c"])
    (name,) = worker.faults.values()
    assert Path(tmp_path, name).read_bytes() == b"h\nx\n"


def test_totals_add_runs_and_reject_repeated_seeds():
    def inputs(count, seconds, peak, seed, **faults):
        record = {"inputs": count, "refused": 1, "seconds": seconds, "peak": peak, "faults": faults, "deaths": [],
               "inputs a second": 1, "seeds": [seed]}  # fmt: skip
        return {"plain": {"targets": {"table": record}}}

    old = inputs(100, 10.0, 7, 1)
    del old["plain"]["targets"]["table"]["seeds"]
    total = added_inputs(old, inputs(200, 5.0, 9, 2, crash="file"))
    table = total["plain"]["targets"]["table"]
    assert (table["inputs"], table["seconds"], table["inputs a second"], table["peak"]) == (300, 15.0, 20, 9)
    assert (table["seeds"], total["plain"]["inputs"], total["plain"]["refused"]) == ([1, 2], 300, 2)
    assert total["faults"] == ["table: crash"]

    old = {"commands": {"prune": {"killed": 4, "reruns": 1}}, "faults": []}
    more = {"prune": {"killed": 2, "outputs old": 3, "seeds": [2]}, "tag": {"killed": 5, "seeds": [2]}}
    total = added_kills(old, {"commands": more, "faults": ["one"]})
    assert total["commands"]["prune"] == {"killed": 6, "reruns": 1, "outputs old": 3, "seeds": [1, 2]}
    assert total["commands"]["tag"] == {"killed": 5, "seeds": [2]}
    assert (total["all"], total["faults"]) == ({"killed": 11, "outputs old": 3, "reruns": 1}, ["one"])
    result = {**total, "faults": ["prune @x: a", "prune-all: b", "tag @x: c"]}
    again = added_kills(result, {"commands": {"prune": {"killed": 1, "seeds": [3]}}, "faults": ["prune @x: d"]})
    assert (again["faults"], again["mended"]) == (["prune-all: b", "tag @x: c", "prune @x: d"], ["prune @x: a"])
    assert added_kills(again, {"commands": {}, "faults": []})["mended"] == again["mended"]

    check_seed({"kill": total}, "kill", ["prune", "tag"], 3)
    with pytest.raises(SystemExit, match="seed 2 of tag is counted already"):
        check_seed({"kill": total}, "kill", ["tag"], 2)
    with pytest.raises(SystemExit, match="seed 1 of table is counted already"):
        check_seed({"fuzz": inputs(1, 1, 1, 1)}, "fuzz", ["table"], 1)
