"""Where to train."""

from __future__ import annotations

import torch

from phrasetool.errors import DeviceError


def choose_device(name: str) -> torch.device:
    """`cpu`, `cuda` (or `cuda:1`), or `auto`: the GPU if there is one.

    Raises:
        DeviceError: the device was asked for and is not there.
    """
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
    """What to call a device: `cpu`, or that of a GPU with its model."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"
