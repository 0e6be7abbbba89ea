"""Ahead-of-time compilation of a package's kernels into the library that `jit` loads, in parts on several cores.

The package's `kernel_signatures.txt` lists the kernels to compile and the types of their arguments, recorded while
running commands: first those that the demo calls, which can be compiled separately.  Numba's ahead-of-time compiler
(`numba.pycc`) generates the machine code; a C compiler compiles numba's run-time helpers, once for all parts, and links
both.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import itertools
import json
import multiprocessing
import os
import queue
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phrasetool.errors import PhraseToolError
from phrasetool.kernels.jit import LIBRARY, MANIFEST, checksum, folders, item_of, part_file
from phrasetool.kernels.processors import Processor, common_processor, compiling_for, this_processor

SIGNATURES = "kernel_signatures.txt"
# Comment lines of a list: before the kernels that the demo calls, and before the others.
OF_DEMO, OF_OTHERS = "# Called by the demo:", "# Called by other commands only:"
_SECONDS_TO_WAIT = 0.2
# A part contains at most one fifth of a package's kernels, unless all its kernels are of one module; parts are compiled
# in parallel.
_PARTS = 5

# Kernels, with the codes of their argument types.
_Signatures = list[tuple[str, list[str]]]


def signatures(package: Path) -> _Signatures:
    """Return (`module:kernel`, codes of its arguments) for each line of a package's list."""
    return [signature for listed in _sections(package) for signature in listed]


def _sections(package: Path) -> list[_Signatures]:
    """Return the kernels that the demo calls, and the others."""
    sections = (package / SIGNATURES).read_text(encoding="utf-8").partition(OF_OTHERS)[::2]
    lines = [[line.split() for line in section.splitlines() if line and line[0] != "#"] for section in sections]
    return [[(name, codes) for name, *codes in section] for section in lines]


def numba_type(code: str) -> Any:
    """Return the numba type of a code; see `jit`."""
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
    """Result for a package: the number of compiled kernels, and where they are stored."""

    kernels: int
    place: str


# Called for each kernel that was compiled.
Tick = Callable[[], object]


def count_kernels(packages: list[str], demo: bool = False) -> int:
    """Return the number of kernels in the lists of packages, or of those that the demo calls."""
    return sum(map(len, (part for package in packages for part in _parts_of(folders(package)[0], demo).values())))


def build_all(
    packages: list[str], tick: Tick = lambda: None, demo: bool = False, processes: int | None = None
) -> dict[str, Built]:
    """Compile the kernels of packages into libraries or, if there is no C compiler, into numba's cache.

    Each part of a library is compiled in a separate process, so that several cores are used.  Up-to-date parts are not
    compiled again.  Processes that compile into the same folder wait for each other.

    Args:
        packages: names of the packages.
        tick: called for each kernel.
        demo: whether to compile only the kernels that the demo calls.
        processes: number of parallel processes; None for the number of processors.

    Raises:
        PhraseToolError: no folder for a library is writable.
    """
    with contextlib.ExitStack() as locks:
        for package in packages:
            _lock_target(package, locks)
        plans = {package: _plan(package, demo) for package in packages}
        for _ in range(sum(plan.current for plan in plans.values())):
            tick()
        missing = any(plan.missing for plan in plans.values())
        compiled = _compile_missing(plans, tick, demo, processes) if missing else {}
        built = {}
        for package, plan in plans.items():
            parts = {part: compiled[package, part] for part in plan.missing}
            if plan.target and parts:
                _write_manifest(folders(package)[0], plan.target, this_processor(), parts, plan.manifest)
            kernels = plan.current + sum(part.kernels for part in parts.values())
            built[package] = Built(kernels, str(plan.target) if plan.target else "numba's cache (no C compiler)")
        return built


def _lock_target(package: str, locks: contextlib.ExitStack) -> None:
    """Wait until no other process writes the library of a package: it would remove the parts of this one.

    Args:
        package: name of the package.
        locks: keeps the lock of the folder that a library is written to, the first one that is writable.  Without a
            writable folder, or on a file system without locks, there is none.
    """
    for target in folders(package):
        with contextlib.suppress(OSError):
            target.mkdir(parents=True, exist_ok=True)
            if os.access(target, os.W_OK):
                handle = os.open(target, os.O_RDONLY)
                locks.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX)
                return


@dataclass(frozen=True)
class _Plan:
    """Parts of a package to compile.

    Attributes:
        target: folder of the library; None without a C compiler.
        manifest: manifest of the library if it is up to date, else empty.
        current: number of requested kernels that need not be compiled again.
        missing: the parts to compile.
    """

    target: Path | None
    manifest: dict[str, Any]
    current: int
    missing: list[int]


def _plan(package: str, demo: bool) -> _Plan:
    """Determine which parts of a package to compile, and where.

    Raises:
        PhraseToolError: no folder is writable.
    """
    source, *_ = candidates = folders(package)
    requested = _parts_of(source, demo)
    for candidate in candidates:
        if manifest := _current_manifest(source, candidate, this_processor()):
            missing = [part for part in requested if part not in manifest["parts"]]
            if not missing or _is_writable(candidate / MANIFEST):
                current = sum(len(listed) for part, listed in requested.items() if part not in missing)
                return _Plan(candidate, manifest, current, missing)
    target = _target_of(package)
    return _Plan(target, {}, 0, list(requested) if target else [0])


def _parts_of(package: Path, demo: bool) -> dict[int, _Signatures]:
    """Return the kernels of each part; the kernels of a module share code and are kept together, as are the demo's."""
    parts: list[_Signatures] = []
    sections = _sections(package)
    size = -(-sum(map(len, sections)) // _PARTS)
    for section in sections[:1] if demo else sections:
        first = len(parts)
        for _, some in itertools.groupby(section, lambda signature: signature[0].partition(":")[0]):
            kernels = list(some)
            if len(parts) == first or len(parts[-1]) + len(kernels) > size:
                parts.append([])
            parts[-1] += kernels
    return dict(enumerate(parts))


def _compile_missing(
    plans: dict[str, _Plan], tick: Tick, demo: bool, processes: int | None
) -> dict[tuple[str, int], _Part]:
    """Compile the missing parts of packages in parallel; return them by package and number."""
    context = multiprocessing.get_context("spawn")
    with (
        context.Manager() as manager,
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, context) as pool,
    ):
        ticks = manager.Queue()
        # Before the parts, because this also makes Python compile numba's modules, which each process would repeat.
        helpers = pool.submit(_compile_helpers, folder).result() if any(plan.target for plan in plans.values()) else []
        jobs = {
            (package, part): pool.submit(_build_part, package, plan.target, part, helpers, ticks, demo)
            for package, plan in plans.items()
            for part in plan.missing
        }
        while not all(job.done() for job in jobs.values()):
            with contextlib.suppress(queue.Empty):
                ticks.get(timeout=_SECONDS_TO_WAIT)
                tick()
        while not ticks.empty():
            ticks.get()
            tick()
        return {key: job.result() for key, job in jobs.items()}


def _is_writable(file: Path) -> bool:
    try:
        file.open("r+b").close()
    except OSError:
        return False
    return True


def _target_of(package: str) -> Path | None:
    """Return an empty folder for a package's library; None without a C compiler."""
    if shutil.which(_c_compiler()) is None:
        return None
    candidates = folders(package)
    for target in candidates:
        with contextlib.suppress(OSError):
            _clear(target)
            return target
    raise PhraseToolError(f"no writable folder for compiled kernels: {', '.join(map(str, candidates))}")


def _clear(target: Path) -> None:
    """Remove a library, so that no command loads a part of it.

    Raises:
        OSError: the folder is not writable.
    """
    target.mkdir(parents=True, exist_ok=True)
    # Write a file: creating the folder does not show that it is writable.
    (target / MANIFEST).write_text("")
    for old in target.glob("_kernels.*"):
        old.unlink()


@dataclass(frozen=True)
class _Part:
    """Result of compiling a part of a library.

    Attributes:
        kernels: number of kernels.
        names: kernel -> for each of its signatures, the symbol in the part and the codes of the arguments.
        sources: modules that may have been compiled into the part -> checksums of their sources.
    """

    kernels: int
    names: dict[str, list[tuple[str, list[str]]]]
    sources: dict[str, int | None]


def _build_part(package: str, target: Path | None, part: int, helpers: list[str], ticks: Any, demo: bool) -> _Part:
    def tick() -> None:
        ticks.put(package)

    source = folders(package)[0]
    if target is None:
        return _Part(fill_cache(source, tick, demo), {}, {})
    return _compile_part(source, target, this_processor(), part, helpers, tick)


def _current_manifest(package: Path, target: Path, processor: Processor) -> dict[str, Any]:
    """Return the manifest of the library in a folder; empty if the library is outdated or incomplete."""
    try:
        manifest: dict[str, Any] = json.loads((target / MANIFEST).read_bytes())
        if not all((target / part_file(part)).is_file() for part in manifest["parts"]):
            return {}
        if manifest["compiled_for"] != _build_key(package, processor):
            return {}
        if manifest["sources"] != {name: _source_checksum(name) for name in manifest["sources"]}:
            return {}
        return manifest
    except (OSError, ValueError, KeyError, TypeError, ImportError):
        return {}


def _build_key(package: Path, processor: Processor) -> list[Any]:
    """Return the values, apart from the sources, that the machine code depends on."""
    numba = importlib.import_module("numba")
    return [processor.name, list(processor.features), numba.__version__, checksum(package / SIGNATURES)]


def _source_checksum(module: str) -> int | None:
    return checksum(str(importlib.import_module(module).__file__))


def _c_compiler() -> str:
    return str(sysconfig.get_config_var("CC") or "cc").split()[0]


def fill_cache(package: Path, tick: Tick = lambda: None, demo: bool = False) -> int:
    """Have numba compile the kernels of a package's list, or those of the demo, or load them from its cache.

    Returns: the number of kernels.
    """
    listed = _sections(package)[0] if demo else signatures(package)
    for name, codes in listed:
        kernel = _kernel_named(name)
        getattr(kernel, "dispatcher", kernel).compile(tuple(map(numba_type, codes)))
        tick()
    return len(listed)


def _kernel_named(name: str) -> Any:
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)


def build(package: Path, target: Path, processor: Processor | None = None, tick: Tick = lambda: None) -> int:
    """Compile the kernels of a package's list into a library, one part after another.

    Args:
        package: folder of the package; the package must be importable by name.
        target: folder in which the library and its manifest are written.
        processor: target processor type; None for `common_processor`.
        tick: called for each kernel.

    Returns: the number of compiled signatures.

    Raises:
        OSError: the folder is not writable, or a compiler fails.
    """
    processor = processor or common_processor()
    _clear(target)
    with tempfile.TemporaryDirectory() as folder:
        helpers = _compile_helpers(folder)
        parts = {
            part: _compile_part(package, target, processor, part, helpers, tick)
            for part in _parts_of(package, demo=False)
        }
    _write_manifest(package, target, processor, parts, {})
    return sum(part.kernels for part in parts.values())


def _compile_helpers(folder: str) -> list[str]:
    """Compile numba's run-time helpers, which are the same in every part; return their object files.

    Raises:
        OSError: the folder is not writable, or the C compiler fails.
    """
    objects: list[str] = _compiler()._compile_mixins(folder)
    return objects


def _compiler() -> Any:
    """Return numba's ahead-of-time compiler."""
    from numba.pycc import CC

    return CC(LIBRARY, source_module=sys.modules[__name__])


def _compile_part(
    package: Path, target: Path, processor: Processor, part: int, helpers: list[str], tick: Tick
) -> _Part:
    """Compile a part of a library.

    Args:
        package: folder of the package.
        target: folder of the library.
        processor: target processor type.
        part: number of the part.
        helpers: object files of numba's run-time helpers.
        tick: called for each kernel.

    Raises:
        OSError: the folder is not writable, or a compiler fails.
    """
    compiler = _compiler()
    compiler._compile_mixins = lambda folder: helpers
    compiler.output_dir, compiler.output_file = str(target), part_file(part)
    compiler.target_cpu = processor.name
    names: dict[str, list[tuple[str, list[str]]]] = {}
    options: dict[Any, dict[str, Any]] = {}
    listed = _parts_of(package, demo=False)[part]
    for number, (name, codes) in enumerate(listed):
        kernel = _kernel_named(name)
        compiler.export(f"kernel_{number}", tuple(map(numba_type, codes)))(kernel.py_func)
        options[kernel.py_func] = kernel.targetoptions
        names.setdefault(name, []).append((f"kernel_{number}", codes))
    with _compiled_as_declared(options, tick), compiling_for(processor):
        compiler.compile()
    return _Part(len(listed), names, {name: _source_checksum(name) for name in _modules_of_kernels()})


def _write_manifest(
    package: Path, target: Path, processor: Processor, parts: dict[int, _Part], former: dict[str, Any]
) -> None:
    """Write the manifest of the newly compiled parts and of those in the former manifest."""
    kernels: dict[str, list[tuple[int, str, list[str]]]] = former.get("kernels", {})
    for number, part in parts.items():
        for name, some in part.names.items():
            kernels.setdefault(name, []).extend((number, symbol, codes) for symbol, codes in some)
    sources = [former.get("sources", {}), *(part.sources for part in parts.values())]
    manifest = {
        "features": processor.features, "parts": sorted([*former.get("parts", []), *parts]), "kernels": kernels,
        "sources": {name: value for some in sources for name, value in some.items()},
        "compiled_for": _build_key(package, processor),
    }  # fmt: skip
    (target / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _modules_of_kernels() -> list[str]:
    """Return the loaded modules that contain kernels or intrinsics and may have been compiled into a library."""
    loaded = [(name, module) for name, module in sys.modules.items() if not name.startswith("numba")]
    return [
        name
        for name, module in loaded
        # Look up the type: reading `__class__` of some modules' values triggers warnings.
        if any(hasattr(type(value), "_numba_type_") for value in list(getattr(module, "__dict__", {}).values()))
    ]


@contextlib.contextmanager
def _compiled_as_declared(options: dict[Callable[..., Any], dict[str, Any]], tick: Tick) -> Iterator[None]:
    """Make numba's ahead-of-time compiler use the options of each kernel, for which it has no argument."""
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
