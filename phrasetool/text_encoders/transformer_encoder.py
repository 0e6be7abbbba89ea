"""Encoders of transformers and of sentence-transformers.

An encoder of transformers gives the mean of its last layer over the tokens; a folder of sentence-transformers
determines the pooling itself, in `modules.json`.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import numpy as np

from phrasetool.errors import ModelError, first_line
from phrasetool.nn.device import one_torch_thread
from phrasetool.phrases import FloatArray
from phrasetool.text_encoders.folder_safety import folder_identity, go_offline, quieten, read_json
from phrasetool.text_encoders.text_encoder import Side, encode_batch, over_long, read_tokenizer

# Maximum number of tokens; phrases are short, longer texts are truncated and counted.
LONGEST = 128
# Older versions run code of a folder whatever their arguments are.
_FIRST_VERSION = 6


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
    """Load a `transformers.PreTrainedModel` in float32 and evaluation mode, without downloads and code of the folder.

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
    except Exception as error:  # whatever the settings lead to
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
        except Exception as error:  # whatever the settings lead to
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
