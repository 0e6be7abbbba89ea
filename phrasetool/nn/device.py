"""Where and how PyTorch computes: devices, threads, and the precision of matrix products."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from phrasetool.errors import DeviceError

if TYPE_CHECKING:
    import torch


def choose_device(name: str) -> torch.device:
    """`cpu`, `cuda` (or `cuda:1`), or `auto`: the GPU if there is one.

    Raises:
        DeviceError: the device was asked for and is not there.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise DeviceError(f"unknown device {name!r}; expected cpu, cuda or auto") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        message = f"device {name} was asked for, but this machine has no usable GPU"
        raise DeviceError(message, remedy="another device")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        message = f"device {name} was asked for, but this machine has {torch.cuda.device_count()} GPUs, from cuda:0 on"
        raise DeviceError(message, remedy="another device")
    if device.type not in ("cpu", "cuda"):
        raise DeviceError(f"unknown device {name!r}; expected cpu, cuda or auto")
    return device


def device_name(device: torch.device) -> str:
    """Return the name of a device: `cpu`, or that of a GPU with its model."""
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"


_LOCK = threading.Lock()
# Blocks that are under way, and how many threads there were before the first of them.
_inside = _before = 0


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch compute with one thread; it has its threads back when the last such block ends.

    Some of its libraries count threads for the process, others for each thread of it.  So who computes in several
    threads enters here before they start, and again in each of them.
    """
    import torch

    global _inside, _before
    with _LOCK:
        if not _inside:
            _before = torch.get_num_threads()
        _inside += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                torch.set_num_threads(_before)


@contextlib.contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """Let this thread take subnormal numbers, those nearer to 0 than 1e-38, for 0.

    Processors need some forty times as long to calculate with them, and moments of Adam become subnormal for every word
    that does not occur for a thousand updates.  Threads that PyTorch started before keep their own state.
    """
    import torch

    before = takes_subnormals_for_zero()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def takes_subnormals_for_zero() -> bool:
    """Whether this thread takes subnormal numbers for 0."""
    return bool(np.float32(2.0**-126) * np.float32(0.5) == 0)


FLOAT32, BFLOAT16 = PRECISIONS = ("float32", "bfloat16")


def has_instructions(precision: str, device: torch.device) -> bool:
    """Whether a device has instructions for such products.

    Args:
        precision: one of `PRECISIONS`.
        device: where they would be taken.
    """
    import torch

    if precision == FLOAT32:
        return True
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # oneDNN takes such products only with AVX-512, or with bfloat16 of ARM.
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
            f"precision {precision} was asked for, but {device} has no instructions for it; {FLOAT32} is faster here"
        )


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Return a context for matrix products in this precision; long sums, softmax and parameters stay float32.

    Processors that multiply bfloat16 take about half the time for it (PyTorch's automatic mixed precision).

    Args:
        precision: one of `PRECISIONS`.
        device: where they are.
    """
    import torch

    context: contextlib.AbstractContextManager[None] = torch.autocast(
        device.type, torch.bfloat16, enabled=precision == BFLOAT16
    )
    return context
