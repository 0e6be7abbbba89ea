"""A quick start of commands that compile kernels: numba looks for SciPy, which none of our kernels uses."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without_scipy() -> Iterator[None]:
    """Keep numba from importing SciPy, a tenth of a second, in search of a BLAS that no kernel of ours uses."""
    if "scipy" in sys.modules:
        yield
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["scipy"]
