"""What experiments remember: digits that tell whether something was done before, and what it gave."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from moses_compat.engine.model import MosesModel
from moses_compat.files.streams import Output
from phrasetool.errors import PhraseToolError, reason

_VERSION = "1"


def file_digest(path: str) -> str:
    """Hexadecimal digits of what a file holds.

    Raises:
        PhraseToolError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()[:24]
    except OSError as error:
        raise PhraseToolError(f"{path}: cannot read: {reason(error)}") from error


def digest_of(*parts: bytes | str) -> str:
    """Hexadecimal digits that differ when a part differs."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:20]


def decoder_identity(model: MosesModel, texts: Mapping[str, bytes]) -> str:
    """Digits that differ when anything differs that translations depend on, besides the entries and the weights."""
    features = model.features
    return digest_of(
        _VERSION,
        *(file_digest(path) for path in model.paths),
        repr((features.sizes, features.reordering, features.unknown_weight)),
        repr(model.search),
        # Of one table, what was kept before there could be several is found again.
        *([repr((model.decoding, model.place))] if len(features.tables) > 1 else []),
        *(part for name, text in texts.items() for part in (name, text)),
    )


def read_record(path: str) -> dict[str, Any]:
    """What a JSON file holds; nothing if it is not there, or damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


class RunStore:
    """Finished runs, a JSON file each, which is there whole or not at all.

    Args:
        folder: is made if it is not there.

    Raises:
        PhraseToolError: the folder cannot be made.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise PhraseToolError(f"{folder}: cannot make the folder: {reason(error)}") from error

    def unfinished(self, key: str) -> str:
        """Beside which a run keeps what it has finished, see `FinishedWork`."""
        return os.path.join(self.folder, key)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, f"{key}.json")

    def read(self, key: str) -> dict[str, Any] | None:
        """What a run found; None if it was not finished, or its file is damaged."""
        record = read_record(self._path(key))
        return record if "translations" in record else None

    def write(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep what a run found."""
        with Output(self._path(key)) as out:
            out.write_text(json.dumps(record, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n")
