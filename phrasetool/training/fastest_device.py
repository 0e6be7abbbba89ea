"""Choose the device that trains a model of phrase pairs fastest, by timing a few batches on each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from phrasetool.embeddings.initial import initial_vectors
from phrasetool.nn.device import choose_device, device_name
from phrasetool.train.data import PhrasePairs
from phrasetool.training.settings import TrainingSettings
from phrasetool.training.trainer import Trainer

# Batches of one timed pass.
_BATCHES = 8


@dataclass(frozen=True)
class DeviceChoice:
    """A device and why it was chosen.

    Attributes:
        device: the device to train on.
        speeds: device name -> pairs per second; empty where there was nothing to choose from.
    """

    device: torch.device
    speeds: dict[str, float]

    @property
    def message(self) -> str:
        """The choice in one line; empty where there was nothing to choose from."""
        if not self.speeds:
            return ""
        speeds = ", ".join(f"{name}: {speed:,.0f} pairs/s" for name, speed in self.speeds.items())
        return f"--device auto chose {device_name(self.device)} ({speeds})"


def choose_training_device(
    name: str,
    pairs: PhrasePairs,
    settings: TrainingSettings,
    speed: Callable[[PhrasePairs, TrainingSettings, torch.device], float] | None = None,
) -> DeviceChoice:
    """Choose where to train.

    A recursive auto-encoder makes many small steps, which a GPU may take more slowly than a CPU; so `auto` measures.

    Args:
        name: `cpu`, `cuda` (or `cuda:1`), or `auto`: the fastest device there is.
        pairs: the training pairs.
        settings: of the training.
        speed: measures pairs per second on a device; `training_speed` by default.

    Raises:
        DeviceError: the requested device does not exist.
    """
    device = choose_device(name)
    if name != "auto" or device.type == "cpu":
        return DeviceChoice(device, {})
    candidates: Sequence[torch.device] = (torch.device("cpu"), device)
    speeds = [(speed or training_speed)(pairs, settings, candidate) for candidate in candidates]
    fastest = candidates[int(np.argmax(speeds))]
    return DeviceChoice(fastest, dict(zip(map(device_name, candidates), speeds, strict=True)))


def training_speed(pairs: PhrasePairs, settings: TrainingSettings, device: torch.device) -> float:
    """Measure training speed on a device, in pairs per second.

    Args:
        pairs: the training pairs; a few batches are used.
        settings: of the training.
        device: the device to measure.
    """
    few = pairs.select(np.arange(min(len(pairs), _BATCHES * settings.batch_size)))
    short = replace(settings, iterations=2, pretrain_iterations=0, schedule="linear")
    rng = np.random.default_rng(settings.seed)
    dimension = settings.kind.word_dimension(settings.dimension)
    start = [
        settings.kind.initial(
            initial_vectors(vocabulary, {}, dimension, settings.vector_scale, rng), settings.dimension, settings.start,
            rng,
        )
        for vocabulary in (few.source_vocabulary, few.target_vocabulary)
    ]  # fmt: skip
    seconds = []
    began = time.perf_counter()
    # The first pass compiles and loads kernels, and is not counted.
    for _ in Trainer(few, short, start[0], start[1], device).run():
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
    return len(few) / seconds[-1]
