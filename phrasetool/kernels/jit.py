"""How kernels are compiled: one decorator, so that every kernel follows the same rules.

* `nogil`: worker threads run kernels side by side.
* `cache`: compiled once per machine, loaded in milliseconds afterwards.
* `error_model="numpy"`: no test for division by zero, which would keep LLVM from using vector instructions.
* fastmath without `reassoc`: multiply-adds may be fused, but the order of a sum never changes, so the result of a
  phrase does not depend on its neighbours, the block size or the number of threads.
"""

import importlib
import sys
from collections.abc import Callable
from typing import Any


def _import_numba() -> None:
    """Import numba, and the part of it that looks for SciPy's BLAS, while SciPy seems to be missing.

    No kernel here multiplies matrices by BLAS.  Without this every command that runs a kernel would import
    `scipy.linalg` in search of it: 0.19 s, a third of the time that a command takes on a small table.  SciPy can be
    imported as ever afterwards; in the same process numba's `np.correlate` and `np.convolve` stay without BLAS.
    """
    if "scipy" in sys.modules:
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules["scipy"]


_import_numba()

from numba import njit  # noqa: E402

_FLAGS = frozenset({"contract", "nnan", "ninf", "nsz"})


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a floating-point kernel; see the module for the rules it follows."""
    return njit(nogil=True, cache=True, error_model="numpy", fastmath=set(_FLAGS))(function)


def exact_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that must treat NaN and infinity as IEEE 754 does (parsing, selection, formatting)."""
    return njit(nogil=True, cache=True, error_model="numpy")(function)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile a small exact kernel into every kernel that calls it.

    LLVM leaves a call that passes several arrays as it is, and each then has its references counted, an atomic
    instruction twice; for what takes a few instructions itself that is most of the time.
    """
    return njit(nogil=True, cache=True, error_model="numpy", inline="always")(function)
