"""How kernels are compiled: one decorator, so that every kernel follows the same rules.

* `nogil`: worker threads run kernels side by side.
* `cache`: compiled once per machine, loaded in milliseconds afterwards.
* `error_model="numpy"`: no test for division by zero, which would keep LLVM from using vector instructions.
* fastmath without `reassoc`: multiply-adds may be fused, but the order of a sum never changes, so the result of a
  phrase does not depend on its neighbours, the block size or the number of threads.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

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
