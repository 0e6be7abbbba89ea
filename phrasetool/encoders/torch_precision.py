"""In how many bits PyTorch multiplies matrices while it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phrasetool.errors import DeviceError

if TYPE_CHECKING:
    import contextlib

    import torch

FINE, COARSE = PRECISIONS = ("float32", "bfloat16")


def has_instructions(precision: str, device: torch.device) -> bool:
    """Whether a device has instructions for such products.

    Args:
        precision: one of `PRECISIONS`.
        device: where they would be taken.
    """
    import torch

    if precision == FINE:
        return True
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # What oneDNN asks before it takes such products: AVX-512, or bfloat16 of ARM.
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse products that a device has no instructions for: what imitates them is some twenty times slower.

    Args:
        precision: one of `PRECISIONS`.
        device: where they would be taken.

    Raises:
        DeviceError: it has none.
    """
    if not has_instructions(precision, device):
        raise DeviceError(
            f"precision {precision} was asked for, but {device} has no instructions for it; {FINE} is faster here"
        )


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
