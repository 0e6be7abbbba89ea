"""Libraries that like to download are told not to, before they are imported."""

from __future__ import annotations

import os

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
