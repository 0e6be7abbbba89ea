"""A tagger as a trained, saved, loadable model; `config.json` calls it `tagger`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import ModelError
from phrasetool.models.identity import model_identity
from phrasetool.models.storage import load_kind
from phrasetool.phrases import FloatArray
from phrasetool.tagger.tagged_sentences import UPOS
from phrasetool.tagger.tagger_shape import TaggerShape
from phrasetool.tagger.word_tags import word_tags


class TaggerModel:
    """What gives words of several languages their parts of speech.

    Args:
        languages: that it was trained on.
        tags: the universal parts of speech, and joined ones behind them.
        shape: its dimensions.
        arrays: float32, see `TaggerNetwork.arrays`.
        training: how it was trained, kept in `config.json`.

    Raises:
        KeyError: an array is missing.
        ValueError: the parts do not fit together.
    """

    name = "tagger"

    def __init__(
        self, languages: Sequence[str], tags: Sequence[str], shape: TaggerShape, arrays: Mapping[str, FloatArray],
        training: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.languages, self.tags, self.shape = tuple(languages), tuple(tags), shape
        if self.tags[: len(UPOS)] != UPOS or len(self.tags) != shape.tags:
            raise ValueError(f"{len(self.tags)} tags, expected {shape.tags}, the {len(UPOS)} universal ones first")
        for name, size in shape.array_shapes().items():
            if arrays[name].shape != size or arrays[name].dtype != np.float32:
                raise ValueError(f"{name} is {arrays[name].dtype} of shape {arrays[name].shape}, expected {size}")
        self.arrays = {name: arrays[name] for name in shape.array_shapes()}
        self.training = dict(training or {})

    def check_language(self, language: str) -> None:
        """Refuse a language that it was not trained on.

        Raises:
            ValueError: the known ones are named.
        """
        if language not in self.languages:
            raise ValueError(f"unknown language {language!r}; the tagger knows {', '.join(self.languages)}")

    def tag(self, sentences: Sequence[Sequence[str]], language: str) -> list[list[str]]:
        """The tags of the words of N sentences; `ADP+DET` for a word that stands for two.

        Args:
            sentences: words as Moses' tokeniser parts them, without its escapes.
            language: of all of them.

        Raises:
            ValueError: the language is unknown.
        """
        self.check_language(language)
        return word_tags(self.arrays, self.shape, self.tags, sentences, language)

    def config(self) -> dict[str, Any]:
        """What `config.json` says of it."""
        return {
            "model": self.name,
            "languages": list(self.languages),
            "tags": list(self.tags),
            "shape": asdict(self.shape),
            "training": self.training,
        }

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight, a tag or a language differs."""
        return model_identity(repr((self.languages, self.tags, self.shape)), self.arrays, ())

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        return f"model:{self.name}-{self.identity}|languages:{','.join(self.languages)}|tags:{len(self.tags)}"

    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """Name -> array, as stored."""
        return dict(self.arrays)

    def save_vocabularies(self, folder: Path) -> None:
        """It has none: features are hashed."""

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> TaggerModel:
        """Build from what a folder holds.

        Raises:
            ModelError: `config.json` does not describe a tagger.
            KeyError, ValueError: weights are missing, or do not fit.
        """
        try:
            languages, tags = ([str(one) for one in config[name]] for name in ("languages", "tags"))
            shape = TaggerShape(**config["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json does not describe a tagger ({error})") from error
        return cls(languages, tags, shape, weights, config.get("training", {}))


def load_tagger(folder: str | os.PathLike[str]) -> TaggerModel:
    """Load a tagger.

    Raises:
        ModelError: the model is missing, damaged, of another format version or of another kind.
    """
    model: TaggerModel = load_kind(folder, TaggerModel.name, "train a tagger")
    return model
