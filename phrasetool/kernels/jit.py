"""How kernels are compiled: one decorator, so that every kernel follows the same rules.

* `nogil`: worker threads run kernels side by side.
* `cache`: compiled once per machine, loaded in milliseconds afterwards.
* `error_model="numpy"`: no test for division by zero, which would keep LLVM from using vector instructions.
* fastmath without `reassoc`: multiply-adds may be fused, but the order of a sum never changes, so the result of a
  phrase does not depend on its neighbours, the block size or the number of threads.

Where kernels were compiled ahead of time (see `ahead`), numba is not even imported before something else is needed.
"""

from collections.abc import Callable
from typing import Any

from phrasetool.kernels import ahead

_FLAGS = frozenset({"contract", "nnan", "ninf", "nsz"})
_EXACT = {"nogil": True, "cache": True, "error_model": "numpy"}


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
    ahead.watch(function.__module__, function.__code__.co_filename)
    library = ahead.library_of(function.__module__)
    if library is None:
        return ahead.compile_by_numba(function, options)
    return ahead.Kernel(function, options, library)
