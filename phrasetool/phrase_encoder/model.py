"""Trained model of bilingually-constrained encoders: an encoder and a transformation per language.

With recursive auto-encoders and the loss `max-margin`, this is BRAE (Zhang et al. 2014).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from phrasetool.errors import ModelError
from phrasetool.models.saved_model import SavedModel, model_identity
from phrasetool.options import option_values
from phrasetool.phrase_encoder.encoder import EncoderKind, EncoderParameters, PackedEncoder, encoder_kind
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.phrase_encoder.scoring import Calibration
from phrasetool.vocabulary import Vocabulary

if TYPE_CHECKING:
    from phrasetool.phrase_encoder.scoring import BilingualScorer

_SIDES = ("source", "target")
# The encoder and the loss of the paper.
_BRAE = ("rae", "max-margin")


CPU = "cpu"


class BilingualModel(SavedModel):
    """Two encoders of one kind, with a transformation per direction.

    Args:
        source_vocabulary, target_vocabulary: vocabularies of the two languages.
        source, target: parameters; their word vectors have one row per word of the vocabulary.
        kind: kind of the encoders.
        training: record of its training (hyper-parameters), kept in `config.json`.
        calibration: maps its cosines to similarities; None for cosines.

    Raises:
        ValueError: the dimensions differ, or a vocabulary and its word vectors differ in size.
    """

    name = "brae"

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        source: EncoderParameters,
        target: EncoderParameters,
        kind: EncoderKind,
        training: Mapping[str, Any] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        if source.dimension != target.dimension:
            raise ValueError(f"the source has dimension {source.dimension}, the target {target.dimension}")
        for side, vocabulary, parameters in (
            ("source", source_vocabulary, source),
            ("target", target_vocabulary, target),
        ):
            if len(vocabulary) != len(parameters.word_vectors):
                raise ValueError(
                    f"{len(parameters.word_vectors)} {side} word vectors for {len(vocabulary)} words: "
                    "vocabulary and weights are not of one model, or damaged"
                )
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        self.source = source
        self.target = target
        self.kind = kind
        self.training = dict(training or {})
        self.calibration = calibration

    @property
    def dimension(self) -> int:
        """n, the dimension of a phrase vector."""
        return self.source.dimension

    @property
    def loss(self) -> str | None:
        """The loss that the model was trained with; None if it is not recorded, or if no iteration used it."""
        loss = self.training.get("loss")
        learns = self.kind.learns and self.training.get("iterations") != 0
        return loss if isinstance(loss, str) and loss in OBJECTIVES and learns else None

    @property
    def _is_brae(self) -> bool:
        return (self.kind.name, self.loss) == _BRAE

    @property
    def label(self) -> str:
        """The name of the method: `brae`, or the encoder and the loss, as `rae+in-batch`, or an encoder alone."""
        if self._is_brae:
            return "brae"
        return f"{self.kind.name}+{self.loss}" if self.loss else self.kind.name

    @property
    def columns(self) -> tuple[str, str]:
        """Names of the two similarities, source-to-target first."""
        label = ("brae" if self._is_brae else self.kind.name).replace("-", "_")
        return (f"{label}_st", f"{label}_ts")

    def scorer(self, device: str = CPU) -> BilingualScorer:
        """Return a scorer with these parameters.

        Args:
            device: name of the torch device that encodes phrases; on a CPU, kernels do it without torch.
        """
        from phrasetool.phrase_encoder.scoring import BilingualScorer

        if device == CPU:
            return BilingualScorer(*self._packed, calibration=self.calibration)
        from phrasetool.phrase_encoder.encoder import PackedOnDevice

        source, target = (PackedOnDevice(self.kind, side, device) for side in (self.source, self.target))
        return BilingualScorer(source, target, calibration=self.calibration)

    @functools.cached_property
    def _packed(self) -> tuple[PackedEncoder, PackedEncoder]:
        # The products of all words are computed, which takes longer than scoring a small table.
        return self.kind.pack(self.source), self.kind.pack(self.target)

    def description(self) -> dict[str, Any]:
        """Return the entries of `config.json`."""
        options = option_values(self.kind)
        return {
            "encoder": self.kind.name,
            **({"encoder_options": options} if options else {}),
            "dimension": self.dimension,
            "columns": list(self.columns),
            **({"calibration": self.calibration.as_dict()} if self.calibration else {}),
        }

    def facts(self) -> dict[str, Any]:
        """Return the facts that `inspect` shows."""
        return {"encoder": self.kind.name, "columns": list(self.columns)}

    def named_vocabularies(self) -> dict[str, Vocabulary]:
        """Return the vocabularies, by the names of their files."""
        return {"source": self.source_vocabulary, "target": self.target_vocabulary}

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight, a word, an option or the calibration differs."""
        options = option_values(self.kind)
        vocabularies = self.source_vocabulary, self.target_vocabulary
        tail = json.dumps(options) if options else ""
        if self.calibration:
            tail += json.dumps(self.calibration.as_dict())
        return model_identity("", self.weights(), vocabularies, tail)

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        return f"model:{self.label}-{self.identity}|n:{self.dimension}"

    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays to store, by name."""
        return {
            f"{side}.{name}": array
            for side, parameters in (("source", self.source), ("target", self.target))
            for name, array in parameters.arrays().items()
        }

    def save_files(self, folder: Path) -> None:
        """Write `source.vocab` and `target.vocab`."""
        self.source_vocabulary.save(folder / "source.vocab")
        self.target_vocabulary.save(folder / "target.vocab")

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> BilingualModel:
        """Build the model from the content of its folder.

        Raises:
            ModelError: a vocabulary cannot be read, or `config.json` does not describe the model.
            KeyError, ValueError: weights are missing, or do not agree with `config.json`.
        """
        kind = _kind(folder, config)
        words, other_words = (Vocabulary.load(folder / f"{side}.vocab") for side in _SIDES)
        source, target = (
            kind.parameters(
                {name.removeprefix(f"{side}."): array for name, array in weights.items() if name.startswith(side)}
            )
            for side in _SIDES
        )
        calibration = Calibration.from_dict(config["calibration"]) if "calibration" in config else None
        model = cls(words, other_words, source, target, kind, config.get("training", {}), calibration)
        if config.get("dimension") != model.dimension:
            raise ModelError(
                f"{folder}: the dimension in config.json is {config.get('dimension')!r}, that of the weights "
                f"{model.dimension}"
            )
        return model


def _kind(folder: Path, config: Mapping[str, Any]) -> EncoderKind:
    """Return the encoder that `config.json` names.

    Raises:
        ModelError: the encoder or one of its options is unknown or invalid.
    """
    name, options = config.get("encoder"), config.get("encoder_options", {})
    if not isinstance(options, dict):
        raise ModelError(f"{folder / 'config.json'}: `encoder_options` is not an object")
    try:
        return encoder_kind(name if isinstance(name, str) else repr(name), options)
    except ValueError as error:
        raise ModelError(f"{folder / 'config.json'}: {error}") from error
