"""In how many bits PyTorch multiplies matrices while it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import contextlib

    import torch

FINE, COARSE = PRECISIONS = ("float32", "bfloat16")


def products_in(precision: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Within it, products of matrices are taken in this precision; sums over many, softmax and parameters stay float32.

    Processors that multiply bfloat16 take about half the time for it (PyTorch's automatic mixed precision).

    Args:
        precision: one of `PRECISIONS`.
        device: where they are.
    """
    import torch

    found: contextlib.AbstractContextManager[None] = torch.autocast(
        device.type, torch.bfloat16, enabled=precision == COARSE
    )
    return found
