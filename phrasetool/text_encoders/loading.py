"""Find the encoder of a folder, or an encoder provided by another package."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from phrasetool.errors import ModelError
from phrasetool.text_encoders.folder_safety import checked_folder, folder_identity
from phrasetool.text_encoders.static_encoder import TABLE, WEIGHTS, StaticEncoder
from phrasetool.text_encoders.text_encoder import TOKENIZER, TextEncoder

# Entry-point group in which packages register `factory(path) -> TextEncoder`.
GROUP = "phrasetool.text_encoders"
_NAMED = re.compile(r"([\w.-]+):(.+)", re.DOTALL)


@dataclass(frozen=True)
class FoundEncoder:
    """An encoder that was checked, but is not loaded yet.

    Attributes:
        identity: see `TextEncoder`.
        load: loads the encoder.
    """

    identity: str
    load: Callable[[], TextEncoder]


def find_text_encoder(folder: str | os.PathLike[str]) -> FoundEncoder:
    """Find and check an encoder in a folder on this machine; nothing is downloaded, and no code of the folder runs.

    Args:
        folder: folder of a static model, a sentence-transformers encoder or a transformers encoder; `NAME:PATH` calls
            the factory NAME of another package with PATH.

    Raises:
        ModelError: the folder has no encoder, or a file in it is refused.
    """
    text = os.fspath(folder)
    if (named := _NAMED.fullmatch(text)) and not Path(text).exists():
        entries = {entry.name: entry for entry in entry_points(group=GROUP)}
        if named[1] not in entries:
            raise ModelError(f"{text}: no such folder, and no installed package brings text encoders called {named[1]}")
        loaded = _from_package(text, entries[named[1]], named[2])
        return FoundEncoder(f"{named[1]}-{loaded.identity}", lambda: loaded)
    path = checked_folder(text)
    kind, load = _kind_of(path)
    return FoundEncoder(f"{kind}-{folder_identity(path)}", load)


def _kind_of(path: Path) -> tuple[str, Callable[[], TextEncoder]]:
    """Return the kind of encoder in a folder, and a function that loads it."""
    if (path / WEIGHTS).is_file() and _is_static(path):
        return "static", lambda: StaticEncoder(path)
    if not any(path.rglob("*.safetensors")):
        raise ModelError(f"{path}: holds no weights in safetensors; save the model with safe_serialization=True")
    if (path / "modules.json").is_file():

        def sentence() -> TextEncoder:
            from phrasetool.text_encoders.transformer_encoder import SentenceEncoder

            return SentenceEncoder(path)

        return "sentence", sentence
    if (path / "config.json").is_file():

        def transformer() -> TextEncoder:
            from phrasetool.text_encoders.transformer_encoder import TransformerEncoder

            return TransformerEncoder(path)

        return "transformer", transformer
    raise ModelError(f"{path}: no encoder; expected config.json or modules.json beside {TOKENIZER} and {WEIGHTS}")


def _is_static(path: Path) -> bool:
    """Return whether the weights in the folder itself are the table of a static model."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path / WEIGHTS, "numpy") as file:
            return TABLE in list(file.keys())
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path / WEIGHTS}: not a file of weights ({error})") from error


def _from_package(text: str, entry: Any, path: str) -> TextEncoder:
    if not Path(path).is_dir():
        raise ModelError(f"{text}: {path} is no folder; an encoder is a folder on this machine")
    encoder: Any = entry.load()(path)
    for name, kind in (("dimension", int), ("identity", str)):
        if not isinstance(getattr(encoder, name, None), kind):
            raise ModelError(f"{text}: the encoder has no {name}")
    if not callable(getattr(encoder, "encode", None)) or encoder.dimension < 1:
        raise ModelError(f"{text}: the encoder cannot encode, or its dimension is {encoder.dimension}")
    result: TextEncoder = encoder
    return result
