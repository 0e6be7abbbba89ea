"""Static models: a vector for each token; the vector of a text is the mean of its tokens' vectors.

The layout is model2vec's: `tokenizer.json`, `config.json`, and `model.safetensors` with `embeddings`, optionally
`weights` (a factor for each token) and `mapping` (the row of each token).  NumPy alone is needed to read it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from phrasetool.errors import ModelError
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.text_encoders.folder_safety import folder_identity, read_json
from phrasetool.text_encoders.text_encoder import Side, encode_batch, over_long, read_tokenizer

WEIGHTS = "model.safetensors"
# Name of the matrix of vectors.
TABLE = "embeddings"
# Maximum number of tokens of a text.
_LONGEST = 512
# Sums and squares of smaller values do not overflow in single precision.
_TOO_LARGE = 1e12


class StaticEncoder:
    """A static model from a folder.

    Args:
        folder: folder that `checked_folder` accepted.

    Attributes:
        dimension, identity: see `TextEncoder`.
        parallel: several threads may call the encoder at once.

    Raises:
        ModelError: the folder does not hold a static model, or the model is damaged.
    """

    parallel = True

    def __init__(self, folder: Path) -> None:
        self._tokenizer = read_tokenizer(folder)
        self._unknown = _unknown(self._tokenizer)
        arrays = _read_arrays(folder / WEIGHTS)
        if TABLE not in arrays or arrays[TABLE].ndim != 2:
            raise ModelError(f"{folder / WEIGHTS}: holds no matrix {TABLE}")
        self._vectors = np.ascontiguousarray(arrays[TABLE], np.float32)
        if not np.isfinite(self._vectors).all():
            raise ModelError(f"{folder / WEIGHTS}: holds values that are not finite")
        if not (np.abs(self._vectors) < _TOO_LARGE).all():
            raise ModelError(f"{folder / WEIGHTS}: holds values of {_TOO_LARGE:g} and more")
        # The ids of a damaged vocabulary may have gaps.
        tokens = max(self._tokenizer.get_vocab_size(), 1 + max(self._tokenizer.get_vocab().values(), default=-1))
        self._rows = self._per_token(folder, arrays.get("mapping"), tokens)
        self._factors = arrays.get("weights")
        if self._factors is not None and len(self._factors) < tokens:
            raise ModelError(f"{folder}: {len(self._factors)} weights for {tokens} tokens")
        if self._factors is not None and not (np.abs(self._factors) < _TOO_LARGE).all():
            raise ModelError(f"{folder / WEIGHTS}: weights of tokens are not finite, or {_TOO_LARGE:g} and more")
        self._unit = bool(_config(folder).get("normalize", False))
        self.dimension = int(self._vectors.shape[1])
        self.identity = f"static-{folder_identity(folder)}"

    def _per_token(self, folder: Path, mapping: Any, tokens: int) -> Int64Array:
        # A damaged vocabulary may claim any number of tokens.
        rows = np.arange(min(tokens, len(self._vectors))) if mapping is None else np.asarray(mapping, np.int64)
        if len(rows) < tokens or (len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(self._vectors)):
            message = f"{len(self._vectors)} vectors for {tokens} tokens: tokenizer and weights are not of one model"
            raise ModelError(f"{folder}: {message}")
        return rows

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """Return the mean vectors of the known tokens, weighted if the model has weights; see `TextEncoder.encode`."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, encoding in enumerate(encode_batch(self._tokenizer, texts)):
            ids = [i for i in encoding.ids if i != self._unknown][:_LONGEST]
            if not ids:
                continue
            tokens = self._vectors[self._rows[ids]]
            if self._factors is not None:
                tokens = tokens * np.asarray(self._factors[ids], np.float32)[:, None]
            vectors[row] = tokens.sum(0) / np.float32(len(ids))
        if self._unit:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(lengths > 0, lengths, 1)
        return vectors

    def over_long(self, texts: list[str]) -> int:
        """Return the number of texts with more than 512 tokens, which are truncated."""
        return over_long(self._tokenizer, texts, _LONGEST)


def _unknown(tokenizer: Any) -> int | None:
    """Return the id of the token for unknown words, which is left out of means; None if there is none."""
    if token := getattr(tokenizer.model, "unk_token", None):
        number: int | None = tokenizer.token_to_id(token)
        return number
    unknown = json.loads(tokenizer.to_str())["model"].get("unk_id")
    return unknown if isinstance(unknown, int) else None


def _config(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    config = read_json(file) if file.is_file() else {}
    return config if isinstance(config, dict) else {}


def _read_arrays(file: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays: dict[str, Any] = load_file(file)
        return arrays
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelError(f"{file}: not a file of weights ({error})") from error
