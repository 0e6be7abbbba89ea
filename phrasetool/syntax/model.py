"""A syntactic encoder as a trained, saved, loadable model; `config.json` calls it `syntax`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import ModelError
from phrasetool.models.saved_model import SavedModel, model_identity
from phrasetool.phrases import FloatArray, Mask, Phrases
from phrasetool.sentences import read_words
from phrasetool.syntax.pieces import PieceTable, known_pieces
from phrasetool.syntax.syntax_shape import SyntaxShape
from phrasetool.syntax.syntax_vectors import SyntaxVectors
from phrasetool.syntax.tag_likelihood import TagLikelihood

_PIECES = "pieces.model"
# Of the stored arrays: which pieces were seen in training, one byte a piece.
_KNOWN = "pieces.known"


class SyntaxModel(SavedModel):
    """Pieces of words, and the arrays of an encoder and its decoder.

    Args:
        languages: it was trained to read.
        targets: of these, whose parts of speech it was trained to predict.
        pieces: how words are parted.
        known: bool, shape (pieces,), which were seen in training.
        shape: the dimensions.
        arrays: float32, see `SyntaxNetwork.arrays`.
        training: how it was trained, kept in `config.json`.

    Raises:
        KeyError: an array is missing.
        ValueError: the parts do not fit together.
    """

    name = "syntax"

    def __init__(
        self,
        languages: Sequence[str],
        targets: Sequence[str],
        pieces: PieceTable,
        known: Mask,
        shape: SyntaxShape,
        arrays: Mapping[str, FloatArray],
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.languages, self.targets, self.pieces, self.shape = tuple(languages), tuple(targets), pieces, shape
        if len(pieces) != shape.pieces or known.shape != (shape.pieces,) or len(self.targets) != shape.languages:
            found = f"{len(pieces)} pieces and {len(self.targets)} target languages"
            raise ValueError(f"{found}, expected {shape.pieces} and {shape.languages}")
        for name, size in shape.array_shapes().items():
            if arrays[name].shape != size or arrays[name].dtype != np.float32:
                raise ValueError(f"{name} is {arrays[name].dtype} of shape {arrays[name].shape}, expected {size}")
        self.arrays = {name: arrays[name] for name in shape.array_shapes()}
        self.known: Mask = known.astype(np.bool_)
        self.training = dict(training or {})

    @cached_property
    def vectors(self) -> SyntaxVectors:
        """The encoder, which needs no torch."""
        return SyntaxVectors(self.arrays, self.shape)

    @cached_property
    def likelihood(self) -> TagLikelihood:
        """The decoder, which needs no torch either."""
        return TagLikelihood(self.arrays, self.shape, self.vectors)

    @property
    def dimension(self) -> int:
        """Size of a vector."""
        return self.shape.dimension

    def encode(self, sentences: Sequence[str | bytes]) -> FloatArray:
        """The vectors of N sentences or phrases of any languages, float32, shape (N, dimension).

        Args:
            sentences: words between spaces, tokenised as what the model was trained on; Moses' escapes are undone.

        Returns:
            Zeros for a sentence of which no piece is known, or that is longer than what is read.
        """
        return self.encode_texts(*read_words(sentences))

    def encode_texts(self, texts: Phrases, words: Sequence[bytes]) -> FloatArray:
        """The same of texts in numbers of their distinct words, unescaped; see `encode`."""
        pieces = self.in_pieces(texts, words)
        return self.vectors(_without(pieces, ~self.has_opinion(pieces)))

    def cosines(self, sources: Sequence[str | bytes], targets: Sequence[str | bytes]) -> FloatArray:
        """How alike the syntax of N pairs of texts is, float32, shape (N,); NaN where nothing is known of a side.

        Args:
            sources, targets: N texts each, see `encode`.

        Raises:
            ValueError: not as many sources as targets.
        """
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources and {len(targets)} targets, expected as many")
        both = self.encode([*sources, *targets])
        norms = np.linalg.norm(both, axis=1)
        unit = both / np.where(norms, norms, np.nan)[:, None]
        found: FloatArray = np.einsum("ij,ij->i", unit[: len(sources)], unit[len(sources) :])
        return np.clip(found, np.float32(-1), np.float32(1))

    def in_pieces(self, texts: Phrases, words: Sequence[bytes]) -> Phrases:
        """Texts in numbers of pieces; those that training has not seen are the unknown one."""
        return known_pieces(self.pieces.of_texts(texts, words), self.known)

    def has_opinion(self, texts: Phrases) -> Mask:
        """Of which of N texts in pieces something is known, and that are not over-long, bool, shape (N,)."""
        says = np.concatenate([np.zeros(1, np.int64), np.cumsum(~self.pieces.silent[texts.words])])
        found: Mask = (says[texts.offsets[1:]] > says[texts.offsets[:-1]]) & ~self.over_long(texts)
        return found

    def too_long(self, sentences: Sequence[str | bytes]) -> Mask:
        """Which of N sentences, see `encode`, are longer than what is read, bool, shape (N,)."""
        return self.over_long(self.in_pieces(*read_words(sentences)))

    def over_long(self, texts: Phrases) -> Mask:
        """Which of N texts in pieces have more of them than are read, bool, shape (N,)."""
        return np.asarray(texts.lengths > self.shape.longest)

    def description(self) -> dict[str, Any]:
        """See `SavedModel`."""
        return {
            "languages": list(self.languages),
            "targets": list(self.targets),
            "shape": asdict(self.shape),
            "dimension": self.dimension,
        }

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight, a piece or a language differs."""
        head = repr((self.languages, self.targets, self.shape, self.pieces.pieces))
        return model_identity(head, {**self.arrays, _KNOWN: self.known}, ())

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        return f"model:{self.name}-{self.identity}|languages:{','.join(self.languages)}|n:{self.dimension}"

    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """Name -> array, as stored."""
        return {**self.arrays, _KNOWN: self.known.astype(np.uint8)}

    def save_files(self, folder: Path) -> None:
        """Write the pieces, a model of sentencepiece."""
        (folder / _PIECES).write_bytes(self.pieces.stored)

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> SyntaxModel:
        """Build from what a folder holds.

        Raises:
            ModelError: `config.json` does not describe a syntactic encoder, or its pieces cannot be read.
            KeyError, ValueError: weights are missing, or do not fit.
        """
        try:
            languages, targets = ([str(one) for one in config[name]] for name in ("languages", "targets"))
            shape = SyntaxShape(**config["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json does not describe a syntactic encoder ({error})") from error
        try:
            pieces = PieceTable((folder / _PIECES).read_bytes())
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder / _PIECES}: cannot read: {error}") from error
        known = weights[_KNOWN].astype(np.bool_)
        return cls(languages, targets, pieces, known, shape, weights, config.get("training", {}))


def _without(texts: Phrases, left_out: Mask) -> Phrases:
    """The same texts, of which some have no piece."""
    lengths = np.where(left_out, 0, texts.lengths)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Phrases(offsets, texts.words[np.repeat(~left_out, texts.lengths)])
