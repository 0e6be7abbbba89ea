"""Libraries that like to download are told not to, before they are imported."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DISABLE_SAFETENSORS_CONVERSION": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "USE_TF": "0",
    "USE_FLAX": "0",
}


def go_offline() -> None:
    """Set the variables that keep transformers and what it uses off the network, and quiet."""
    os.environ.update(_VARIABLES)


def quieten() -> None:
    """No progress bars of transformers, which is imported by now."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch compute a batch with one thread, so that its last bits do not depend on how many there are."""
    torch = sys.modules["torch"]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread_from_here() -> None:
    """Let PyTorch compute with one thread until somebody says otherwise, where several threads call it."""
    torch = sys.modules["torch"]
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
