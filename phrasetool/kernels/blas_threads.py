"""NumPy's products of matrices with one thread, for who computes in several threads already."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


def one_blas_thread() -> AbstractContextManager[object]:
    """Threads of products beside those that work on blocks would only wait for each other; without threadpoolctl they
    are there, and the bytes are the same.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limits
