"""Public base class of models, and the model of phrase pairs: phrases are strings, results are arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import numpy as np

from phrasetool.models.families import FAMILIES
from phrasetool.models.saved_model import SavedModel, load_saved_model
from phrasetool.options import imported
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrases import FloatArray, Mask, Phrases

if TYPE_CHECKING:
    import pandas as pd

    from phrasetool.phrase_encoder.scoring import BilingualScorer
    from phrasetool.vocabulary import Vocabulary

Side = Literal["source", "target"]


Model = TypeVar("Model", bound=SavedModel)


class LibraryModel(Generic[Model]):
    """Public interface to a trained model; not thread-safe.

    Args:
        model: the trained model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Load a model of this family.

        Raises:
            ModelError: the folder contains no model, a damaged one, or a model of another family.
        """
        return cls(cls._family().load(folder))

    @classmethod
    def _family(cls) -> type[Model]:
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """One-line identifier of the model; it changes with any weight, word or option."""
        return self.model.signature

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.signature}>"


class PhraseModel(LibraryModel[BilingualModel]):
    """Trained model of phrase pairs; see `phrasetool train`.

    Examples:
        >>> model = load_model(demo_model)
        >>> model.encode(["经济 发展"], "source").shape == (1, model.dimension)
        True
    """

    @classmethod
    def _family(cls) -> type[BilingualModel]:
        return BilingualModel

    @property
    def dimension(self) -> int:
        """Size n of a phrase vector."""
        return self.model.dimension

    def __repr__(self) -> str:
        words = len(self.model.source_vocabulary), len(self.model.target_vocabulary)
        return f"<PhraseModel {self.signature}, {words[0]:,} source and {words[1]:,} target words>"

    @cached_property
    def _scorer(self) -> BilingualScorer:
        return self.model.scorer()

    def _vocabulary(self, side: Side) -> Vocabulary:
        if side not in ("source", "target"):
            raise ValueError(f"unknown side {side!r}; expected source or target")
        return self.model.source_vocabulary if side == "source" else self.model.target_vocabulary

    def _read(self, phrases: Iterable[str], side: Side) -> Phrases:
        if isinstance(phrases, str):
            raise TypeError("expected several phrases, found one string")
        vocabulary = self._vocabulary(side)
        return Phrases.from_lists([vocabulary.ids(phrase.encode()) for phrase in phrases])

    def encode(self, phrases: Iterable[str], side: Side, *, transformed: bool = False) -> FloatArray:
        """Return phrase vectors.

        Args:
            phrases: N phrases, words separated by spaces, tokenised like the training data.
            side: side of the phrases.
            transformed: whether to map the vectors into the other language's space (Zhang et al. 2014, Eq. 9), where
                their cosines with vectors of the other side are similarities.

        Returns:
            float32, shape (N, n), unit vectors; zeros for a phrase without words.

        Raises:
            ValueError: `side` is invalid.
            LengthError: a phrase is longer than the encoder can encode.

        Examples:
            >>> vectors = load_model(demo_model).encode(["economic development", "the economy"], "target")
            >>> bool(abs(vectors @ vectors.T).max() < 1.0001)
            True
        """
        phrase_ids = self._read(phrases, side)
        own, across = (
            self._scorer.encode_sources(phrase_ids) if side == "source" else self._scorer.encode_targets(phrase_ids)
        )
        return across if transformed else own

    def similarity(self, sources: Iterable[str], targets: Iterable[str]) -> FloatArray:
        """Return the similarity of the two sides of each pair, in both directions.

        Args:
            sources, targets: N phrases each; see `encode`.

        Returns:
            float32, shape (N, 2), in [-1, 1]: source-to-target, then target-to-source.  The values are meaningless if a
            side has only unknown words; see `knows`.

        Raises:
            ValueError: the numbers of sources and targets differ.

        Examples:
            >>> model = load_model(demo_model)
            >>> right, wrong = model.similarity(["经济", "经济"], ["economy", "weather"])
            >>> bool(right.mean() > wrong.mean())
            True
        """
        return self._scorer.score_pairs(self._read(sources, "source"), self._read(targets, "target"))

    def knows(self, phrases: Iterable[str], side: Side) -> Mask:
        """Return whether the model knows at least one word of each phrase: bool, shape (N,)."""
        from phrasetool.phrase_encoder.scoring import has_known_word

        return has_known_word(self._read(phrases, side))

    def nearest(
        self, phrase: str, candidates: Iterable[str], count: int = 10, *, side: Side = "source", among: Side = "target"
    ) -> pd.DataFrame:
        """Return the candidates that are most similar to a phrase.

        Args:
            phrase: query phrase; see `encode`.
            candidates: phrases to choose from.
            count: maximum number of phrases to return.
            side: side of the phrase.
            among: side of the candidates; may be the same as `side`.

        Returns:
            Columns `phrase` and `similarity`, the most similar first, ties in the order of the candidates.

        Raises:
            ValueError: `side` or `among` is invalid, or `count` is negative.

        Examples:
            >>> neighbours = load_model(demo_model).nearest("经济", ["weather", "economy", "the economy"], 2)
            >>> sorted(neighbours.phrase)
            ['economy', 'the economy']
        """
        import pandas as pd

        if count < 0:
            raise ValueError(f"count is {count}, expected at least 0")
        texts = list(candidates)
        vector = self.encode([phrase], side, transformed=side != among)[0]
        similarities = self.encode(texts, among) @ vector
        order = np.argsort(-similarities, kind="stable")[:count]
        return pd.DataFrame({"phrase": [texts[i] for i in order], "similarity": similarities[order]})


def load_model(folder: str | os.PathLike[str]) -> Any:
    """Load a model of any family; the `load` methods of the classes are typed and accept only their own family.

    Args:
        folder: folder written by `phrasetool train` or `train`.

    Returns:
        `PhraseModel`, `Translator`, `PairClassifier`, `Tagger`, `SyntaxEncoder` or `Autoencoder`, depending on the
        contents of the folder.

    Raises:
        ModelError: the folder contains no model, or a damaged one.

    Examples:
        >>> load_model(demo_model).dimension
        50
    """
    model = load_saved_model(folder)
    public = FAMILIES[model.name].public
    return imported(public)(model) if public else model
