"""Model folders: `config.json`, vocabularies, `weights.safetensors`.  No pickle: loading a model never runs code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from phrasetool import __version__
from phrasetool.disk.staged_folder import CONFIG, staged
from phrasetool.errors import ModelError, reason
from phrasetool.options import registered

if TYPE_CHECKING:
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.models.neural import NeuralModel
    from phrasetool.models.parallel import ParallelModel

FORMAT_VERSION = 1
WEIGHTS = "weights.safetensors"
# Of `config.json`: the SHA-256 of each other file.
CHECKSUMS = "sha256"
# What `config.json` calls a model -> `module:class`.
MODELS = {
    "brae": "phrasetool.models.bilingual:BilingualModel",
    "autoencoder": "phrasetool.models.autoencoder:AutoencoderModel",
    "continuous": "phrasetool.models.neural:NeuralModel",
    "parallel": "phrasetool.models.parallel:ParallelModel",
    "tagger": "phrasetool.tagger.model:TaggerModel",
    "syntax": "phrasetool.syntax.model:SyntaxModel",
}
# What messages call a model.
_WHAT = {
    "brae": "a model of phrase pairs",
    "autoencoder": "an autoencoder of one language",
    "continuous": "a translator",
    "parallel": "a classifier of sentence pairs",
    "tagger": "a tagger",
    "syntax": "a syntactic encoder",
}


class SavedModel(Protocol):
    """A trained model that a folder holds.

    Attributes:
        training: record of its training, kept in `config.json`.
    """

    training: dict[str, Any]

    @property
    def name(self) -> str:
        """Kind of the model, one of `MODELS`."""

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when anything that the model is made of differs."""

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""

    def config(self) -> dict[str, Any]:
        """The content of `config.json`."""

    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """Name -> array, as stored."""

    def save_vocabularies(self, folder: Path) -> None:
        """Write the files that the model has in addition to configuration and weights."""


def read_model_config(folder: Path) -> dict[str, Any]:
    """Read and check `config.json`.

    Raises:
        ModelError: the folder or the file is missing, is not JSON, or is of another format version.
    """
    path = folder / CONFIG
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such model folder", remedy="train or name a model")
    try:
        config = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot read: {reason(error)}; is {folder} a model folder?") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from error
    if isinstance(config, dict) and "format_version" not in config and "model_type" in config:
        raise ModelError(f"{folder}: holds an encoder of transformers, no model", remedy="name the encoder")
    if not isinstance(config, dict) or config.get("format_version") != FORMAT_VERSION:
        found = config.get("format_version") if isinstance(config, dict) else None
        raise ModelError(f"{path}: format version {found!r}, but this phrasetool reads version {FORMAT_VERSION}")
    if not isinstance(config.get("training", {}), dict):
        raise ModelError(f"{path}: `training` is no object")
    if not isinstance(config.get("model"), str) or config["model"] not in MODELS:
        raise ModelError(f"{path}: unknown model {config.get('model')!r}; expected one of {', '.join(MODELS)}")
    return config


def check_files(folder: Path, config: Mapping[str, Any]) -> None:
    """Make sure that the files of a model folder are those that were saved with its `config.json`.

    A model that was saved before there were checksums is taken as it is.

    Raises:
        ModelError: which file is another one.
    """
    sums = config.get(CHECKSUMS, {})
    if not isinstance(sums, dict):
        raise ModelError(f"{folder / CONFIG}: `{CHECKSUMS}` is no object")
    for name, wanted in sums.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ModelError(f"{folder / CONFIG}: `{CHECKSUMS}` names {name}, which is no file of the folder")
        if _sum(path) != wanted:
            raise ModelError(f"{path}: is not the file that was saved with {CONFIG}; it is damaged or of another model")


def _sum(path: Path) -> str:
    """Of the bytes of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the file is missing") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot read: {reason(error)}") from error


def read_weights(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read named arrays.

    Raises:
        ModelError: the file is missing or damaged.
    """
    try:
        weights: dict[str, npt.NDArray[Any]] = load_file(path)
        return weights
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the file is missing") from error
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ModelError(f"{path}: the weights are damaged ({error})") from error


def load_model(folder: str | os.PathLike[str]) -> SavedModel:
    """Load the model saved in a folder.

    Raises:
        ModelError: it is missing, damaged, or of another format version.
    """
    model: SavedModel = load_kind(folder)
    return model


def load_bilingual_model(folder: str | os.PathLike[str]) -> BilingualModel:
    """Load a model that scores phrase pairs.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: BilingualModel = load_kind(folder, "brae", "train on pairs")
    return model


def load_neural_model(folder: str | os.PathLike[str]) -> NeuralModel:
    """Load a translator.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: NeuralModel = load_kind(folder, "continuous", "train a translator")
    return model


def load_parallel_model(folder: str | os.PathLike[str]) -> ParallelModel:
    """Load a classifier of sentence pairs.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: ParallelModel = load_kind(folder, "parallel", "train a classifier of sentence pairs")
    return model


def load_autoencoder(folder: str | os.PathLike[str]) -> AutoencoderModel:
    """Load an autoencoder of one language.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: AutoencoderModel = load_kind(folder, "autoencoder", "train an autoencoder")
    return model


def load_kind(folder: str | os.PathLike[str], kind: str | None = None, remedy: str | None = None) -> Any:
    """Load a model of one kind.

    Args:
        folder: the model folder.
        kind: one of `MODELS`; None for any.
        remedy: of the error that is raised for another kind.

    Raises:
        ModelError: the model is missing, damaged, of another format version or of another kind.
    """
    path = Path(folder)
    config = read_model_config(path)
    if kind and kind != config["model"]:
        raise ModelError(f"{path}: {_WHAT[config['model']]}; this needs {_WHAT[kind]}", remedy=remedy)
    check_files(path, config)
    model_class = registered(MODELS, config["model"], "model")
    try:
        return model_class.from_files(path, config, read_weights(path / WEIGHTS))
    except KeyError as error:
        raise ModelError(f"{path}: the weights lack {error}") from error
    except ValueError as error:
        raise ModelError(f"{path}: {error}") from error


def save_model(model: SavedModel, folder: str | os.PathLike[str]) -> None:
    """Save a model, as a whole; files of the folder that do not belong to the model (a log, checkpoints) stay.

    Raises:
        PhraseToolError: the folder cannot be written; a model that was there still is.
    """
    path = Path(folder)
    config = {"format_version": FORMAT_VERSION, "phrasetool_version": __version__, **model.config()}
    with staged(path) as stage:
        model.save_vocabularies(stage)
        save_file(model.weights(), stage / WEIGHTS)
        files = sorted(file for file in stage.rglob("*") if file.is_file())
        config[CHECKSUMS] = {file.relative_to(stage).as_posix(): _sum(file) for file in files}
        (stage / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", "utf-8")
