"""Devices, threads, and the precision of matrix products in PyTorch."""

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
    """Return a device by name: `cpu`, `cuda` (or `cuda:1`), or `auto` for the GPU if there is one.

    Raises:
        DeviceError: the name is unknown, or the device does not exist.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise DeviceError(f"unknown device {name!r}; expected cpu, cuda or auto") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        message = f"device {name} was requested, but this machine has no usable GPU"
        raise DeviceError(message, remedy="another device")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        message = f"device {name} was requested, but this machine has {torch.cuda.device_count()} GPUs, from cuda:0 on"
        raise DeviceError(message, remedy="another device")
    if device.type not in ("cpu", "cuda"):
        raise DeviceError(f"unknown device {name!r}; expected cpu, cuda or auto")
    return device


def device_name(device: torch.device) -> str:
    """Return the name of a device: `cpu`, or the name and model of a GPU."""
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"


_LOCK = threading.Lock()
# Number of active blocks, and the number of threads before the first of them.
_inside = _before = 0


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit PyTorch to one thread; the number of threads is restored when the last such block ends.

    Some of its libraries set the number per process, others per thread of the process.  Therefore code that computes in
    several threads must enter this context before it starts them, and again in each of them.
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
    """Treat subnormal numbers, those nearer to 0 than 1e-38, as 0 in this thread.

    Processors are about forty times as slow with them, and moments of Adam become subnormal for every word that does
    not occur for a thousand updates.  Threads that PyTorch started earlier keep their own state.
    """
    import torch

    before = flushes_subnormals()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def flushes_subnormals() -> bool:
    """Return whether this thread treats subnormal numbers as 0."""
    return bool(np.float32(2.0**-126) * np.float32(0.5) == 0)


FLOAT32, BFLOAT16 = PRECISIONS = ("float32", "bfloat16")


def has_instructions(precision: str, device: torch.device) -> bool:
    """Return whether a device has instructions for matrix products in a precision.

    Args:
        precision: one of `PRECISIONS`.
        device: device to compute on.
    """
    import torch

    if precision == FLOAT32:
        return True
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # oneDNN supports such products only with AVX-512, or with the bfloat16 instructions of ARM.
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return available and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def check_precision(precision: str, device: torch.device) -> None:
    """Reject a precision that a device has no instructions for, because emulation is about twenty times slower.

    Args:
        precision: one of `PRECISIONS`.
        device: device to compute on.

    Raises:
        DeviceError: the device has no such instructions.
    """
    if not has_instructions(precision, device):
        raise DeviceError(
            f"precision {precision} was requested, but {device} has no instructions for it; {FLOAT32} is faster here"
        )


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Return a context for matrix products in this precision; long sums, softmax and parameters remain float32.

    Processors with bfloat16 instructions need about half the time for it (PyTorch's automatic mixed precision).

    Args:
        precision: one of `PRECISIONS`.
        device: device that computes.
    """
    import torch

    context: contextlib.AbstractContextManager[None] = torch.autocast(
        device.type, torch.bfloat16, enabled=precision == BFLOAT16
    )
    return context
