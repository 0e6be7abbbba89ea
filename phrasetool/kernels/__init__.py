"""Numba kernels that several packages share, and the compilation of kernels.

`jit` has the decorators of kernels and calls the library of kernels compiled ahead of time, which `building` makes for
one of the `processors`; `cache` checks numba's own cache.  The kernels: `bytes`, `hashing`, `sorting`, and functions
whose `instructions` are written out.  `lstm_states` computes with NumPy alone.
"""

from collections.abc import Callable

# Called before numba compiles for the first time in a process, which takes seconds.
announcements: list[Callable[[], None]] = []
