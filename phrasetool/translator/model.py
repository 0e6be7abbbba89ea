"""A trained translator that can be saved and loaded; its name in `config.json` is `continuous`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import ModelError
from phrasetool.models.saved_model import SavedModel, model_identity
from phrasetool.phrases import FloatArray
from phrasetool.translator.settings import TranslatorArchitecture
from phrasetool.vocabulary import Vocabulary

if TYPE_CHECKING:
    from phrasetool.translator.network import TranslatorNetwork


_FILES = ("source.vocab", "target.vocab")


class TranslatorModel(SavedModel):
    """Trained translator: two vocabularies and the arrays of the network.

    Args:
        source_vocabulary, target_vocabulary: words of both languages.
        architecture: architecture with its dimensions.
        arrays: float32, names and shapes as in `TranslatorNetwork.arrays`.
        temperature: temperature of its probabilities, see `phrasetool.translator.training`.
        training: record of the training, kept in `config.json`.

    Raises:
        KeyError: an array is missing.
        ValueError: the table of source words or of targets does not match its vocabulary or the architecture, or the
            temperature is invalid.
    """

    name = "continuous"

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        architecture: TranslatorArchitecture,
        arrays: Mapping[str, FloatArray],
        temperature: float,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.architecture = architecture
        for name, shape in (
            ("words", (len(source_vocabulary), architecture.word_units)),
            ("targets", (len(target_vocabulary) + 1, architecture.dimension)),
        ):
            if arrays[name].shape != shape:
                raise ValueError(f"{name} has shape {arrays[name].shape}, expected {shape}")
        if not 0 < temperature < np.inf:
            raise ValueError(f"the temperature is {temperature}, expected a finite number above 0")
        self.arrays = dict(arrays)
        self.temperature = temperature
        self.training = dict(training or {})

    @cached_property
    def network(self) -> TranslatorNetwork:
        """Network on the CPU, in evaluation mode.

        Raises:
            ModelError: the arrays do not match the architecture.
        """
        from phrasetool.translator.network import TranslatorNetwork

        try:
            return TranslatorNetwork.from_arrays(self.architecture, self.arrays)
        except RuntimeError as error:
            raise ModelError(f"the weights do not fit the architecture ({error})") from error

    @property
    def dimension(self) -> int:
        """Size of a target vector."""
        return self.architecture.dimension

    def with_words(self, vectors: Mapping[bytes, FloatArray]) -> TranslatorModel:
        """Return the translator with more target words, without training.

        Args:
            vectors: word -> vector of shape (d,) in the space of the target vectors; see `new_target_vectors`.

        Raises:
            ValueError: the vocabulary has a word already; a vector is zero or of another size; or the output is a
                softmax, which cannot predict words that it was not trained on.
        """
        if not self.architecture.continuous:
            raise ValueError("a softmax knows no word that it was not trained on; new words need target vectors")
        rows = []
        for word, vector in vectors.items():
            if self.target_vocabulary.id(word) or vector.shape != (self.dimension,) or not vector.any():
                raise ValueError(
                    f"{word.decode('utf-8', 'replace')} is in the vocabulary already, or its vector is zero or of the "
                    "wrong size"
                )
            rows.append(vector / np.linalg.norm(vector))
        table = self.arrays["targets"]
        vocabulary = self.target_vocabulary
        counts = [*vocabulary.counts.tolist(), *(0 for _ in vectors)]
        arrays = {**self.arrays, "targets": np.concatenate([table[:-1], np.array(rows, np.float32), table[-1:]])}
        return TranslatorModel(
            self.source_vocabulary, Vocabulary([*vocabulary.words, *vectors], counts), self.architecture, arrays,
            self.temperature, self.training,
        )  # fmt: skip

    def description(self) -> dict[str, Any]:
        """Return the entries of `config.json`."""
        return {
            "architecture": asdict(self.architecture),
            "temperature": self.temperature,
            "dimension": self.dimension,
        }

    def facts(self) -> dict[str, Any]:
        """Return the facts that `inspect` shows."""
        shape = {**asdict(self.architecture), "temperature": self.temperature}
        return {"architecture": shape, "numbers": sum(array.size for array in self.arrays.values())}

    def named_vocabularies(self) -> dict[str, Vocabulary]:
        """Return the vocabularies, by the names of their files."""
        return {"source": self.source_vocabulary, "target": self.target_vocabulary}

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight or a word differs."""
        vocabularies = self.source_vocabulary, self.target_vocabulary
        # "NeuralArchitecture" was the name of the class when models were first saved.
        sizes = ", ".join(f"{name}={value!r}" for name, value in asdict(self.architecture).items())
        head = f"(NeuralArchitecture({sizes}), {self.temperature!r})"
        return model_identity(head, self.arrays, vocabularies)

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        loss = self.training.get("loss", "unknown")
        return f"model:{self.name}-{self.identity}|loss:{loss}|cell:{self.architecture.cell}|n:{self.dimension}"

    def save_files(self, folder: Path) -> None:
        """Write `source.vocab` and `target.vocab`."""
        for vocabulary, file in zip((self.source_vocabulary, self.target_vocabulary), _FILES, strict=True):
            vocabulary.save(folder / file)

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> TranslatorModel:
        """Return the model that a folder holds.

        Raises:
            ModelError: a vocabulary or the architecture cannot be read.
            KeyError, ValueError: weights are missing, or do not match the architecture.
        """
        source, target = (Vocabulary.load(folder / file) for file in _FILES)
        try:
            architecture = TranslatorArchitecture(**config["architecture"])
            temperature = float(config["temperature"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json does not describe the architecture ({error})") from error
        return cls(source, target, architecture, weights, temperature, config.get("training", {}))


# Minimum cosine of a model's target vector and the vector of its training file; they differ by rounding.
_LEAST_COSINE = 0.999


def new_target_vectors(
    model: TranslatorModel, words: Sequence[bytes], known: Mapping[bytes, FloatArray]
) -> dict[bytes, FloatArray]:
    """Return vectors of new target words in the space of the model's target vectors, centred if these are.

    Args:
        model: translator.
        words: distinct words; those of the target vocabulary are left out.
        known: word -> vector of shape (d,), for all words of the model's target vocabulary and all new words, from the
            file that the model was trained with.

    Raises:
        ValueError: a word has no vector, or one that is not finite; or the vectors are not those of the training.
    """
    own = model.target_vocabulary.words[1:]
    missing = [word for word in (*own, *words) if word not in known]
    if missing:
        raise ValueError(f"{missing[0].decode('utf-8', 'replace')} has no vector in the file")
    rows = np.stack([known[word] for word in own])
    centring = model.training.get("centring", "plain")
    if centring == "random":
        raise ValueError("the model was trained with random vectors, which no new word has")
    mean = rows.mean(0, dtype=np.float64).astype(np.float32) if centring == "centred" else np.float32(0)
    lengths = np.linalg.norm(rows - mean, axis=1)
    cosines = ((rows - mean) * model.arrays["targets"][1:-1]).sum(1) / np.maximum(lengths, np.finfo(np.float32).tiny)
    if not float(cosines.min(initial=1.0)) >= _LEAST_COSINE:
        differing = own[int(np.argmin(cosines))].decode("utf-8", "replace")
        raise ValueError(f"these are not the vectors that the model was trained with: that of {differing} differs")
    vectors = {word: known[word] - mean for word in words if not model.target_vocabulary.id(word)}
    for word, vector in vectors.items():
        if not np.isfinite(vector).all():
            raise ValueError(f"the vector of {word.decode('utf-8', 'replace')} is not finite")
    return vectors
