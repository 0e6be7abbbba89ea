"""Compiles the kernels of a package ahead of time, into the library that `jit` loads.

The package's `kernel_signatures.txt` lists the kernels to compile and the types of their arguments, recorded from
commands that ran.  Numba's ahead-of-time compiler (`numba.pycc`) writes the machine code; a C compiler builds numba's
run-time helpers and links both.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import queue
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phrasetool.errors import PhraseToolError
from phrasetool.kernels.jit import EXTENSION, MANIFEST, checksum, folders, item_of
from phrasetool.kernels.processors import Processor, common_processor, compiling_for, this_processor

SIGNATURES = "kernel_signatures.txt"
_SECONDS_TO_WAIT = 0.2


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
    """Compile the kernels of packages, in this machine's own way: a library, or numba's cache without a C compiler.

    Each package has a process of its own, so that several cores work.

    Args:
        packages: their names.
        tick: called for each kernel.

    Raises:
        PhraseToolError: no folder can be written for a library.
    """
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        ticks = manager.Queue()
        with ProcessPoolExecutor(len(packages), context) as pool:
            futures = {package: pool.submit(_build_somewhere, package, ticks) for package in packages}
            while not all(future.done() for future in futures.values()):
                with contextlib.suppress(queue.Empty):
                    ticks.get(timeout=_SECONDS_TO_WAIT)
                    tick()
            while not ticks.empty():
                ticks.get()
                tick()
            return {package: future.result() for package, future in futures.items()}


def _build_somewhere(package: str, ticks: Any) -> Built:
    def tick() -> None:
        ticks.put(package)

    source, *_ = found = folders(package)
    if shutil.which(_c_compiler()) is None:
        return Built(fill_cache(source, tick), "numba's cache (no C compiler)")
    for target in found:
        if kernels := _current_kernels(source, target, this_processor()):
            for _ in range(kernels):
                tick()
            return Built(kernels, str(target / EXTENSION))
    for target in found:
        with contextlib.suppress(PermissionError):
            return Built(build(source, target, this_processor(), tick), str(target / EXTENSION))
    raise PhraseToolError(f"no folder can be written for compiled kernels: {', '.join(map(str, found))}")


def _current_kernels(package: Path, target: Path, processor: Processor) -> int:
    """Number of kernels of the library in a folder; 0 if there is none or it would be compiled differently now."""
    try:
        manifest = json.loads((target / MANIFEST).read_bytes())
        if not (target / EXTENSION).is_file() or manifest["compiled_for"] != _circumstances(package, processor):
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
    """Compile the kernels of a package's list into a library.

    Args:
        package: folder of the package; it must be importable by its name.
        target: folder in which the library and its manifest are written.
        processor: what it is to run on; that of most machines, if None.
        tick: called for each kernel.

    Returns: the number of compiled signatures.

    Raises:
        OSError: the folder cannot be written, or a compiler fails.
    """
    from numba.pycc import CC

    processor = processor or common_processor()
    target.mkdir(parents=True, exist_ok=True)
    for old in (MANIFEST, EXTENSION):
        (target / old).unlink(missing_ok=True)
    compiler = CC("_kernels", source_module=sys.modules[__name__])
    compiler.output_dir, compiler.target_cpu = str(target), processor.name
    kernels: dict[str, list[tuple[str, list[str]]]] = {}
    options: dict[Any, dict[str, Any]] = {}
    listed = signatures(package)
    for number, (name, codes) in enumerate(listed):
        kernel = _kernel_named(name)
        compiler.export(f"kernel_{number}", tuple(map(numba_type, codes)))(kernel.py_func)
        options[kernel.py_func] = kernel.targetoptions
        kernels.setdefault(name, []).append((f"kernel_{number}", codes))
    with _compiled_as_declared(options, tick), compiling_for(processor):
        compiler.compile()
    sources = {name: _source_checksum(name) for name in _modules_of_kernels()}
    manifest = {
        "features": processor.features, "sources": sources, "kernels": kernels,
        "compiled_for": _circumstances(package, processor),
    }  # fmt: skip
    (target / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return len(listed)


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
