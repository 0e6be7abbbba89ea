"""Compiles the kernels of a package ahead of time, into the library that `jit` loads, part by part on several cores.

The package's `kernel_signatures.txt` lists the kernels to compile and the types of their arguments, recorded from
commands that ran.  Numba's ahead-of-time compiler (`numba.pycc`) writes the machine code; a C compiler builds numba's
run-time helpers and links both.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import multiprocessing
import os
import queue
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phrasetool.errors import PhraseToolError
from phrasetool.kernels.jit import MANIFEST, checksum, folders, item_of, part_file, part_name
from phrasetool.kernels.processors import Processor, common_processor, compiling_for, this_processor

SIGNATURES = "kernel_signatures.txt"
_SECONDS_TO_WAIT = 0.2
# A part has at most this fraction of a package's kernels, unless they are all of one module; parts are compiled side by
# side.
_PARTS = 4


def signatures(package: Path) -> list[tuple[str, list[str]]]:
    """(`module:kernel`, codes of its arguments) of each line of a package's list."""
    lines = (package / SIGNATURES).read_text(encoding="utf-8").splitlines()
    return [(name, codes) for name, *codes in map(str.split, lines) if not name.startswith("#")]


def numba_type(code: str) -> Any:
    """The type that a code stands for; see `jit`."""
    types: Any = importlib.import_module("numba.core.types")
    if "(" in code:
        head, inner = code[:-1].split("(", 1)
        items = tuple(numba_type(item) for item in inner.split(","))
        if not head:
            return types.BaseTuple.from_types(items)
        module, name = head.rsplit(".", 1)
        return types.NamedTuple(items, getattr(importlib.import_module(module), name))
    if ":" in code:
        item, shape = code.split(":")
        of_items = importlib.import_module("numba").from_dtype(item_of(item))
        return types.Array(of_items, int(shape[:-2]), shape[-2], readonly=shape[-1] == "r")
    return types.boolean if code == "bool" else getattr(types, code)


@dataclass(frozen=True)
class Built:
    """Result for a package: how many kernels were compiled, and where they are."""

    kernels: int
    place: str


# Called for each kernel that was compiled.
Tick = Callable[[], object]


def count_kernels(packages: list[str]) -> int:
    """Return how many kernels the lists of packages have."""
    return sum(len(signatures(folders(package)[0])) for package in packages)


def build_all(packages: list[str], tick: Tick = lambda: None) -> dict[str, Built]:
    """Compile the kernels of packages, in this machine's own way: libraries, or numba's cache without a C compiler.

    Each part of a library is compiled by a process of its own, so that several cores work.

    Args:
        packages: their names.
        tick: called for each kernel.

    Raises:
        PhraseToolError: no folder can be written for a library.
    """
    current = {package: _current_library(package) for package in packages}
    built = {package: library for package, library in current.items() if library}
    for _ in range(sum(library.kernels for library in built.values())):
        tick()
    targets = {package: _target_of(package) for package in packages if package not in built}
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(os.cpu_count() or 1, context) as pool:
        ticks = manager.Queue()
        jobs = {
            package: [pool.submit(_build_part, package, target, part, ticks) for part in range(_count(package, target))]
            for package, target in targets.items()
        }
        waiting = [job for some in jobs.values() for job in some]
        while not all(job.done() for job in waiting):
            with contextlib.suppress(queue.Empty):
                ticks.get(timeout=_SECONDS_TO_WAIT)
                tick()
        while not ticks.empty():
            ticks.get()
            tick()
        results = {package: [job.result() for job in some] for package, some in jobs.items()}
    for package, target in targets.items():
        if target:
            _write_manifest(folders(package)[0], target, this_processor(), results[package])
        kernels = sum(part.kernels for part in results[package])
        built[package] = Built(kernels, str(target) if target else "numba's cache (no C compiler)")
    return {package: built[package] for package in packages}


def _current_library(package: str) -> Built | None:
    """Return the library of a package if it would not be compiled differently now."""
    source, *_ = places = folders(package)
    for target in places:
        if kernels := _current_kernels(source, target, this_processor()):
            return Built(kernels, str(target))
    return None


def _target_of(package: str) -> Path | None:
    """Return an empty folder for a package's library; None without a C compiler."""
    if shutil.which(_c_compiler()) is None:
        return None
    places = folders(package)
    for target in places:
        with contextlib.suppress(OSError):
            _clear(target)
            return target
    raise PhraseToolError(f"no folder can be written for compiled kernels: {', '.join(map(str, places))}")


def _clear(target: Path) -> None:
    """Remove a library, so that no command loads a part of it.

    Raises:
        OSError: the folder cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    # An empty folder does not tell whether it can be written.
    (target / MANIFEST).write_text("")
    for old in target.glob("_kernels.*"):
        old.unlink()


@dataclass(frozen=True)
class _Part:
    """Result of compiling a part of a library.

    Attributes:
        kernels: how many.
        names: kernel -> its name in the part, and the codes of its arguments, for each of their types.
        sources: modules that may have been compiled into it -> checksums of their sources.
    """

    kernels: int
    names: dict[str, list[tuple[str, list[str]]]]
    sources: dict[str, int | None]


def _count(package: str, target: Path | None) -> int:
    """Return the number of parts in which the kernels of a package are compiled; one without a folder for a library."""
    return len(_divided(signatures(folders(package)[0]))) if target else 1


def _divided(listed: list[tuple[str, list[str]]]) -> list[list[tuple[str, list[str]]]]:
    """Return the kernels of each part: those of a module stay together, as they share code."""
    parts: list[list[tuple[str, list[str]]]] = [[]]
    size = -(-len(listed) // _PARTS)
    for _, some in itertools.groupby(listed, lambda one: one[0].partition(":")[0]):
        kernels = list(some)
        if parts[-1] and len(parts[-1]) + len(kernels) > size:
            parts.append([])
        parts[-1] += kernels
    return parts


def _build_part(package: str, target: Path | None, part: int, ticks: Any) -> _Part:
    def tick() -> None:
        ticks.put(package)

    source = folders(package)[0]
    if target is None:
        return _Part(fill_cache(source, tick), {}, {})
    return _compile_part(source, target, this_processor(), part, tick)


def _current_kernels(package: Path, target: Path, processor: Processor) -> int:
    """Number of kernels of the library in a folder; 0 if there is none or it would be compiled differently now."""
    try:
        manifest = json.loads((target / MANIFEST).read_bytes())
        if not all((target / part_file(part)).is_file() for part in range(manifest["parts"])):
            return 0
        if manifest["compiled_for"] != _circumstances(package, processor):
            return 0
        if manifest["sources"] != {name: _source_checksum(name) for name in manifest["sources"]}:
            return 0
        return sum(map(len, manifest["kernels"].values()))
    except (OSError, ValueError, KeyError, ImportError):
        return 0


def _circumstances(package: Path, processor: Processor) -> list[Any]:
    """Values other than the sources that machine code depends on."""
    numba = importlib.import_module("numba")
    return [processor.name, list(processor.features), numba.__version__, checksum(package / SIGNATURES)]


def _source_checksum(module: str) -> int | None:
    return checksum(str(importlib.import_module(module).__file__))


def _c_compiler() -> str:
    return str(sysconfig.get_config_var("CC") or "cc").split()[0]


def fill_cache(package: Path, tick: Tick = lambda: None) -> int:
    """Have numba compile the kernels of a package's list, or load what it keeps of them; how many they are."""
    listed = signatures(package)
    for name, codes in listed:
        kernel = _kernel_named(name)
        getattr(kernel, "dispatcher", kernel).compile(tuple(map(numba_type, codes)))
        tick()
    return len(listed)


def _kernel_named(name: str) -> Any:
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)


def build(package: Path, target: Path, processor: Processor | None = None, tick: Tick = lambda: None) -> int:
    """Compile the kernels of a package's list into a library, part after part.

    Args:
        package: folder of the package; it must be importable by its name.
        target: folder in which the library and its manifest are written.
        processor: what it is to run on; that of most machines, if None.
        tick: called for each kernel.

    Returns: the number of compiled signatures.

    Raises:
        OSError: the folder cannot be written, or a compiler fails.
    """
    processor = processor or common_processor()
    _clear(target)
    count = len(_divided(signatures(package)))
    parts = [_compile_part(package, target, processor, part, tick) for part in range(count)]
    _write_manifest(package, target, processor, parts)
    return sum(part.kernels for part in parts)


def _compile_part(package: Path, target: Path, processor: Processor, part: int, tick: Tick) -> _Part:
    """Compile a part of a library.

    Raises:
        OSError: the folder cannot be written, or a compiler fails.
    """
    from numba.pycc import CC

    compiler = CC(part_name(part), source_module=sys.modules[__name__])
    compiler.output_dir, compiler.output_file = str(target), part_file(part)
    compiler.target_cpu = processor.name
    names: dict[str, list[tuple[str, list[str]]]] = {}
    options: dict[Any, dict[str, Any]] = {}
    listed = _divided(signatures(package))[part]
    for number, (name, codes) in enumerate(listed):
        kernel = _kernel_named(name)
        compiler.export(f"kernel_{number}", tuple(map(numba_type, codes)))(kernel.py_func)
        options[kernel.py_func] = kernel.targetoptions
        names.setdefault(name, []).append((f"kernel_{number}", codes))
    with _compiled_as_declared(options, tick), compiling_for(processor):
        compiler.compile()
    return _Part(len(listed), names, {name: _source_checksum(name) for name in _modules_of_kernels()})


def _write_manifest(package: Path, target: Path, processor: Processor, parts: Sequence[_Part]) -> None:
    kernels: dict[str, list[tuple[int, str, list[str]]]] = {}
    for number, part in enumerate(parts):
        for name, some in part.names.items():
            kernels.setdefault(name, []).extend((number, symbol, codes) for symbol, codes in some)
    manifest = {
        "features": processor.features, "parts": len(parts), "kernels": kernels,
        "sources": {name: value for part in parts for name, value in part.sources.items()},
        "compiled_for": _circumstances(package, processor),
    }  # fmt: skip
    (target / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _modules_of_kernels() -> list[str]:
    """Those loaded modules that may have been compiled into a library: with a kernel, or with code for kernels."""
    loaded = [(name, module) for name, module in sys.modules.items() if not name.startswith("numba")]
    return [
        name
        for name, module in loaded
        # By type: to ask some modules' values for their class has them warn.
        if any(hasattr(type(value), "_numba_type_") for value in list(getattr(module, "__dict__", {}).values()))
    ]


@contextlib.contextmanager
def _compiled_as_declared(options: dict[Callable[..., Any], dict[str, Any]], tick: Tick) -> Iterator[None]:
    """Have numba's ahead-of-time compiler follow the options of each kernel, which it has no argument for."""
    from numba.core.compiler import Flags
    from numba.core.registry import cpu_target
    from numba.pycc import compiler

    original = compiler.compile_extra

    def compile_extra(*arguments: Any, **named: Any) -> Any:
        *before, function, types, result, _ = arguments
        flags = Flags()
        cpu_target.options.parse_as_flags(flags, options[function])
        flags.no_compile = True
        flags.no_cfunc_wrapper = True
        compiled = original(*before, function, types, result, flags, **named)
        tick()
        return compiled

    compiler.compile_extra = compile_extra
    try:
        yield
    finally:
        compiler.compile_extra = original
