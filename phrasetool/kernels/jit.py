"""Decorators of kernels, with the options that all kernels share, and the library of kernels compiled ahead of time.

* `nogil`: worker threads run kernels in parallel.
* `cache`: compiled once per machine, then loaded in milliseconds.
* `error_model="numpy"`: no check for division by zero, which would prevent LLVM from using vector instructions.
* fastmath without `reassoc`: multiply-adds may be fused, but the order of a sum never changes, so the result of a
  phrase does not depend on its neighbours, the block size or the number of threads.

A package's library of kernels consists of extension modules (`_kernels.0.*.so` and so on, built by `building` with
numba's ahead-of-time compiler) and a manifest next to them (`_kernels.json`), which lists the kernels of each module
with their argument types, the features that the processor must have, and checksums of the sources.  When a kernel is
called, it calls the library if its arguments match, and otherwise numba compiles it as usual.  Without the library,
importing numba and loading its cached code takes most of the time of a short command.

The types of arguments are written as codes: `int64`, `float32`, `bool`, `none`; arrays as item type, number of
dimensions, numba's layout (C, F, A), and r (read-only) or w (writable), as in `uint8:1Cr`, `float32:2Cw`; the item type
of records as fields with their offsets, and the size (`{score=f8@0/state=i4@8/12}:1Cw`); tuples as `(int64,int64)` and
named tuples as `module.Name(code,code)`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from phrasetool import kernels
from phrasetool.kernels.processors import missing_features

_FLAGS = frozenset({"contract", "nnan", "ninf", "nsz"})
_EXACT = {"nogil": True, "cache": True, "error_model": "numpy"}


MANIFEST = "_kernels.json"
# Extension module name shared by all parts: numba's run-time helpers contain it, and are compiled once for all parts.
LIBRARY = "_kernels"
# Environment variable that selects the kernels: "numba" never uses a library, "ahead" raises an error if a called
# kernel is not in the library.  `QUIET` uses both, like the default, but does not announce that kernels are compiled.
MODE = "PHRASETOOL_KERNELS"
QUIET = "quiet"
# Environment variable: a file to which every kernel called from Python appends its argument types, for `building`.
RECORD = "PHRASETOOL_RECORD_KERNELS"

# Array flags that determine the type: C- and Fortran-contiguous, aligned, writable.
_C, _F, _ALIGNED, _WRITABLE = 0x1, 0x2, 0x100, 0x400
_LAYOUT_FLAGS = _C | _F | _ALIGNED | _WRITABLE
_INT64 = range(-(2**63), 2**63)

# Modules with kernel code and the checksums of their sources; and the libraries in use.
_watched: dict[str, int | None] = {}
_loaded: list[Library] = []


class Library:
    """Ahead-of-time compiled kernels of one package.

    Args:
        load: loads the part with the given number.
        manifest: contents of the manifest.
    """

    def __init__(self, load: Callable[[int], ModuleType], manifest: dict[str, Any]) -> None:
        # Parts are loaded when first needed: a command uses few of them.
        self._part = functools.cache(load)
        # Name of a kernel -> for each of its signatures: the part, the symbol, and the codes of the arguments.
        self._kernels: dict[str, list[tuple[int, str, list[str]]]] = manifest["kernels"]
        self._sources: dict[str, int] = manifest["sources"]
        self.valid = True

    def find(self, name: str, codes: list[str]) -> Callable[..., Any] | None:
        """Return a compiled kernel for the given argument types; None if there is none or the library is outdated.

        Args:
            name: name of the kernel, `module:function`.
            codes: codes of the argument types, see `code_of`.
        """
        if self.valid:
            for part, symbol, expected in self._kernels.get(name, ()):
                if len(expected) == len(codes) and all(map(accepts, expected, codes)):
                    try:
                        function: Callable[..., Any] = getattr(self._part(part), symbol)
                    except (OSError, ImportError):
                        self.valid = False
                        return None
                    return function
        return None

    def check(self, module: str, checksum_now: int | None) -> None:
        """Invalidate the library if the source of a module has changed since the library was compiled.

        Args:
            module: name of the module; its kernels may be inlined into kernels of another package's library.
            checksum_now: checksum of its source; None if it could not be read.
        """
        if checksum_now is not None and self._sources.get(module) not in (None, checksum_now):
            self.valid = False


class Kernel:
    """Kernel that calls the library if it has code for the argument types, and otherwise numba."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], library: Library) -> None:
        self.py_func = function
        self._options = options
        self._library = library
        self._calls: dict[Any, Callable[..., Any]] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the kernel."""
        if named:
            return self.dispatcher(*arguments, **named)
        kinds = tuple([_kind(argument) for argument in arguments])
        call = self._calls.get(kinds)
        if call is None:
            call = self._calls[kinds] = self._find(arguments)
        return call(*arguments)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the kernel."""
        return compile_by_numba(self.py_func, self._options)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Compilation options, which numba reads when it inlines the kernel."""
        options: dict[str, Any] = self.dispatcher.targetoptions
        return options

    def __reduce__(self) -> tuple[Any, ...]:
        # Numba pickles the globals of functions that it caches.
        return _kernel_named, (self.py_func.__module__, self.py_func.__qualname__)

    def _find(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        name = f"{self.py_func.__module__}:{self.py_func.__qualname__}"
        codes = [code_of(argument) for argument in arguments]
        if RECORD in os.environ:
            _record(f"{name} {' '.join(codes)}\n")
        if function := self._library.find(name, codes):
            return function
        if os.environ.get(MODE) == "ahead":
            raise RuntimeError(f"not compiled ahead of time: {name} {' '.join(codes)}")
        compiled: Callable[..., Any] = self.dispatcher
        return compiled


def _kernel_named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _kind(argument: Any) -> Any:
    """Return a key for the type of an argument that is fast to compute."""
    if type(argument) is np.ndarray:
        return argument.dtype, argument.ndim, argument.flags.num & _LAYOUT_FLAGS
    if isinstance(argument, tuple):
        return type(argument), *map(_kind, argument)
    if type(argument) is int and argument not in _INT64:
        return np.uint64
    return type(argument)


def code_of(argument: Any) -> str:
    """Return the code of an argument's type; `?` if it cannot be compiled ahead of time."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags.num
        if not flags & _ALIGNED or not argument.dtype.isnative:
            return "?"
        layout = "C" if flags & _C else "F" if flags & _F else "A"
        return f"{_item_code(argument.dtype)}:{argument.ndim}{layout}{'w' if flags & _WRITABLE else 'r'}"
    if isinstance(argument, tuple):
        named = type(argument)
        name = "" if named is tuple else f"{named.__module__}.{named.__qualname__}"
        return f"{name}({','.join(map(code_of, argument))})"
    if argument is None:
        return "none"
    if isinstance(argument, (bool, float)):
        return {bool: "bool", float: "float64"}.get(type(argument), "?")
    if isinstance(argument, int):
        return "int64" if argument in _INT64 else "?"
    return argument.dtype.name if isinstance(argument, np.generic) and argument.dtype.kind in "biuf" else "?"


def _item_code(item: np.dtype[Any]) -> str:
    if item.names is None or item.fields is None:
        return item.name if item.kind in "biuf" else "?"
    fields = [(name, *item.fields[name][:2]) for name in item.names]
    if any(kind.shape or kind.kind not in "biuf" for _, kind, _ in fields):
        return "?"
    inside = [f"{name}={kind.str[1:]}@{offset}" for name, kind, offset in fields]
    return f"{{{'/'.join(inside)}/{item.itemsize}{'!' if item.isalignedstruct else ''}}}"


def item_of(code: str) -> np.dtype[Any]:
    """Return the dtype of an array from the item part of its code: a number type, or a record's fields and size."""
    if not code.startswith("{"):
        return np.dtype(code)
    *fields, size = code[1:-1].split("/")
    names, positions = zip(*(field.split("=") for field in fields), strict=True)
    kinds, offsets = zip(*(position.split("@") for position in positions), strict=True)
    layout: Any = {
        "names": names, "formats": kinds, "offsets": list(map(int, offsets)), "itemsize": int(size.rstrip("!")),
    }  # fmt: skip
    return np.dtype(layout, align=size.endswith("!"))


def accepts(expected: str, given: str) -> bool:
    """Return whether a kernel compiled for one code accepts another; a writable array is accepted as read-only."""
    if "?" in given:
        return False
    if expected == given:
        return True
    if "(" in expected and "(" in given:
        (head, items), (given_head, given_items) = (code[:-1].split("(") for code in (expected, given))
        codes, given_codes = items.split(","), given_items.split(",")
        return head == given_head and len(codes) == len(given_codes) and all(map(accepts, codes, given_codes))
    if ":" not in expected or ":" not in given or expected[:-2] != given[:-2]:
        return False
    return expected[-2] in (given[-2], "A") and expected[-1] in (given[-1], "r")


def _record(line: str) -> None:
    with open(os.environ[RECORD], "a", encoding="utf-8") as file:
        file.write(line)


def checksum(path: str | Path) -> int | None:
    """Return the CRC-32 of a source file; None if it cannot be read (an installation without sources)."""
    try:
        return zlib.crc32(Path(path).read_bytes())
    except OSError:
        return None


def watch(module: str, source: str) -> None:
    """Check once whether a module with kernel code is the one that the loaded libraries were compiled from."""
    if module not in _watched:
        _watched[module] = checksum(source)
        for library in _loaded:
            library.check(module, _watched[module])


@functools.cache
def _library(package: str) -> Library | None:
    if os.environ.get(MODE) == "numba":
        return None
    candidates = []
    for folder in folders(package):
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
            # Earlier versions of the manifest have other parts or none.
            if isinstance(manifest.get("parts"), list) and not missing_features(manifest["features"]):
                candidates.append((Library(functools.partial(_load_part, package, folder), manifest), manifest))
        except (OSError, ValueError, KeyError, ImportError):
            continue
    if candidates:
        library, _ = candidates[0]
        # An outdated library that cannot be written must not hide the one in the cache folder.  Only then are all
        # sources read; otherwise, each is compared when its module is imported.
        if len(candidates) > 1:
            library = next((one for one, manifest in candidates if _is_current(manifest)), library)
        for watched, source_checksum in _watched.items():
            library.check(watched, source_checksum)
        _loaded.append(library)
        return library
    # A library without kernels never loads a part.
    load = functools.partial(_load_part, package, Path())
    return Library(load, {"kernels": {}, "sources": {}}) if RECORD in os.environ else None


def _is_current(manifest: dict[str, Any]) -> bool:
    """Return whether no source of a library has changed since it was compiled; missing sources count as unchanged.

    Args:
        manifest: manifest of the library.
    """
    for module, expected in manifest["sources"].items():
        package, _, name = module.partition(".")
        spec = importlib.util.find_spec(package)
        folder = Path(spec.origin).parent if spec and spec.origin else Path()
        path = folder.joinpath(*filter(None, name.split(".")))
        now = checksum(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
        if None not in (expected, now) and expected != now:
            return False
    return True


def part_file(part: int) -> str:
    """Return the file name of a part of a library."""
    return f"_kernels.{part}{importlib.machinery.EXTENSION_SUFFIXES[0]}"


def _load_part(package: str, folder: Path, part: int) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(f"{package}.{LIBRARY}", str(folder / part_file(part)))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def library_of(module: str) -> Library | None:
    """Return the library of a module's package; None if there is none that this processor can run."""
    return _library(module.partition(".")[0])


def folders(package: str) -> list[Path]:
    """Return the possible folders of a package's library: the package, and the user's cache folder."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    package_folder = Path(spec.origin).parent
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # The user has no home directory.
        return [package_folder]
    return [package_folder, cache / "phrasetool" / f"{zlib.crc32(str(package_folder).encode()):08x}"]


def compile_by_numba(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function that numba compiles on the first call with each combination of argument types."""
    numba = _numba()
    if options.get("cache"):
        from phrasetool.kernels.cache import with_checked_cache

        return with_checked_cache(numba.njit(**{**options, "cache": False})(function))
    return numba.njit(**options)(function)


@functools.cache
def _numba() -> ModuleType:
    """Import numba, hiding SciPy from the part of numba that looks for SciPy's BLAS.

    No kernel here multiplies matrices with BLAS.  Otherwise every command that runs a kernel would import
    `scipy.linalg` to look for it: 0.19 s, a third of the time that a command takes on a small table.  SciPy can be
    imported as usual afterwards; in the same process, numba's `np.correlate` and `np.convolve` do not use BLAS.
    """
    hide = "scipy" not in sys.modules
    if hide:
        sys.modules["scipy"] = None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        if hide:
            del sys.modules["scipy"]
    numba = importlib.import_module("numba")
    from numba.core import event

    class Announcement(event.Listener):
        def on_start(self, event: Any) -> None:
            while kernels.announcements:
                kernels.announcements.pop()()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcement())
    return numba


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a floating-point kernel with the options listed in the module docstring."""
    return _compiled(function, {**_EXACT, "fastmath": set(_FLAGS)})


def exact_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that must treat NaN and infinity as IEEE 754 does (parsing, selection, formatting)."""
    return _compiled(function, _EXACT)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile a small exact kernel into every kernel that calls it.

    LLVM does not inline a call that passes several arrays, and numba then counts references to each array with two
    atomic instructions; for a kernel of a few instructions, that takes most of the time.
    """
    return _compiled(function, {**_EXACT, "inline": "always"})


def borrowing_kernel(function: Callable[..., Any]) -> Any:
    """Compile an exact kernel without reference counts: the arrays belong to the caller for the whole call.

    Counting references to them, with an atomic instruction each time, would take ten times as long as a look-up.
    """
    return _compiled(function, {**_EXACT, "_nrt": False})


def borrowing_float_kernel(function: Callable[..., Any]) -> Any:
    """Compile a floating-point kernel without reference counts; see `borrowing_kernel`."""
    return _compiled(function, {**_EXACT, "fastmath": set(_FLAGS), "_nrt": False})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    watch(function.__module__, function.__code__.co_filename)
    library = library_of(function.__module__)
    if library is None:
        return compile_by_numba(function, options)
    return Kernel(function, options, library)
