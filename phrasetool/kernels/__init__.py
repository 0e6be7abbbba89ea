"""Numba kernels that several packages share, and the compilation of kernels.

`jit` defines the decorators of kernels and calls the library of kernels compiled ahead of time, which `building` builds
for one of the `processors`; `cache` checks numba's own cache.  The kernels are in `bytes`, `hashing`, `sorting`, and
`instructions` (vector instructions written out).  `lstm_states` uses NumPy only.
"""

from collections.abc import Callable

# Called before the first compilation by numba in a process, which takes seconds.
announcements: list[Callable[[], None]] = []
