"""Instructions that kernels name as they name other kernels, for which numba has no words.

Numba, and what is written for it, is only imported when a kernel that names one of them is compiled.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from phrasetool.kernels import ahead


class Intrinsic:
    """A function of kernels whose instructions are written out.

    Args:
        module, name: where it stands, and as what.
        declare: gives its signature and what writes its instructions for the types of arguments, as
            `numba.extending.intrinsic` wants it; no signature for types that it does not take.
    """

    def __init__(self, module: str, name: str, declare: Callable[..., Any]) -> None:
        # By both, numba finds it again when it reads the globals of what it cached.
        self.__module__, self._name = module, name
        self._declare = declare
        # What was compiled ahead of time holds the instructions that are written in that module.
        ahead.watch(module, str(sys.modules[module].__file__))

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """What numba knows the function by."""
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        declared = intrinsic(self._declare)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(declared)

    def __reduce__(self) -> str:
        return self._name
