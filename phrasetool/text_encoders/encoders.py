"""Encoders in folders: static models, transformers and sentence-transformers encoders, and their discovery.

A static model has a vector for each token; the vector of a text is the mean of its tokens' vectors.  The layout is
model2vec's: `tokenizer.json`, `config.json`, and `model.safetensors` with `embeddings`, optionally `weights` (a factor
for each token) and `mapping` (the row of each token).  Neither torch nor transformers is needed to read it.  The vector
of a transformers encoder is the mean of its last layer over the tokens; a sentence-transformers folder determines the
pooling itself, in `modules.json`.  Other packages may provide encoders in an entry-point group.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from phrasetool.errors import ModelError, first_line
from phrasetool.nn.device import one_torch_thread
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.text_encoders.folder_safety import checked_folder, folder_identity, go_offline, quieten, read_json
from phrasetool.text_encoders.text_encoder import TOKENIZER, Side, TextEncoder, encode_batch, over_long, read_tokenizer

WEIGHTS = "model.safetensors"
# Name of the matrix of vectors.
TABLE = "embeddings"
# Maximum number of tokens of a text for a static model.
_LONGEST_STATIC = 512
# Sums and squares of smaller values do not overflow in single precision.
_TOO_LARGE = 1e12
# Maximum number of tokens for other encoders; phrases are short, longer texts are truncated and counted.
LONGEST = 128
# Older versions of sentence-transformers run code of a folder regardless of their arguments.
_FIRST_VERSION = 6
# Entry-point group in which packages register `factory(path) -> TextEncoder`.
GROUP = "phrasetool.text_encoders"
_NAMED = re.compile(r"([\w.-]+):(.+)", re.DOTALL)


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
            ids = [i for i in encoding.ids if i != self._unknown][:_LONGEST_STATIC]
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
        return over_long(self._tokenizer, texts, _LONGEST_STATIC)


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


class TransformerEncoder:
    """A transformers encoder from a folder, with mean pooling.

    Args:
        folder: folder that `checked_folder` accepted.

    Attributes:
        dimension, identity: see `TextEncoder`.
        parallel: several threads may call the encoder at once.

    Raises:
        ModelError: the folder does not hold an encoder, or the encoder is damaged.
    """

    parallel = True

    def __init__(self, folder: Path) -> None:
        self._tokenizer = read_tokenizer(folder)
        model = read_transformer(folder)
        import torch

        # Only the encoder of an encoder-decoder model is used.
        if getattr(model.config, "is_encoder_decoder", False):
            model = model.get_encoder()
        self._model: Any = model.eval()
        self._torch = torch
        config = model.config
        pad = getattr(config, "pad_token_id", None)
        self._pad = pad if isinstance(pad, int) else 0
        self.dimension = int(config.hidden_size)
        self._longest = longest_input(folder, config)
        check_pieces(folder, self._model, self._tokenizer)
        self._tokenizer.enable_truncation(self._longest)
        # Truncation is a state of the tokenizer, so calls must not overlap.
        self._lock = threading.Lock()
        self.identity = f"transformer-{folder_identity(folder)}"

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that limits torch to one thread per batch."""
        return one_torch_thread()

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """Return the means of the last layer over the tokens; see `TextEncoder.encode`."""
        torch = self._torch
        with self._lock:
            encodings = encode_batch(self._tokenizer, texts, special=True)
        ids = [encoding.ids for encoding in encodings]
        width = max(1, *map(len, ids))
        words = np.full((len(ids), width), self._pad, np.int64)
        mask = np.zeros((len(ids), width), np.int64)
        for row, tokens in enumerate(ids):
            words[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        with torch.inference_mode():
            hidden = self._model(input_ids=torch.from_numpy(words), attention_mask=torch.from_numpy(mask))[0]
            weights = torch.from_numpy(mask).unsqueeze(2).to(hidden.dtype)
            means: Any = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        vectors: FloatArray = means.float().numpy()
        return vectors

    def over_long(self, texts: list[str]) -> int:
        """Return the number of texts that are truncated."""
        with self._lock:
            self._tokenizer.no_truncation()
            count = over_long(self._tokenizer, texts, self._longest)
            self._tokenizer.enable_truncation(self._longest)
        return count


def read_transformer(folder: Path) -> Any:
    """Load a `transformers.PreTrainedModel` in float32 and evaluation mode; no downloads, no code of the folder.

    Args:
        folder: folder that `checked_folder` accepted.

    Raises:
        ModelError: the folder does not hold a model, or the model is damaged.
    """
    go_offline()
    import torch
    from transformers import AutoModel

    quieten()
    try:
        return AutoModel.from_pretrained(
            str(folder.resolve()), local_files_only=True, trust_remote_code=False, use_safetensors=True,
            attn_implementation="eager", dtype=torch.float32,
        ).eval()  # fmt: skip
    except Exception as error:  # depends on the settings
        raise ModelError(f"{folder}: not a model that transformers can read ({first_line(error)})") from error


def check_pieces(folder: Path, model: Any, tokenizer: Any) -> None:
    """Raise an error if the tokenizer has more tokens than the model has vectors.

    Raises:
        ModelError: the tokenizer does not belong to the model.
    """
    known, tokens = model.get_input_embeddings().weight.shape[0], tokenizer.get_vocab_size()
    if tokens > known:
        raise ModelError(f"{folder}: {known} vectors for {tokens} tokens: tokenizer and weights are not of one model")


def longest_input(folder: Path, config: Any) -> int:
    """Return the maximum number of tokens of a text.

    Args:
        folder: folder of the encoder.
        config: its `transformers` configuration.
    """
    limits = [LONGEST]
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 4:
        # Encoders derived from RoBERTa number positions from the padding id on.
        limits.append(positions - 2)
    file = folder / "tokenizer_config.json"
    limit = read_json(file).get("model_max_length") if file.is_file() else None
    if isinstance(limit, int) and limit > 2:
        limits.append(limit)
    return min(limits)


class SentenceEncoder:
    """A sentence-transformers encoder from a folder.

    Args:
        folder: folder that `checked_folder` accepted.

    Attributes:
        dimension, identity: see `TextEncoder`.
        parallel: several threads may call the encoder at once.

    Raises:
        ModelError: the folder does not hold an encoder, the encoder is damaged, or the library is too old to be safe.
    """

    parallel = True

    def __init__(self, folder: Path) -> None:
        modules = read_json(folder / "modules.json")
        self._tokenizer = read_tokenizer(_reader_folder(folder, modules))
        go_offline()
        import sentence_transformers
        import torch

        quieten()
        version = str(sentence_transformers.__version__)
        if int(version.partition(".")[0]) < _FIRST_VERSION:
            raise ModelError(
                f"sentence-transformers {version} may run code from a folder; {_FIRST_VERSION} or newer is needed"
            )
        # A static model does not accept arguments of a transformer.
        static = any(module["type"].endswith(".StaticEmbedding") for module in modules)
        settings: dict[str, Any] = {} if static else {"use_safetensors": True, "attn_implementation": "eager"}
        try:
            self._model: Any = sentence_transformers.SentenceTransformer(
                str(folder.resolve()), device="cpu", trust_remote_code=False, local_files_only=True,
                model_kwargs=settings,
            ).eval()  # fmt: skip
        except Exception as error:  # depends on the settings
            message = f"not a model that sentence-transformers can read ({first_line(error)})"
            raise ModelError(f"{folder}: {message}") from error
        self._torch = torch
        self._prompt = self._model.prompts.get(self._model.default_prompt_name or "") or ""
        longest = self._model.max_seq_length
        self._longest = longest if isinstance(longest, int) else None
        # Truncation is a state of the tokenizer, so calls must not overlap.
        self._lock = threading.Lock()
        self.dimension = self.encode(["a"], "source").shape[1]
        self.identity = f"sentence-{folder_identity(folder)}"

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that limits torch to one thread per batch."""
        return one_torch_thread()

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """Encode texts, each preceded by the prompt that the folder specifies; see `TextEncoder.encode`."""
        with self._torch.inference_mode():
            with self._lock:
                features = self._model.preprocess([self._prompt + text for text in texts])
            embeddings: Any = self._model(features)["sentence_embedding"]
            vectors: FloatArray = embeddings.float().cpu().numpy()
        return vectors

    def over_long(self, texts: list[str]) -> int:
        """Return the number of texts that are truncated."""
        return over_long(self._tokenizer, texts, self._longest) if self._longest else 0


def _reader_folder(folder: Path, modules: list[dict[str, str]]) -> Path:
    """Return the folder of the first module, which has the tokenizer."""
    return folder / modules[0]["path"] if modules else folder


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

            return SentenceEncoder(path)

        return "sentence", sentence
    if (path / "config.json").is_file():

        def transformer() -> TextEncoder:

            return TransformerEncoder(path)

        return "transformer", transformer
    raise ModelError(f"{path}: not an encoder; expected config.json or modules.json next to {TOKENIZER} and {WEIGHTS}")


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
        raise ModelError(f"{text}: {path} is not a folder; an encoder is a folder on this machine")
    encoder: Any = entry.load()(path)
    for name, kind in (("dimension", int), ("identity", str)):
        if not isinstance(getattr(encoder, name, None), kind):
            raise ModelError(f"{text}: the encoder has no {name}")
    if not callable(getattr(encoder, "encode", None)) or encoder.dimension < 1:
        raise ModelError(f"{text}: the encoder cannot encode, or its dimension is {encoder.dimension}")
    result: TextEncoder = encoder
    return result
