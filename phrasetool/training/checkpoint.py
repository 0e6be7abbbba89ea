"""The log and the checkpoint of a training, which are written after every epoch.

The log, `training.jsonl`, has a JSON line per epoch; the checkpoint is one safetensors file, replaced whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer, SparseAdam

from phrasetool.disk.scratch import scratch_folder
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.training.run import CHECKPOINT, UNFINISHED_CHECKPOINT

LOG = "training.jsonl"
_VERSION = 1


def check_identity(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of other data or settings.

    Args:
        folder: the model folder.
        before: identity that the checkpoint holds, see `phrasetool.training.loop.train`.
        now: identity of the training that resumes.

    Raises:
        ModelError: naming each setting that differs, with both values.
    """
    different = []
    for what, value in now.items():
        if what != "settings" and before.get(what) != value:
            different.append(f"the {what} are other ones")
    settings, chosen = before.get("settings", {}), now["settings"]
    for name in [*chosen, *(name for name in settings if name not in chosen)]:
        if settings.get(name) != chosen.get(name):
            different.append(f"{name} was {settings.get(name)}, not {chosen.get(name)}")
    if different:
        raise ModelError(
            f"{folder / CHECKPOINT}: cannot resume: {', '.join(different)}; give what was given before",
            remedy="train anew",
        )


def write_log(folder: Path, history: Sequence[dict[str, Any]]) -> None:
    """Write the whole log; it holds no times, so a seed fixes every byte.

    Raises:
        PhraseToolError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOG).write_text("".join(json.dumps(line) + "\n" for line in history), "utf-8")
    except OSError as error:
        raise PhraseToolError(f"{folder / LOG}: cannot write: {reason(error)}") from error


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Replace the folder's checkpoint.

    Args:
        tensors: parameters and optimiser state.
        state: all else, as JSON values.

    Raises:
        PhraseToolError: the file cannot be written; the old one is untouched.
    """
    metadata = {"checkpoint": json.dumps({"version": _VERSION, **state})}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In a folder, as safetensors writes to a file of another name first, which stays where it is killed.
        with scratch_folder(folder, UNFINISHED_CHECKPOINT) as place:
            written = Path(place, CHECKPOINT)
            save_file(dict(tensors), written, metadata)
            os.replace(written, folder / CHECKPOINT)
    except (OSError, SafetensorError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise PhraseToolError(f"{folder / CHECKPOINT}: cannot write: {why}") from error


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
    if isinstance(optimizer, SparseAdam):
        # It counts in a number, and computes powers of one with more digits than of a tensor.
        for state in optimizer.state.values():
            state["step"] = int(state["step"])


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
        raise ModelError(f"{path}: the checkpoint is damaged ({error})", remedy="train anew") from error
    if not isinstance(state, dict) or state.get("version") != _VERSION:
        raise ModelError(f"{path}: not a checkpoint of version {_VERSION}")
    return tensors, state
