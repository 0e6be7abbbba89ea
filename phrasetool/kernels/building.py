"""Compiles the kernels of a package ahead of time, into the library that `jit` loads.

The package's `kernel_signatures.txt` lists the kernels to compile and the types of their arguments, recorded from
commands that ran.  Numba's ahead-of-time compiler (`numba.pycc`) writes the machine code; a C compiler builds numba's
run-time helpers and links both.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phrasetool.errors import PhraseToolError
from phrasetool.kernels.jit import EXTENSION, MANIFEST, checksum, folders, item_of
from phrasetool.kernels.processors import Processor, common_processor, compiling_for, this_processor

SIGNATURES = "kernel_signatures.txt"


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


def build_all(packages: list[str]) -> dict[str, Built]:
    """Compile the kernels of packages, in this machine's own way: a library, or numba's cache without a C compiler."""
    return {package: _build_somewhere(package) for package in packages}


def _build_somewhere(package: str) -> Built:
    source, *_ = found = folders(package)
    if shutil.which(_c_compiler()) is None:
        return Built(fill_cache(source), "numba's cache, as there is no C compiler")
    for target in found:
        with contextlib.suppress(PermissionError):
            return Built(build(source, target, this_processor()), str(target / EXTENSION))
    raise PhraseToolError(f"no folder can be written for compiled kernels: {', '.join(map(str, found))}")


def _c_compiler() -> str:
    return str(sysconfig.get_config_var("CC") or "cc").split()[0]


def fill_cache(package: Path) -> int:
    """Have numba compile the kernels of a package's list, or load what it keeps of them; how many they are."""
    listed = signatures(package)
    for name, codes in listed:
        kernel = _kernel_named(name)
        getattr(kernel, "dispatcher", kernel).compile(tuple(map(numba_type, codes)))
    return len(listed)


def _kernel_named(name: str) -> Any:
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)


def build(package: Path, target: Path, processor: Processor | None = None) -> int:
    """Compile the kernels of a package's list into a library.

    Args:
        package: folder of the package; it must be importable by its name.
        target: folder in which the library and its manifest are written.
        processor: what it is to run on; that of most machines, if None.

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
    with _compiled_as_declared(options), compiling_for(processor):
        compiler.compile()
    sources = {name: checksum(str(sys.modules[name].__file__)) for name in _modules_of_kernels()}
    manifest = {"features": processor.features, "sources": sources, "kernels": kernels}
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
def _compiled_as_declared(options: dict[Callable[..., Any], dict[str, Any]]) -> Iterator[None]:
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
        return original(*before, function, types, result, flags, **named)

    compiler.compile_extra = compile_extra
    try:
        yield
    finally:
        compiler.compile_extra = original
