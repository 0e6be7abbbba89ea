"""What parameters of any encoder must be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.phrases import FloatArray


def check_arrays(arrays: Mapping[str, FloatArray], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that arrays are float32, finite, and of the shapes they should have.

    Args:
        arrays: by name.
        shapes: what is expected of each.

    Raises:
        KeyError: one of them is missing.
        ValueError: one of them is not; it is named.
    """
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected float32 {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds values that are not finite")
