"""Model folders: `config.json`, vocabularies, `weights.safetensors`.  No pickle: loading a model never runs code.

`SavedModel` is the base class of the models of all families; the families are registered in `families`.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from phrasetool import __version__
from phrasetool.disk.folders import CONFIG, staged
from phrasetool.errors import ModelError, reason
from phrasetool.models.families import FAMILIES, any_of, saved_families
from phrasetool.options import imported
from phrasetool.phrases import FloatArray
from phrasetool.vocabulary import Vocabulary

FORMAT_VERSION = 1
WEIGHTS = "weights.safetensors"
# Key of `config.json` with the SHA-256 of each other file.
CHECKSUMS = "sha256"
Model = TypeVar("Model", bound="SavedModel")


class SavedModel(ABC):
    """Base class of trained models, which are saved in folders.

    Attributes:
        name: name of the family, see `phrasetool.models.families`.
        arrays: name -> array; a model that keeps its arrays elsewhere overrides `weights`.
        training: record of the training, kept in `config.json`.
        column: name of the scores of `score_pairs` in signatures of tables; empty for a family that scores no pairs.
    """

    name: ClassVar[str]
    column: ClassVar[str] = ""
    arrays: dict[str, npt.NDArray[Any]]
    training: dict[str, Any]

    @property
    @abstractmethod
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when any part of the model differs; see `model_identity`."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """The model's part of a signature line."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return the description of the model for `config.json`, without family and record of the training."""

    @classmethod
    @abstractmethod
    def from_files(cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Build the model from the content of its folder.

        Args:
            folder: the model folder, for other files.
            config: content of `config.json`.
            weights: name -> array, as stored.

        Raises:
            ModelError: another file cannot be read, or `config.json` does not describe such a model.
            KeyError, ValueError: weights are missing, or do not agree with `config.json`.
        """

    def weights(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the arrays to store, by name."""
        return self.arrays

    @abstractmethod
    def save_files(self, folder: Path) -> None:
        """Write the files that the model has in addition to configuration and weights, such as vocabularies."""

    def facts(self) -> dict[str, Any]:
        """Return the facts that `phrasetool inspect` shows of the model, apart from its vocabularies and training."""
        return {**self.description(), "numbers": sum(array.size for array in self.arrays.values())}

    def named_vocabularies(self) -> Mapping[str, Vocabulary]:
        """Return the vocabularies by the name of their texts, such as `source`."""
        return {}

    def score_pairs(self, sources: Sequence[bytes], targets: Sequence[bytes]) -> FloatArray:
        """Score phrase pairs, for a column of a phrase table; for families with a `column`.

        Args:
            sources, targets: N phrases each, words separated by spaces.

        Returns:
            float32, shape (N,), above 0 and at most 1; NaN where the model cannot score a pair.
        """
        raise NotImplementedError(f"{self.name} does not score pairs")

    def evaluate(self, texts: Sequence[Sequence[bytes]]) -> Mapping[str, float]:
        """Measure the model on held-out texts, for `phrasetool evaluate-model`.

        Args:
            texts: lines of each text, words separated by spaces.

        Returns:
            Measures by name.

        Raises:
            ValueError: the number of texts is wrong, or the texts do not match.
            NotImplementedError: the family has no such evaluation.
        """
        raise NotImplementedError(f"{self.name} has no evaluation on texts")

    def config(self) -> dict[str, Any]:
        """Return the content of `config.json`, apart from versions and checksums."""
        return {"model": self.name, **self.description(), "training": self.training}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the model; files of the folder that do not belong to a model (a log, checkpoints) are kept.

        Raises:
            PhraseToolError: the folder cannot be written; an earlier model in it is kept.
        """
        path = Path(folder)
        config = {"format_version": FORMAT_VERSION, "phrasetool_version": __version__, **self.config()}
        with staged(path) as stage:
            self.save_files(stage)
            save_file(dict(self.weights()), stage / WEIGHTS)
            files = sorted(file for file in stage.rglob("*") if file.is_file())
            config[CHECKSUMS] = {file.relative_to(stage).as_posix(): _sum(file) for file in files}
            (stage / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Load a model of this family.

        Raises:
            ModelError: the model is missing, damaged, of another format version or of another family.
        """
        path = Path(folder)
        config = read_model_config(path, cls.name)
        if config["model"] != cls.name:
            raise wrong_family(folder, config["model"], cls.name)
        return _load(cls, path, config)


def wrong_family(folder: str | os.PathLike[str], family: str, *required: str) -> ModelError:
    """Return the error for a folder with a model of `family` in place of one of the families `required`."""
    needed = any_of(required)
    return ModelError(
        f"{os.fspath(folder)}: {FAMILIES[family].description}; this needs {needed}",
        remedy=f"train {needed}" if len(required) == 1 else "train or name a model",
    )


def load_saved_model(folder: str | os.PathLike[str]) -> SavedModel:
    """Load the model saved in a folder, of any family.

    Raises:
        ModelError: the model is missing, damaged or of another format version.
    """
    path = Path(folder)
    config = read_model_config(path)
    family: type[SavedModel] = imported(FAMILIES[config["model"]].model)
    return _load(family, path, config)


def read_model_config(folder: Path, family: str = "") -> dict[str, Any]:
    """Read and check `config.json`.

    Args:
        folder: the model folder.
        family: the required family, for the remedy of a missing folder; any if empty.

    Raises:
        ModelError: the folder or the file is missing, or the file is invalid, of another format version or of an
            unknown family.
    """
    path = folder / CONFIG
    if not folder.is_dir():
        message = f"{folder}: no such model folder"
        if family:
            raise ModelError(message, remedy=f"train {FAMILIES[family].description}")
        raise ModelError(message, remedy="train or name a model")
    try:
        config = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot read: {reason(error)}; is {folder} a model folder?") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from error
    if isinstance(config, dict) and "format_version" not in config and "model_type" in config:
        raise ModelError(f"{folder}: this is a Hugging Face encoder, not a phrasetool model", remedy="name the encoder")
    if not isinstance(config, dict) or config.get("format_version") != FORMAT_VERSION:
        version = config.get("format_version") if isinstance(config, dict) else None
        raise ModelError(f"{path}: format version {version!r}, but this phrasetool reads version {FORMAT_VERSION}")
    if not isinstance(config.get("training", {}), dict):
        raise ModelError(f"{path}: `training` is not an object")
    names = saved_families()
    if not isinstance(config.get("model"), str) or config["model"] not in names:
        raise ModelError(f"{path}: unknown model {config.get('model')!r}; expected one of {', '.join(names)}")
    return config


def check_files(folder: Path, config: Mapping[str, Any]) -> None:
    """Check that the files of a model folder are those that were saved with its `config.json`.

    Models that were saved before checksums were introduced are not checked.

    Raises:
        ModelError: a file is missing or differs; the message names it.
    """
    sums = config.get(CHECKSUMS, {})
    if not isinstance(sums, dict):
        raise ModelError(f"{folder / CONFIG}: `{CHECKSUMS}` is not an object")
    for name, expected in sums.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ModelError(f"{folder / CONFIG}: `{CHECKSUMS}` names {name}, which is not a file of the folder")
        if _sum(path) != expected:
            raise ModelError(f"{path}: is not the file that was saved with {CONFIG}; it is damaged or of another model")


def _sum(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the file is missing") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot read: {reason(error)}") from error


def read_weights(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read arrays by name.

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


def _load(family: type[Model], path: Path, config: Mapping[str, Any]) -> Model:
    check_files(path, config)
    try:
        return family.from_files(path, config, read_weights(path / WEIGHTS))
    except KeyError as error:
        raise ModelError(f"{path}: the weights lack {error}") from error
    except ValueError as error:
        raise ModelError(f"{path}: {error}") from error


def model_identity(
    head: str | bytes, arrays: Mapping[str, npt.NDArray[Any]], vocabularies: tuple[Vocabulary, ...], tail: str = ""
) -> str:
    """Return eight hexadecimal digits that differ when a weight, a word or another part of a model differs.

    Args:
        head: description of the other parts, such as the architecture; hashed before the weights.
        arrays: weights by name, in any order.
        vocabularies: vocabularies in order.
        tail: more of the description; hashed after the vocabularies.
    """
    digest = hashlib.sha256(head.encode() if isinstance(head, str) else head)
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    for vocabulary in vocabularies:
        digest.update(b"\n".join(vocabulary.words))
    digest.update(tail.encode())
    return digest.hexdigest()[:8]


def check_arrays(arrays: Mapping[str, FloatArray], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that arrays are float32, finite, and of the expected shapes.

    Args:
        arrays: arrays by name.
        shapes: expected shapes by name.

    Raises:
        KeyError: an array is missing.
        ValueError: an array has another type or shape, or is not finite; the message names it.
    """
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected float32 {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds values that are not finite")
