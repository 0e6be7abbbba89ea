"""What a classifier reads of a sentence: words with vectors of its own, or the pieces of an encoder from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.pair_classifier.lexicon import Lexicon, LexiconMaker
from phrasetool.pair_classifier.word_inputs import WordInputs
from phrasetool.phrases import FloatArray, Int64Array, Mask, Phrases
from phrasetool.vocabulary import Vocabulary

# Source and target as numbers, in arguments of this room.
SOURCE, TARGET = 0, 1


class TokenInputs(Protocol):
    """Reads sentences as vectors; a `torch.nn.Module`.

    `lexicon` says what is known of distinct words, and is passed back with texts in numbers of these words.
    """

    def lexicon(self, side: int, words: Sequence[bytes]) -> Any:
        """What is known of distinct words of one language, unescaped."""

    def vectors(self, side: int, texts: Phrases, lexicon: Any) -> tuple[Tensor, Int64Array]:
        """The vectors of all texts, one after another, shape (T, w), and how many each has, at least 1, shape (N,)."""

    def keep(self, side: int, texts: Phrases, lexicon: Any) -> None:
        """These texts will be read again and again, with this lexicon: what takes time and never changes is kept."""

    def forget(self) -> None:
        """What was kept is needed no more."""

    def known(self, side: int, texts: Phrases, lexicon: Any) -> Mask:
        """In which texts something is known; bool, shape (N,)."""

    def seed(self, seed: int) -> None:
        """Make what training draws from here on a matter of this seed alone."""

    def layers(self) -> list[nn.Parameter]:
        """What learns of a network that was trained before, other than a table of vectors."""


class WordSides(nn.Module):
    """Words of two languages.

    Args:
        vocabularies: of words, source first.
        parts: of their parts.
        characters: longest part.
        arrays: initial values: `source.words`, `source.parts`, `target.words`, `target.parts`.
        hidden_share: words that training reads as unknown.
    """

    def __init__(
        self,
        vocabularies: tuple[Vocabulary, Vocabulary],
        parts: tuple[Vocabulary, Vocabulary],
        characters: int,
        arrays: Mapping[str, FloatArray],
        hidden_share: float = 0.0,
    ) -> None:
        super().__init__()
        self._makers = [LexiconMaker(*known, characters) for known in zip(vocabularies, parts, strict=True)]
        self.source, self.target = (
            WordInputs(arrays[f"{side}.words"], arrays[f"{side}.parts"]) for side in ("source", "target")
        )
        self.source.hidden_share = self.target.hidden_share = hidden_share

    def lexicon(self, side: int, words: Sequence[bytes]) -> Lexicon:
        """See `TokenInputs`."""
        return self._makers[side](words)

    def vectors(self, side: int, texts: Phrases, lexicon: Lexicon) -> tuple[Tensor, Int64Array]:
        """See `TokenInputs`; a vector a word."""
        inputs = self.target if side else self.source
        return inputs(texts, lexicon), texts.lengths

    def keep(self, side: int, texts: Phrases, lexicon: Lexicon) -> None:
        """See `TokenInputs`: nothing takes time."""

    def forget(self) -> None:
        """See `TokenInputs`."""

    def known(self, side: int, texts: Phrases, lexicon: Lexicon) -> Mask:
        """See `TokenInputs`."""
        counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lexicon.known[texts.words])])
        return np.asarray(counts[texts.offsets[1:]] > counts[texts.offsets[:-1]])

    def seed(self, seed: int) -> None:
        """See `TokenInputs`."""
        self.source.generator = torch.Generator().manual_seed(seed)
        self.target.generator = torch.Generator().manual_seed(seed + 1)

    def layers(self) -> list[nn.Parameter]:
        """See `TokenInputs`: none."""
        return []
