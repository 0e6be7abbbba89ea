import fcntl
import functools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.kernels import building, jit
from tests.commands import clean_environment
from tests.phrasetool.kernels import other_kernels, some_kernels

ROOT = Path(__file__).parents[3]
MODULE, OTHER_MODULE = some_kernels.__name__, other_kernels.__name__
SIGNATURES = f"""\
# What the tests call.
{MODULE}:dot float32:1Cr float32:1Cr
{MODULE}:count_nan float64:1Cw int64
{MODULE}:scaled_keys {MODULE}.Pair(int64:1Cw,float64) int64
{MODULE}:total int32:2Aw int64 (int64,int64) bool
{OTHER_MODULE}:negated int64
"""
# Run with a library and with numba; the output must be the same.
CALLS = f"""
import sys
import numpy as np
from {MODULE} import Pair, count_nan, dot, scaled_keys, total
from {OTHER_MODULE} import negated

print(negated(7))
values = np.random.default_rng(1).normal(size=1001).astype(np.float32)
reading = values.copy()
reading.flags.writeable = False
print(dot(values, reading).hex(), dot(reading, reading).hex())
print(count_nan(np.array([1.0, np.nan, np.nan]), 9), count_nan(np.array([np.nan, np.nan]), 1))
print(scaled_keys(Pair(np.arange(5), 0.5), 3).tolist())
matrix = np.arange(12, dtype=np.int32).reshape(3, 4)
print(total(matrix, 4, (2, 3), True), total(matrix.T, 4, (2, 3), False), total(matrix[:, ::2], 0, (0, 0), False))
try:
    count_nan(np.array([1.0]), -1)
except ValueError as error:
    print(error)
print("numba" in sys.modules, file=sys.stderr)
"""
SCRIPT = """
import sys
from phrasetool.smt.corpus.symbols import Symbols
assert Symbols().add(b"word") == 0
print("scipy" in sys.modules)
import scipy.linalg
from sklearn.isotonic import isotonic_regression
print(isotonic_regression([2.0, 0.0]).tolist())
"""


def test_codes():
    array = np.zeros((2, 3), np.float32)
    constant = array[:, :2].copy()
    constant.flags.writeable = False
    assert [jit.code_of(a) for a in (array, array.T, array[:, :2], constant)] == [
        "float32:2Cw",
        "float32:2Fw",
        "float32:2Aw",
        "float32:2Cr",
    ]
    assert [jit.code_of(a) for a in (1, 2**63, True, 1.5, None, np.uint8(1), np.bool_(True))] == [
        "int64",
        "?",
        "bool",
        "float64",
        "none",
        "uint8",
        "bool",
    ]
    assert jit.code_of((1, array)) == "(int64,float32:2Cw)"
    pair = some_kernels.Pair(np.arange(3), 1.0)
    assert jit.code_of(pair) == f"{MODULE}.Pair(int64:1Cw,float64)"
    assert jit.code_of(array.astype(">f4")) == "?"
    assert jit.code_of(np.array(["a"])) == "?:1Cw"
    assert jit.code_of("text") == "?"


@pytest.mark.parametrize("aligned", [False, True])
def test_codes_of_records(aligned):
    import numba

    records = np.zeros(3, np.dtype([("kind", np.int8), ("score", np.float64), ("there", np.bool_)], align=aligned))
    code = jit.code_of(records)
    size, score, there = (24, 8, 16) if aligned else (10, 1, 9)
    assert code == f"{{kind=i1@0/score=f8@{score}/there=b1@{there}/{size}{'!' if aligned else ''}}}:1Cw"
    assert jit.item_of(code.split(":")[0]) == records.dtype
    assert building.numba_type(code) == numba.typeof(records)
    assert jit.code_of(np.zeros(3, np.dtype([("vector", np.float32, 3)]))) == "?:1Cw"


CODES = st.sampled_from(
    ["int64", "bool", "float32:1Cw", "float32:1Cr", "float32:1Aw", "float32:1Ar", "float32:2Cw", "int32:1Cw", "(int64)"]
)


@given(CODES, CODES)
def test_a_code_accepts_itself_and_codes_of_stricter_arrays(expected, given):
    items = [code.partition(":") for code in (expected, given)]
    array = all(shape for _, _, shape in items) and items[0][0] == items[1][0] and items[0][2][0] == items[1][2][0]
    looser = array and items[0][2][1] in ("A", items[1][2][1]) and items[0][2][2] in ("r", items[1][2][2])
    assert jit.accepts(expected, given) == (expected == given or bool(looser))


def test_codes_inside_tuples_are_compared_one_by_one():
    assert jit.accepts("m.P(int64:1Ar,bool)", "m.P(int64:1Cw,bool)")
    assert not jit.accepts("m.P(int64:1Ar,bool)", "m.Q(int64:1Cw,bool)")
    assert not jit.accepts("m.P(int64:1Ar,bool)", "m.P(int64:1Cw,int64)")
    assert not jit.accepts("(int64,bool)", "int64")
    assert not jit.accepts("(int64,bool)", "(int64,bool,bool)")
    assert not jit.accepts("(?)", "(?)")


@pytest.mark.parametrize(
    "code", ["int64", "bool", "none", "float32:2Fr", "(int64,bool)", f"{MODULE}.Pair(int64:1Cw,float64)"]
)
def test_types_of_codes(code):
    from numba import typeof

    array = np.asfortranarray(np.zeros((2, 3), np.float32))
    array.flags.writeable = False
    arguments = [1, True, None, array, (1, True), some_kernels.Pair(np.arange(3), 1.0)]
    argument = next(argument for argument in arguments if jit.code_of(argument) == code)
    assert building.numba_type(code) == typeof(argument)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Build a library of the test kernels, and return environment variables with which it is used."""
    folder = tmp_path_factory.mktemp("library")
    (folder / building.SIGNATURES).write_text(SIGNATURES)
    environment = {key: value for key, value in os.environ.items() if key not in (jit.MODE, jit.RECORD)}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}"}
    code = (
        f"from pathlib import Path; from phrasetool.kernels import building, jit; import {MODULE}\n"
        f"print(building.build(Path({str(folder)!r}), jit.folders('tests')[1]))"
    )
    outcome = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert outcome.stdout == "5\n"
    return environment


def calls(environment, mode, code=CALLS):
    return subprocess.run(
        [sys.executable, "-c", code], env={**environment, jit.MODE: mode}, capture_output=True, text=True
    )


@pytest.mark.slow
def test_a_library_gives_the_same_results_as_numba(library):
    compiled, reference = calls(library, "ahead"), calls(library, "numba")
    assert (compiled.stderr, reference.stderr) == ("False\n", "True\n")
    assert compiled.stdout == reference.stdout
    assert compiled.stdout.endswith("a limit below 0\n")


@pytest.mark.slow
def test_calls_missing_from_the_library_are_compiled_by_numba(library):
    code = f"""
import numpy as np
from {MODULE} import dot, total
print(dot(np.ones(3), np.ones(3)), total(values=np.ones((1, 1), np.int32), start=1, shape=(1, 1), negative=False))
"""
    assert calls(library, "", code).stdout == "3.0 4\n"
    refused = calls(library, "ahead", code)
    assert refused.stderr.splitlines()[-1] == (
        f"RuntimeError: not compiled ahead of time: {MODULE}:dot float64:1Cw float64:1Cw"
    )


@pytest.mark.slow
def test_a_changed_source_makes_the_library_invalid(library, tmp_path):
    manifest = next((Path(library["XDG_CACHE_HOME"])).rglob(jit.MANIFEST))
    before = manifest.read_text()
    sources = f'"{MODULE}": '
    start = before.index(sources) + len(sources)
    try:
        manifest.write_text(before[:start] + "1" + before[start:])
        assert "not compiled ahead of time" in calls(library, "ahead").stderr
        assert calls(library, "").stderr == "True\n"
        manifest.write_text(before.replace('"AVX2"', '"AVX9"'))
        assert calls(library, "").stderr == "True\n"
        manifest.write_text(before[:100])
        assert calls(library, "").stderr == "True\n"
        # Manifests of earlier versions: libraries in one part, and in parts with other names.
        former = {key: value for key, value in json.loads(before).items() if key != "parts"}
        former["kernels"] = {name: [entry[1:] for entry in some] for name, some in former["kernels"].items()}
        manifest.write_text(json.dumps(former))
        assert calls(library, "").stderr == "True\n"
        manifest.write_text(json.dumps(json.loads(before) | {"parts": 2}))
        assert calls(library, "").stderr == "True\n"
    finally:
        manifest.write_text(before)


def test_every_library_that_holds_kernels_of_a_changed_module_is_invalid(monkeypatch, tmp_path):
    source = tmp_path / "module.py"
    source.write_text("changed")
    now = jit.checksum(source)
    libraries = {
        expected: jit.Library(
            sys.modules.get, {"kernels": {}, "sources": {} if expected == "no part" else {"module": expected}}
        )
        for expected in (now, now + 1, None, "no part")
    }
    monkeypatch.setattr(jit, "_loaded", list(libraries.values()))
    monkeypatch.setattr(jit, "_watched", {})
    jit.watch("module", str(source))
    assert {expected: library.valid for expected, library in libraries.items()} == {
        now: True, now + 1: False, None: True, "no part": True,
    }  # fmt: skip
    # A module without a source file cannot be compared.
    jit.watch("other", str(tmp_path / "missing.py"))
    assert jit._watched == {"module": now, "other": None}
    libraries[now].check("module", None)
    assert libraries[now].valid


def test_an_outdated_library_does_not_hide_that_of_the_cache_folder(monkeypatch, tmp_path):
    package = tmp_path / "kernel_package"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__.py", "some.py", "inner/__init__.py"):
        (package / name).write_text(f"# {name}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(jit.MODE, "")
    monkeypatch.setattr(jit, "_loaded", [])
    monkeypatch.setattr(jit, "_watched", {})
    current = {f"kernel_package{name}": jit.checksum(package / file) for name, file in
               (("", "__init__.py"), (".some", "some.py"), (".inner", "inner/__init__.py"))}  # fmt: skip
    next_to_package, cached = jit.folders("kernel_package")
    cached.mkdir(parents=True)
    stale = [current | {module: checksum + 1} for module, checksum in current.items()]
    for first, second, chosen in (
        *((outdated, current, "cached") for outdated in stale),
        (current, stale[0], "next to the package"),
        (stale[0], stale[1], "next to the package"),
        (current | {"kernel_package.gone": 1}, current, "next to the package"),
    ):
        for folder, sources, name in ((next_to_package, first, "next to the package"), (cached, second, "cached")):
            kernels = {name: []}
            manifest = {"features": [], "parts": [], "kernels": kernels, "sources": sources}
            (folder / jit.MANIFEST).write_text(json.dumps(manifest))
        assert list(jit._library.__wrapped__("kernel_package")._kernels) == [chosen]


@pytest.mark.slow
def test_a_library_is_compared_with_modules_watched_before_it_was_loaded(library):
    """The library of a package may contain kernels of another package."""
    manifest = next((Path(library["XDG_CACHE_HOME"])).rglob(jit.MANIFEST))
    before = manifest.read_text()
    start = before.index('"sources": {') + len('"sources": {')
    try:
        manifest.write_text(f'{before[:start]}"phrasetool.kernels.hashing": 1, {before[start:]}')
        assert calls(library, "", f"import phrasetool.kernels.hashing\n{CALLS}").stderr == "True\n"
    finally:
        manifest.write_text(before)


def test_kernel_calls_can_be_recorded(tmp_path):
    record = tmp_path / "record"
    environment = {**os.environ, jit.RECORD: str(record), "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}"}
    environment.pop(jit.MODE, None)
    assert calls(environment, "").returncode == 0
    collected = set(record.read_text().splitlines())
    assert f"{MODULE}:scaled_keys {MODULE}.Pair(int64:1Cw,float64) int64" in collected
    assert f"{MODULE}:dot float32:1Cr float32:1Cr" in collected
    assert not any("doubled" in line for line in collected)


def test_kernels_neither_import_nor_change_scipy():
    outcome = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=clean_environment()
    )
    assert outcome.stdout.splitlines() == ["False", "[1.0, 1.0]"]


def test_packages_are_compiled_in_parallel_and_report_each_kernel(tmp_path, monkeypatch):
    """`phrasetool compile` does the same with its own packages."""
    names = ["first_kernels", "second_kernels"]
    demo_call, other_call = f"{MODULE}:dot float32:1Cr float32:1Cr", f"{OTHER_MODULE}:negated int64"
    lists = [[building.OF_DEMO, demo_call], [building.OF_DEMO, demo_call, building.OF_OTHERS, other_call]]
    for name, lines in zip(names, lists, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / building.SIGNATURES).write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def times():
        return {path.relative_to(tmp_path): path.stat().st_mtime_ns for path in tmp_path.glob("*/_kernels.*.*")}

    def compiled(demo=False):
        ticks = []
        built = building.build_all(names, lambda: ticks.append(1), demo)
        assert len(ticks) == building.count_kernels(names, demo) == sum(build.kernels for build in built.values())
        assert {name: build.place for name, build in built.items()} == {name: str(tmp_path / name) for name in names}
        return [built[name].kernels for name in names]

    # The kernels of the demo alone, then the missing ones; existing parts are not compiled again.
    assert compiled(demo=True) == [1, 1]
    demo_times = times()
    assert set(demo_times) == {Path(name, jit.part_file(0)) for name in names}
    assert compiled() == [1, 2]
    all_times = times()
    # The kernels of the demo and the others are in two parts, which were compiled by two processes.
    assert set(all_times) - set(demo_times) == {Path(names[1], jit.part_file(1))}
    assert demo_times.items() <= all_times.items()
    manifest = json.loads((tmp_path / names[1] / jit.MANIFEST).read_bytes())
    assert manifest["parts"] == [0, 1]
    loaded = jit.Library(functools.partial(jit._load_part, names[1], tmp_path / names[1]), manifest)
    ones = np.ones(3, np.float32)
    assert loaded.find(*_call(demo_call))(ones, ones) == 3
    assert loaded.find(*_call(other_call))(7) == -7
    # An up-to-date library is not rebuilt, even if only a part of it is requested; one whose list has changed is.
    assert (compiled(), compiled(demo=True)) == ([1, 2], [1, 1])
    assert times() == all_times
    changed = tmp_path / names[0] / building.SIGNATURES
    changed.write_text(changed.read_text() + f"{MODULE}:count_nan float64:1Cw int64\n")
    assert compiled() == [2, 2]
    assert {path.parts[0] for path, time in times().items() if all_times.get(path) != time} == {names[0]}


def test_two_processes_do_not_write_the_same_library(tmp_path, monkeypatch):
    (tmp_path / "locked_kernels").mkdir()
    (tmp_path / "locked_kernels" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    planned = threading.Event()

    def plan(package, demo):
        planned.set()
        return building._Plan(None, {}, 0, [])

    monkeypatch.setattr(building, "_plan", plan)
    # A lock belongs to an open file, so this one acts as that of another process.
    handle = os.open(tmp_path / "locked_kernels", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        waiting = threading.Thread(target=building.build_all, args=(["locked_kernels"],))
        waiting.start()
        assert not planned.wait(0.3)
    finally:
        os.close(handle)
    waiting.join(30)
    assert planned.is_set()


def _call(line):
    name, *codes = line.split()
    return name, codes


def test_without_a_c_compiler_numba_fills_its_cache(tmp_path, monkeypatch):
    (tmp_path / "cached_kernels").mkdir()
    (tmp_path / "cached_kernels" / "__init__.py").write_text("")
    lines = [f"{MODULE}:dot float32:1Cr float32:1Cr", building.OF_OTHERS, f"{OTHER_MODULE}:negated int64"]
    (tmp_path / "cached_kernels" / building.SIGNATURES).write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "_c_compiler", lambda: "no-such-compiler")
    for demo, kernels in ((True, 1), (False, 2)):
        ticks = []
        built = building.build_all(["cached_kernels"], lambda ticks=ticks: ticks.append(1), demo)
        assert built == {"cached_kernels": building.Built(kernels, "numba's cache (no C compiler)")}
        assert len(ticks) == building.count_kernels(["cached_kernels"], demo) == kernels
        assert len(list((tmp_path / "cache").rglob("*.nbi"))) == kernels
    assert not list((tmp_path / "cached_kernels").glob("_kernels*"))
