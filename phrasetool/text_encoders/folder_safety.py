"""Safe reading of folders of external encoders: only JSON, text and safetensors; no code, no network.

A pickle can run code when it is read, and the libraries import classes that a folder names.  Therefore a folder is
checked before any library reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from phrasetool.errors import ModelError, reason

# Code, and files that are or hold pickles.
FORBIDDEN = {
    ".py", ".pyc", ".pyd", ".so", ".dll", ".dylib", ".sh", ".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt",
    ".joblib", ".npy", ".npz", ".h5", ".msgpack",
}  # fmt: skip
# Settings that name code, and files that refer to another model.
_NAMING_CODE = {"auto_map", "trust_remote_code", "custom_pipelines"}
_ADAPTERS = {"adapter_config.json": "is an adapter of a separate model; merge it into that model"}
# Files whose keys are tokens, not settings.
_TOKENS = {"tokenizer.json", "vocab.json", "added_tokens.json"}
_INDEX = "model.safetensors.index.json"
_MODULES = "modules.json"
# Classes of sentence-transformers that use no code of the folder, by the last part of their names.
MODULES = {"Transformer", "Pooling", "Normalize", "Dense", "StaticEmbedding"}
_MODULE_PREFIXES = ("sentence_transformers.models.", "sentence_transformers.base.modules.",
          "sentence_transformers.sentence_transformer.modules.")  # fmt: skip
# Activations that a dense layer may have.
ACTIVATIONS = {
    "torch.nn.modules.linear.Identity",
    *(f"torch.nn.modules.activation.{name}" for name in ("Tanh", "ReLU", "GELU", "Sigmoid", "SiLU")),
}
# Files on which vectors do not depend.
_IGNORED = {".md", ".gitattributes", ".gitignore", ".png", ".license"}
# Environment variables that keep transformers and its dependencies off the network, and quiet.
_OFFLINE = {
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


def checked_folder(folder: str | os.PathLike[str]) -> Path:
    """Check that nothing in a folder can run when an encoder is read from it; return the folder.

    Raises:
        ModelError: the folder does not exist, or a file in it is refused.
    """
    path = Path(folder)
    if not path.is_dir():
        problem = "is a file" if path.exists() else "no such folder"
        raise ModelError(f"{folder}: {problem}; an encoder is a folder on this machine, and nothing is downloaded")
    for file in _files(path):
        if file.suffix.lower() in FORBIDDEN:
            raise ModelError(
                f"{file}: may hold code or a pickle, which is never read; a folder of an encoder holds JSON, text and "
                "safetensors alone: remove the file if it is not needed"
            )
        if file.name in _ADAPTERS:
            raise ModelError(f"{file}: {_ADAPTERS[file.name]}")
        if file.suffix == ".json" and file.name not in _TOKENS:
            _check_settings(file, read_json(file))
    return path


def read_json(file: Path) -> Any:
    """Read a file of settings.

    Raises:
        ModelError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ModelError(f"{file}: cannot read: {reason(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: not JSON ({error})") from error


def folder_identity(folder: Path) -> str:
    """Return sixteen hexadecimal digits that differ when a file that a vector could depend on differs."""
    digest = hashlib.sha256()
    for file in sorted(_files(folder)):
        if file.suffix.lower() in _IGNORED or file.name.startswith("."):
            continue
        digest.update(f"\n{file.relative_to(folder).as_posix()}\n{file.stat().st_size}\n".encode())
        with file.open("rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()[:16]


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files, including those in linked folders; each folder is visited once."""
    visited = set()
    for where, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(where)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        yield from (Path(where, name) for name in files)


def _check_settings(file: Path, content: Any) -> None:
    for name, value in _settings(content):
        if name in _NAMING_CODE and value:
            raise ModelError(f"{file}: {name} names code to run, which is refused")
        # Transformers would download a kernel of this name, which is compiled code.
        if name in ("attn_implementation", "_attn_implementation") and isinstance(value, str) and "/" in value:
            raise ModelError(f"{file}: {name} names code to run, {value}, which is refused")
        if name == "activation_function" and isinstance(value, str) and "." in value and value not in ACTIVATIONS:
            raise ModelError(f"{file}: the activation {value} is not one of {', '.join(sorted(ACTIVATIONS))}")
    if file.name == _MODULES:
        _check_modules(file, content)
    if file.name == _INDEX:
        weights = content.get("weight_map") if isinstance(content, dict) else None
        for name in set(map(str, weights.values())) if isinstance(weights, dict) else {""}:
            if PurePosixPath(name).name != name or not name.endswith(".safetensors"):
                raise ModelError(f"{file}: names {name!r}, expected files of safetensors next to it")


def _settings(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield all names and values, at any depth."""
    if isinstance(content, dict):
        yield from content.items()
    for value in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _settings(value)


def _check_modules(file: Path, modules: Any) -> None:
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise ModelError(f"{file}: expected a list of modules")
    for module in modules:
        kind, path = module.get("type"), module.get("path")
        if not isinstance(kind, str) or not isinstance(path, str):
            raise ModelError(f"{file}: a module has no type or no path")
        if kind.rpartition(".")[2] not in MODULES or not kind.startswith(_MODULE_PREFIXES):
            raise ModelError(f"{file}: the module {kind} is not one of {', '.join(sorted(MODULES))}, so it is refused")
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path:
            raise ModelError(f"{file}: the path {path!r} leads out of the folder")


def go_offline() -> None:
    """Keep transformers and its dependencies off the network, and quiet; call it before they are imported."""
    os.environ.update(_OFFLINE)


def quieten() -> None:
    """Disable the progress bars of transformers; call it after transformers is imported."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
