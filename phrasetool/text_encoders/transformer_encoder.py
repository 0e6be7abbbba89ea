"""Plain encoders of Hugging Face's transformers: the mean of the last layer over the tokens."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import numpy as np

from phrasetool.errors import ModelError, first_line
from phrasetool.nn.device import one_torch_thread
from phrasetool.phrases import FloatArray
from phrasetool.text_encoders.folder_safety import folder_identity, read_json
from phrasetool.text_encoders.offline import go_offline, quieten
from phrasetool.text_encoders.text_encoder import Side
from phrasetool.text_encoders.tokenizing import encode_batch, over_long, read_tokenizer

# Phrases are short; longer ones are cut, and counted.
LONGEST = 128


class TransformerEncoder:
    """A transformers encoder from a folder, with mean pooling.

    Args:
        folder: that was checked.

    Attributes:
        dimension, identity: see `TextEncoder`.
        parallel: several threads may call it at once.

    Raises:
        ModelError: the folder does not hold one, or it is damaged.
    """

    parallel = True

    def __init__(self, folder: Path) -> None:
        self._tokenizer = read_tokenizer(folder)
        model = read_transformer(folder)
        import torch

        # Of a translator, the half that reads.
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
        # The tokenizer keeps its settings in itself.
        self._lock = threading.Lock()
        self.identity = f"transformer-{folder_identity(folder)}"

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """One thread a batch."""
        return one_torch_thread()

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """See `TextEncoder`."""
        torch = self._torch
        with self._lock:
            encodings = encode_batch(self._tokenizer, texts, special=True)
        ids = [encoding.ids for encoding in encodings]
        width = max(1, *map(len, ids))
        words = np.full((len(ids), width), self._pad, np.int64)
        mask = np.zeros((len(ids), width), np.int64)
        for row, found in enumerate(ids):
            words[row, : len(found)] = found
            mask[row, : len(found)] = 1
        with torch.inference_mode():
            hidden = self._model(input_ids=torch.from_numpy(words), attention_mask=torch.from_numpy(mask))[0]
            weights = torch.from_numpy(mask).unsqueeze(2).to(hidden.dtype)
            vectors: Any = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        found_vectors: FloatArray = vectors.float().numpy()
        return found_vectors

    def over_long(self, texts: list[str]) -> int:
        """How many texts have more tokens than are read."""
        with self._lock:
            self._tokenizer.no_truncation()
            count = over_long(self._tokenizer, texts, self._longest)
            self._tokenizer.enable_truncation(self._longest)
        return count


def read_transformer(folder: Path) -> Any:
    """A `transformers.PreTrainedModel` in float32, not in training; nothing is downloaded, and no code is run.

    Args:
        folder: that was checked.

    Raises:
        ModelError: the folder does not hold one, or it is damaged.
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
    except Exception as error:  # whatever the settings lead to
        raise ModelError(f"{folder}: not a model that transformers can read ({first_line(error)})") from error


def check_pieces(folder: Path, model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer with more tokens than the model has vectors for.

    Raises:
        ModelError: names the folder.
    """
    known, tokens = model.get_input_embeddings().weight.shape[0], tokenizer.get_vocab_size()
    if tokens > known:
        raise ModelError(f"{folder}: {known} vectors for {tokens} tokens: tokenizer and weights are not of one model")


def longest_input(folder: Path, config: Any) -> int:
    """Tokens that are read at most.

    Args:
        folder: of the encoder.
        config: its `transformers` configuration.
    """
    limits = [LONGEST]
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 4:
        # Encoders after RoBERTa count positions from behind the padding's number.
        limits.append(positions - 2)
    file = folder / "tokenizer_config.json"
    limit = read_json(file).get("model_max_length") if file.is_file() else None
    if isinstance(limit, int) and limit > 2:
        limits.append(limit)
    return min(limits)
