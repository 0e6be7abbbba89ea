"""Checkpoints: one safetensors file, replaced whole after every iteration."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

from phrasetool.errors import ModelError, PhraseToolError

CHECKPOINT = "checkpoint.safetensors"
_VERSION = 1


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Replace the folder's checkpoint.

    Args:
        tensors: parameters and optimiser state.
        state: all else, as JSON values.

    Raises:
        PhraseToolError: the file cannot be written; the old one is untouched.
    """
    metadata = {"checkpoint": json.dumps({"version": _VERSION, **state})}
    temporary = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".checkpoint-", dir=folder)
        os.close(handle)
        save_file(dict(tensors), temporary, metadata)
        os.replace(temporary, folder / CHECKPOINT)
        temporary = None
    except (OSError, SafetensorError) as error:
        raise PhraseToolError(f"{folder / CHECKPOINT}: cannot write: {error}") from error
    finally:
        if temporary:
            os.unlink(temporary)


def optimizer_tensors(optimizer: Optimizer, prefix: str) -> dict[str, Tensor]:
    """The state of an optimiser as tensors named `prefix` + number of the parameter + `.` + what it is."""
    return {
        f"{prefix}{index}.{key}": torch.as_tensor(entry)
        for index, state in optimizer.state_dict()["state"].items()
        for key, entry in state.items()
        if entry is not None
    }


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Give an optimiser the state that `optimizer_tensors` took; tensors of other names are ignored.

    Raises:
        KeyError, RuntimeError, ValueError: it is of other parameters.
    """
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            index, key = name[len(prefix) :].split(".", 1)
            states.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save_checkpoint` wrote.

    Raises:
        ModelError: there is none, or it is damaged.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        raise ModelError(f"{path}: no checkpoint to resume from")
    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads((file.metadata() or {}).get("checkpoint", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: the checkpoint is damaged ({error})") from error
    if not isinstance(state, dict) or state.get("version") != _VERSION:
        raise ModelError(f"{path}: not a checkpoint of version {_VERSION}")
    return tensors, state
