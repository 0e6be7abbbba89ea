import importlib.util
import os
import sys

import pytest

from phrasetool.kernels import jit
from phrasetool.kernels.processors import AVX2, AVX512, compiling_for, this_processor

KERNEL = "def double(x):\n    return 2 * x\n"


def called(folder):
    """Load and call the kernel as a new process would; return its result and the numbers of cache hits and misses."""
    spec = importlib.util.spec_from_file_location("kernel", folder / "kernel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    double = jit.compile_by_numba(module.double, {"cache": True})
    return double(21), sum(double.stats.cache_hits.values()), sum(double.stats.cache_misses.values())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert called(tmp_path) == (42, 0, 1)
    assert called(tmp_path) == (42, 1, 0)
    return tmp_path


def damage(how, data):
    return {"cut": data[: len(data) // 2], "empty": b"", "zeros": bytes(len(data)), "bit": flipped(data)}[how]


def flipped(data):
    changed = bytearray(data)
    changed[len(data) * 2 // 3] ^= 8
    return bytes(changed)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_cache_files_are_replaced(folder, ending):
    (path,) = (folder / "__pycache__").glob(f"*.{ending}")
    whole = path.read_bytes()
    for kind in ("cut", "empty", "zeros", "bit"):
        path.write_bytes(damage(kind, whole))
        assert called(folder) == (42, 0, 1), kind
        assert called(folder) == (42, 1, 0), kind


def test_no_folder_for_the_cache(tmp_path, monkeypatch):
    """The user's cache folder is used in place of the package's; if files block both, nothing is cached."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "__pycache__").write_text("")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    assert called(tmp_path) == (42, 0, 1)
    assert called(tmp_path) == (42, 1, 0)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "kernel.py"))
    for _ in range(2):
        assert called(tmp_path) == (42, 0, 1)


def test_a_cache_that_cannot_be_written_to_any_more(folder, monkeypatch):
    (path,) = (folder / "__pycache__").glob("*.nbc")
    path.unlink()
    monkeypatch.setattr("numba.core.caching.open", refuse, raising=False)
    assert called(folder) == (42, 0, 1)
    assert not path.exists()


def refuse(path, mode):
    if "w" in mode:
        raise OSError("full")
    return open(path, mode)


def test_no_home(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert len(jit.folders("phrasetool")) == 1


def no_home():
    raise RuntimeError("Could not determine home directory.")


def test_code_for_other_processors_is_not_kept(folder):
    processor = AVX2 if this_processor() == AVX512 else AVX512
    files = {path.name: path.read_bytes() for path in (folder / "__pycache__").iterdir()}
    with compiling_for(processor):
        for _ in range(2):
            assert called(folder) == (42, 0, 1)
    assert {path.name: path.read_bytes() for path in (folder / "__pycache__").iterdir()} == files


CALLING = "from called_kernels import FACTOR, inner\ndef double(x):\n    return inner(x) * FACTOR\n"
CALLED = """
from phrasetool.kernels.jit import compile_by_numba
FACTOR = {factor}
def innermost(x):
    return x + {added}
innermost = compile_by_numba(innermost, {{"cache": True}})
def inner(x):
    return innermost(x)
inner = compile_by_numba(inner, {{"cache": True}})
"""


def test_code_is_compiled_again_when_a_called_function_has_changed(tmp_path, monkeypatch):
    """This includes functions in other files; numba itself checks only the file of the kernel."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "kernel.py").write_text(CALLING)
    expected = {(2, 0): 42, (2, 1): 44, (3, 1): 66}
    for number, ((factor, added), value) in enumerate(expected.items()):
        path = tmp_path / "called_kernels.py"
        path.write_text(CALLED.format(factor=factor, added=added))
        # Python recognises its own compiled code by size and modification time in seconds, so change the time.
        os.utime(path, (number, number))
        for compilations in (1, 0):
            sys.modules.pop("called_kernels", None)
            assert called(tmp_path) == (value, 1 - compilations, compilations)
