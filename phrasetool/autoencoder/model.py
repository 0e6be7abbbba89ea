"""A trained text autoencoder: saving, loading, and its use as the encoder of a model of phrase pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.autoencoder.settings import TextArchitecture
from phrasetool.errors import ModelError
from phrasetool.models.saved_model import SavedModel, check_arrays, model_identity
from phrasetool.phrases import FloatArray
from phrasetool.vocabulary import UNKNOWN, Vocabulary

_VOCABULARY = "text.vocab"


class AutoencoderModel(SavedModel):
    """A vocabulary and the parameters of an autoencoder.

    Args:
        vocabulary: vocabulary of the texts.
        architecture: architecture and dimensions.
        arrays: parameters by name, float32, see `TextArchitecture.shapes`.
        training: record of its training, kept in `config.json`.

    Raises:
        KeyError: an array is missing.
        ValueError: an array does not have the expected shape or type, or is not finite.
    """

    name = "autoencoder"

    def __init__(
        self,
        vocabulary: Vocabulary,
        architecture: TextArchitecture,
        arrays: Mapping[str, FloatArray],
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.architecture = architecture
        shapes = architecture.shapes(len(vocabulary))
        check_arrays(arrays, shapes)
        self.arrays: dict[str, FloatArray] = {name: arrays[name] for name in shapes}
        self.training = dict(training or {})

    @property
    def dimension(self) -> int:
        """Size of the vector of a text."""
        return self.architecture.dimension

    def encoder_settings(self) -> dict[str, Any]:
        """Return training settings for phrase pairs that agree with the encoder of this model.

        Raises:
            ModelError: the model's architecture is not mean-max.
        """
        a = self._mean_max()
        options = {"word_units": a.word_units, "heads": a.heads, "feed_forward": a.feed_forward}
        return {"encoder": "mean-max", "dimension": self.dimension, **options}

    def _mean_max(self) -> TextArchitecture:
        if self.architecture.name != "mean-max":
            raise ModelError(
                f"a {self.architecture.name} autoencoder has no mean-max encoder; "
                "train one of the architecture mean-max"
            )
        return self.architecture

    def encoder_arrays(self, words: Sequence[bytes]) -> dict[str, FloatArray]:
        """Return the encoder as arrays of a phrase encoder, for `MeanMax.parameters`.

        The transformation into the other language's space, which a text autoencoder does not have, is the identity
        (before its tanh).

        Args:
            words: vocabulary of the phrase encoder, unescaped; row i of the word vectors is that of `words[i]`, or of
                the unknown word.

        Raises:
            ModelError: the model's architecture is not mean-max.
        """
        self._mean_max()
        rows = {word: row for row, word in enumerate(self.vocabulary.words)}
        table, n = self.arrays["words"], self.dimension
        encoder = {name.rpartition(".")[2]: array for name, array in self.arrays.items() if name.startswith("encoder.")}
        return {
            "word_vectors": table[[rows.get(word, UNKNOWN) for word in words]],
            "end": table[len(self.vocabulary)],
            **encoder,
            "transform": np.eye(n, dtype=np.float32),
            "transform_bias": np.zeros(n, np.float32),
        }

    def description(self) -> dict[str, Any]:
        """Return the description of the model for `config.json`."""
        return {
            "architecture": asdict(self.architecture),
            "dimension": self.dimension,
        }

    def named_vocabularies(self) -> dict[str, Vocabulary]:
        """Return the vocabulary, by the name of its file."""
        return {"text": self.vocabulary}

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight or a word differs."""
        return model_identity(repr(self.architecture), self.arrays, (self.vocabulary,))

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        return f"model:{self.name}-{self.identity}|architecture:{self.architecture.name}|n:{self.dimension}"

    def save_files(self, folder: Path) -> None:
        """Write `text.vocab`."""
        self.vocabulary.save(folder / _VOCABULARY)

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> AutoencoderModel:
        """Build the model from the content of its folder.

        Raises:
            ModelError: the vocabulary or the architecture cannot be read.
            KeyError, ValueError: weights are missing, or do not agree with `config.json`.
        """
        vocabulary = Vocabulary.load(folder / _VOCABULARY)
        try:
            architecture = TextArchitecture(**config["architecture"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json does not describe the architecture ({error})") from error
        return cls(vocabulary, architecture, weights, config.get("training", {}))
