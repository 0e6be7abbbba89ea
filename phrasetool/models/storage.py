"""Model folders: `config.json`, vocabularies, `weights.safetensors`.  No pickle: loading a model never runs code."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from phrasetool import __version__
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.options import registered

if TYPE_CHECKING:
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.models.neural import NeuralModel
    from phrasetool.models.parallel import ParallelModel

Model: TypeAlias = "BilingualModel | AutoencoderModel | NeuralModel | ParallelModel"

FORMAT_VERSION = 1
CONFIG = "config.json"
WEIGHTS = "weights.safetensors"
# What `config.json` calls a model -> `module:class`.
MODELS = {
    "brae": "phrasetool.models.bilingual:BilingualModel",
    "autoencoder": "phrasetool.models.autoencoder:AutoencoderModel",
    "continuous": "phrasetool.models.neural:NeuralModel",
    "parallel": "phrasetool.models.parallel:ParallelModel",
}
# What messages call a model.
_WHAT = {
    "brae": "a model of phrase pairs",
    "autoencoder": "an autoencoder of one language",
    "continuous": "a translator",
    "parallel": "a classifier of sentence pairs",
}


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
        raise ModelError(f"{path}: cannot read: {error.strerror}; is {folder} a model folder?") from error
    except ValueError as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(config, dict) or config.get("format_version") != FORMAT_VERSION:
        found = config.get("format_version") if isinstance(config, dict) else None
        raise ModelError(f"{path}: format version {found!r}, but this phrasetool reads version {FORMAT_VERSION}")
    if not isinstance(config.get("training", {}), dict):
        raise ModelError(f"{path}: `training` is no object")
    if not isinstance(config.get("model"), str) or config["model"] not in MODELS:
        raise ModelError(f"{path}: unknown model {config.get('model')!r}; expected one of {', '.join(MODELS)}")
    return config


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


def load_model(folder: str | os.PathLike[str]) -> Model:
    """Load the model saved in a folder.

    Raises:
        ModelError: it is missing, damaged, or of another format version.
    """
    model: Model = _load(Path(folder))
    return model


def load_bilingual_model(folder: str | os.PathLike[str]) -> BilingualModel:
    """Load a model that scores phrase pairs.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: BilingualModel = _load(Path(folder), "brae", "train on pairs")
    return model


def load_neural_model(folder: str | os.PathLike[str]) -> NeuralModel:
    """Load a translator.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: NeuralModel = _load(Path(folder), "continuous", "train a translator")
    return model


def load_parallel_model(folder: str | os.PathLike[str]) -> ParallelModel:
    """Load a classifier of sentence pairs.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: ParallelModel = _load(Path(folder), "parallel", "train a classifier of sentence pairs")
    return model


def load_autoencoder(folder: str | os.PathLike[str]) -> AutoencoderModel:
    """Load an autoencoder of one language.

    Raises:
        ModelError: as `load_model`; or it is of another kind.
    """
    model: AutoencoderModel = _load(Path(folder), "autoencoder", "train an autoencoder")
    return model


def _load(path: Path, wanted: str | None = None, remedy: str | None = None) -> Any:
    """Load a model, if it is of the wanted kind."""
    config = read_model_config(path)
    if wanted and wanted != config["model"]:
        raise ModelError(f"{path}: {_WHAT[config['model']]}; this needs {_WHAT[wanted]}", remedy=remedy)
    kind = registered(MODELS, config["model"], "model")
    try:
        return kind.from_files(path, config, read_weights(path / WEIGHTS))
    except KeyError as error:
        raise ModelError(f"{path}: the weights lack {error}") from error
    except ValueError as error:
        raise ModelError(f"{path}: {error}") from error


def save_model(model: Model, folder: str | os.PathLike[str]) -> None:
    """Save a model; files of the folder that do not belong to the model (a log, checkpoints) stay.

    Raises:
        PhraseToolError: the folder cannot be written.
    """
    path = Path(folder)
    config = {"format_version": FORMAT_VERSION, "phrasetool_version": __version__, **model.config()}
    with staged(path) as stage:
        model.save_vocabularies(stage)
        save_file(model.weights(), stage / WEIGHTS)
        (stage / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", "utf-8")


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A scratch folder whose files and folders move into `folder` one by one when the block ends well, and vanish
    when not.

    `config.json` moves last: a folder without it is not a model.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".staged-", dir=folder))
    except OSError as error:
        raise PhraseToolError(f"{folder}: cannot write: {error.strerror}") from error
    try:
        yield stage
        for file in sorted(stage.iterdir(), key=lambda file: file.name == CONFIG):
            if file.is_dir():
                # A folder cannot take the place of one that holds something.
                shutil.rmtree(folder / file.name, ignore_errors=True)
            else:
                os.chmod(file, 0o644)
            os.replace(file, folder / file.name)
    except OSError as error:
        raise PhraseToolError(f"{folder}: cannot write: {error.strerror}") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
