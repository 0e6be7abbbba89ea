"""Decorators of kernels, with the rules that all kernels follow, and the kernels that were compiled ahead of time.

* `nogil`: worker threads run kernels side by side.
* `cache`: compiled once per machine, loaded in milliseconds afterwards.
* `error_model="numpy"`: no test for division by zero, which would keep LLVM from using vector instructions.
* fastmath without `reassoc`: multiply-adds may be fused, but the order of a sum never changes, so the result of a
  phrase does not depend on its neighbours, the block size or the number of threads.

A package's library of kernels is some extension modules (`_kernels.0.*.so` and so on, made by `building` with numba's
compiler for this) and a manifest next to them (`_kernels.json`): which of them holds which kernels for which types of
arguments, the features that the processor must have, and checksums of the sources.  A kernel looks at its arguments,
calls the library where they match, and else has numba compile it as it always would.  Importing numba and loading its
cached code is most of what a short command takes.

The types of arguments are written as codes: `int64`, `float32`, `bool`, `none`; arrays as item type, dimensions, layout
as numba's (C, F, A) and whether they are read only or writable (`uint8:1Cr`, `float32:2Cw`), where records stand as
fields, their places and a size (`{score=f8@0/state=i4@8/12}:1Cw`); tuples as `(int64,int64)` and named tuples as
`module.Name(code,code)`.
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
# The name of every part as an extension module: numba's run-time helpers, which contain it, are compiled once for all.
LIBRARY = "_kernels"
# Which kernels to use: "numba" never looks for a library, "ahead" fails where a library lacks a kernel that is called.
# With `QUIET` both are used, as without a value, and no command announces that kernels are compiled.
MODE = "PHRASETOOL_KERNELS"
QUIET = "quiet"
# A file to which every kernel that is called from Python writes the types of its arguments, for `building`.
RECORD = "PHRASETOOL_RECORD_KERNELS"

# Flags of an array that its type depends on: C- and Fortran-contiguous, aligned, writable.
_C, _F, _ALIGNED, _WRITABLE = 0x1, 0x2, 0x100, 0x400
_LAYOUT_FLAGS = _C | _F | _ALIGNED | _WRITABLE
_INT64 = range(-(2**63), 2**63)

# The modules that kernels are made of, with the checksums of their sources; and the libraries in use.
_watched: dict[str, int | None] = {}
_loaded: list[Library] = []


class Library:
    """The kernels of one package that were compiled ahead of time."""

    def __init__(self, load: Callable[[int], ModuleType], manifest: dict[str, Any]) -> None:
        # Parts are loaded when they are first needed: a command calls kernels of few.
        self._part = functools.cache(load)
        # Name of a kernel -> its part, its name there, and the codes of its arguments, for each of their types.
        self._kernels: dict[str, list[tuple[int, str, list[str]]]] = manifest["kernels"]
        self._sources: dict[str, int] = manifest["sources"]
        self.valid = True

    def find(self, name: str, codes: list[str]) -> Callable[..., Any] | None:
        """Return what was compiled of a kernel for arguments of some types; None if nothing was, or no longer is it.

        Args:
            name: of the kernel, `module:function`.
            codes: of the types of the arguments, see `code_of`.
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
        """Use nothing of the library when the source of a module is not the one it was compiled from.

        Args:
            module: its name, of this package or of another, whose kernels may be compiled into those of this one.
            checksum_now: the checksum of its source, if that could be read.
        """
        if checksum_now is not None and self._sources.get(module) not in (None, checksum_now):
            self.valid = False


class Kernel:
    """A kernel that calls what was compiled ahead of time for its arguments, or numba where nothing was."""

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
        """The kernel as numba knows it."""
        return compile_by_numba(self.py_func, self._options)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Read by numba where it inlines the kernel."""
        options: dict[str, Any] = self.dispatcher.targetoptions
        return options

    def __reduce__(self) -> tuple[Any, ...]:
        # Numba writes the globals of what it caches.
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
    """Return a key that differs where types of arguments differ, and that is quick to get."""
    if type(argument) is np.ndarray:
        return argument.dtype, argument.ndim, argument.flags.num & _LAYOUT_FLAGS
    if isinstance(argument, tuple):
        return type(argument), *map(_kind, argument)
    if type(argument) is int and argument not in _INT64:
        return np.uint64
    return type(argument)


def code_of(argument: Any) -> str:
    """The code of an argument's type; one that cannot be compiled ahead of time is `?`."""
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
    """The items of an array by the part of its code that names them: a number, or a record's fields and size."""
    if not code.startswith("{"):
        return np.dtype(code)
    *fields, size = code[1:-1].split("/")
    names, places = zip(*(field.split("=") for field in fields), strict=True)
    kinds, offsets = zip(*(place.split("@") for place in places), strict=True)
    layout: Any = {
        "names": names, "formats": kinds, "offsets": list(map(int, offsets)), "itemsize": int(size.rstrip("!")),
    }  # fmt: skip
    return np.dtype(layout, align=size.endswith("!"))


def accepts(expected: str, given: str) -> bool:
    """Whether what was compiled for one code can be called with another: what only reads can read what is writable."""
    if "?" in given:
        return False
    if expected == given:
        return True
    if "(" in expected and "(" in given:
        (head, ours), (given_head, theirs) = (code[:-1].split("(") for code in (expected, given))
        codes, given_codes = ours.split(","), theirs.split(",")
        return head == given_head and len(codes) == len(given_codes) and all(map(accepts, codes, given_codes))
    if ":" not in expected or ":" not in given or expected[:-2] != given[:-2]:
        return False
    return expected[-2] in (given[-2], "A") and expected[-1] in (given[-1], "r")


def _record(line: str) -> None:
    with open(os.environ[RECORD], "a", encoding="utf-8") as file:
        file.write(line)


def checksum(path: str | Path) -> int | None:
    """CRC-32 of a source file; None if it cannot be read (an installation without sources)."""
    try:
        return zlib.crc32(Path(path).read_bytes())
    except OSError:
        return None


def watch(module: str, source: str) -> None:
    """Compare a module that kernels are made of with what libraries were compiled from; once."""
    if module not in _watched:
        _watched[module] = checksum(source)
        for library in _loaded:
            library.check(module, _watched[module])


@functools.cache
def _library(package: str) -> Library | None:
    if os.environ.get(MODE) == "numba":
        return None
    for folder in folders(package):
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
            # The parts of earlier versions had other names, or there were none.
            if isinstance(manifest.get("parts"), list) and not missing_features(manifest["features"]):
                library = Library(functools.partial(_load_part, package, folder), manifest)
                for watched, found in _watched.items():
                    library.check(watched, found)
                _loaded.append(library)
                return library
        except (OSError, ValueError, KeyError, ImportError):
            continue
    # Without kernels, no part is ever loaded.
    without = functools.partial(_load_part, package, Path())
    return Library(without, {"kernels": {}, "sources": {}}) if RECORD in os.environ else None


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
    """The library of a module's package; None if there is none, or none that this processor can run."""
    return _library(module.partition(".")[0])


def folders(package: str) -> list[Path]:
    """Where a package's library may stand: in the package, or in the user's cache folder."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    here = Path(spec.origin).parent
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return [here]
    return [here, cache / "phrasetool" / f"{zlib.crc32(str(here).encode()):08x}"]


def compile_by_numba(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function that numba compiles when it is first called with each type of arguments."""
    numba = _numba()
    if options.get("cache"):
        from phrasetool.kernels.cache import with_checked_cache

        return with_checked_cache(numba.njit(**{**options, "cache": False})(function))
    return numba.njit(**options)(function)


@functools.cache
def _numba() -> ModuleType:
    """Import numba, and the part of it that looks for SciPy's BLAS, while SciPy seems to be missing.

    No kernel here multiplies matrices by BLAS.  Without this every command that runs a kernel would import
    `scipy.linalg` in search of it: 0.19 s, a third of the time that a command takes on a small table.  SciPy can be
    imported as ever afterwards; in the same process numba's `np.correlate` and `np.convolve` stay without BLAS.
    """
    hide = "scipy" not in sys.modules
    if hide:
        sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        if hide:
            del sys.modules["scipy"]
    numba = importlib.import_module("numba")
    from numba.core import event

    class Announcement(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            while kernels.announcements:
                kernels.announcements.pop()()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcement())
    return numba


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a floating-point kernel; see the module for the rules it follows."""
    return _compiled(function, {**_EXACT, "fastmath": set(_FLAGS)})


def exact_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that must treat NaN and infinity as IEEE 754 does (parsing, selection, formatting)."""
    return _compiled(function, _EXACT)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile a small exact kernel into every kernel that calls it.

    LLVM leaves a call that passes several arrays as it is, and each then has its references counted, an atomic
    instruction twice; for what takes a few instructions itself that is most of the time.
    """
    return _compiled(function, {**_EXACT, "inline": "always"})


def borrowing_kernel(function: Callable[..., Any]) -> Any:
    """Compile an exact kernel without reference counts: the arrays belong to the caller for the whole call.

    To count references to them, an atomic instruction each time, would take ten times as long as a look-up.
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
