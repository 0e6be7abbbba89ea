"""Encoders of sentence-transformers: a folder with `modules.json`."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

from phrasetool.errors import ModelError, first_line
from phrasetool.nn.device import one_torch_thread
from phrasetool.phrases import FloatArray
from phrasetool.text_encoders.folder_safety import folder_identity, read_json
from phrasetool.text_encoders.offline import go_offline, quieten
from phrasetool.text_encoders.text_encoder import Side
from phrasetool.text_encoders.tokenizing import over_long, read_tokenizer

# Older ones run code from a folder, whatever they are told.
_FIRST_VERSION = 6


class SentenceEncoder:
    """A sentence-transformers encoder from a folder.

    Args:
        folder: that was checked.

    Attributes:
        dimension, identity: see `TextEncoder`.
        parallel: several threads may call it at once.

    Raises:
        ModelError: the folder does not hold one, or it is damaged; or the library is too old to be safe.
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
        # A static model takes no settings of a transformer.
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
        # The tokenizer keeps its settings in itself.
        self._lock = threading.Lock()
        self.dimension = self.encode(["a"], "source").shape[1]
        self.identity = f"sentence-{folder_identity(folder)}"

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """One thread a batch."""
        return one_torch_thread()

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """See `TextEncoder`; the prompt that the folder asks for stands before every text."""
        with self._torch.inference_mode():
            with self._lock:
                features = self._model.preprocess([self._prompt + text for text in texts])
            found: Any = self._model(features)["sentence_embedding"]
            vectors: FloatArray = found.float().cpu().numpy()
        return vectors

    def over_long(self, texts: list[str]) -> int:
        """How many texts have more tokens than are read."""
        return over_long(self._tokenizer, texts, self._longest) if self._longest else 0


def _reader_folder(folder: Path, modules: list[dict[str, str]]) -> Path:
    """Where the tokenizer of the first module is."""
    return folder / modules[0]["path"] if modules else folder
