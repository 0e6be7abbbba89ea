"""`training.jsonl`: what happened in training, a JSON line per iteration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phrasetool.errors import PhraseToolError

LOG = "training.jsonl"


def write_log(folder: Path, history: Sequence[dict[str, Any]]) -> None:
    """Write the whole log; there is no time in it, so a seed fixes every byte.

    Raises:
        PhraseToolError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOG).write_text("".join(json.dumps(line) + "\n" for line in history), "utf-8")
    except OSError as error:
        raise PhraseToolError(f"{folder / LOG}: cannot write: {error.strerror}") from error
