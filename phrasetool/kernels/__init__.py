"""Kernels that several rooms share, and how kernels are compiled."""

from collections.abc import Callable

# Called before numba compiles for the first time in a process, which takes seconds.
announcements: list[Callable[[], None]] = []
