"""BRAE: bilingually-constrained recursive auto-encoders (Zhang et al. 2014), as a trained scorer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from phrasetool.encoders.rae import RaeParameters
from phrasetool.errors import ModelError
from phrasetool.vocabulary import Vocabulary

if TYPE_CHECKING:
    from phrasetool.scoring.scorer import BilingualScorer

_SIDES = ("source", "target")


class Brae:
    """Two recursive auto-encoders and a transformation each way.

    Args:
        source_vocabulary, target_vocabulary: of the two languages.
        source, target: parameters; their word vectors have one row per word of the vocabulary.
        training: how it was trained (hyper-parameters), kept in `config.json`.

    Raises:
        ValueError: the parts do not fit together.
    """

    name = "brae"

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        source: RaeParameters,
        target: RaeParameters,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        if source.dimension != target.dimension:
            raise ValueError(f"the source has dimension {source.dimension}, the target {target.dimension}")
        for side, vocabulary, parameters in (
            ("source", source_vocabulary, source),
            ("target", target_vocabulary, target),
        ):
            if len(vocabulary) != len(parameters.word_vectors):
                raise ValueError(f"{len(parameters.word_vectors)} {side} word vectors for {len(vocabulary)} words")
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        self.source = source
        self.target = target
        self.training = dict(training or {})

    @property
    def dimension(self) -> int:
        """n, the dimension of every vector."""
        return self.source.dimension

    @property
    def columns(self) -> tuple[str, str]:
        """Names of the two similarities, source-to-target first."""
        return ("brae_st", "brae_ts")

    def scorer(self) -> BilingualScorer:
        """A scorer with these parameters."""
        from phrasetool.scoring.scorer import BilingualScorer

        return BilingualScorer(self.source, self.target)

    def config(self) -> dict[str, Any]:
        """What `config.json` says of it."""
        return {
            "model": self.name,
            "encoder": "rae",
            "dimension": self.dimension,
            "columns": list(self.columns),
            "training": self.training,
        }

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight or a word differs."""
        digest = hashlib.sha256()
        for name, array in sorted(self.weights().items()):
            digest.update(name.encode())
            digest.update(array.tobytes())
        for vocabulary in (self.source_vocabulary, self.target_vocabulary):
            digest.update(b"\n".join(vocabulary.words))
        return digest.hexdigest()[:8]

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        return f"model:{self.name}-{self.identity}|n:{self.dimension}"

    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """Name -> array, as stored."""
        return {
            f"{side}.{name}": array
            for side, parameters in (("source", self.source), ("target", self.target))
            for name, array in parameters.arrays().items()
        }

    def save_vocabularies(self, folder: Path) -> None:
        """Write `source.vocab` and `target.vocab`."""
        self.source_vocabulary.save(folder / "source.vocab")
        self.target_vocabulary.save(folder / "target.vocab")

    @classmethod
    def from_files(cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]) -> Brae:
        """Build from what a folder holds.

        Raises:
            ModelError: parts are missing, or do not fit together.
        """
        words, other_words = (Vocabulary.load(folder / f"{side}.vocab") for side in _SIDES)
        try:
            source, target = (
                RaeParameters(**{name: weights[f"{side}.{name}"] for name in RaeParameters.__annotations__})
                for side in _SIDES
            )
            model = cls(words, other_words, source, target, config.get("training", {}))
        except KeyError as error:
            raise ModelError(f"{folder}: the weights lack {error}") from error
        except ValueError as error:
            raise ModelError(f"{folder}: {error}") from error
        if config.get("dimension") != model.dimension:
            raise ModelError(
                f"{folder}: config.json says dimension {config.get('dimension')!r}, the weights have {model.dimension}"
            )
        return model
