"""Inputs of a classifier: the words of sentences as vectors that are learnt.

`TokenInputs` is the protocol of all inputs, `WordSides` the inputs that read words; `pretrained_inputs` has those that
read the pieces of an external encoder.

The paper sums the vectors of the characters of a word (Burmese, Thai).  Here all languages have vectors of character
n-grams: a word that does not occur in the training data still has known n-grams, which makes Chinese compounds and
English inflections readable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.phrases import FloatArray, Int64Array, Mask, Phrases, prefix_sums
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary

# Marks of the beginning and the end of a word; no text holds these characters.
WORD_BEGIN, WORD_END = "\x02", "\x03"


@dataclass(frozen=True)
class Lexicon:
    """Vocabulary numbers and known parts of U distinct words.

    Attributes:
        ids: int64, shape (U,), their numbers in the vocabulary; 0 where it lacks one.
        parts: U lists of numbers of known parts, int32.
    """

    ids: Int64Array
    parts: Phrases

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> Mask:
        """Which words are in the vocabulary or have a known part; bool, shape (U,)."""
        return np.asarray((self.ids != UNKNOWN) | (self.parts.lengths > 0))


def word_parts(word: bytes, longest: int) -> list[bytes]:
    """The distinct parts of a word of up to so many characters, those at its ends marked as such.

    Args:
        word: in UTF-8; other bytes count as characters.
        longest: characters of a part, a mark included.
    """
    text = f"{WORD_BEGIN}{word.decode('utf-8', 'surrogateescape')}{WORD_END}"
    parts = {
        text[first : first + size]: None
        for size in range(1, longest + 1)
        for first in range(len(text) - size + 1)
        if text[first : first + size] not in (WORD_BEGIN, WORD_END)
    }
    return [part.encode("utf-8", "surrogateescape") for part in parts]


def known_parts(words: Iterable[bytes], longest: int, most: int) -> Vocabulary:
    """The parts that several words share, those of most words first.

    Args:
        words: distinct.
        longest: see `word_parts`; 0 gives none.
        most: how many to keep at most.
    """
    counts: Counter[bytes] = Counter()
    for word in words if longest else ():
        counts.update(word_parts(word, longest))
    several = [(part, count) for part, count in counts.items() if count > 1 and part != UNKNOWN_WORD]
    shared = sorted(several, key=lambda pair: (-pair[1], pair[0]))[:most]
    return Vocabulary([UNKNOWN_WORD, *(part for part, _ in shared)], [0, *(count for _, count in shared)])


class LexiconMaker:
    """Looks words up.

    Args:
        vocabulary: of one language.
        parts: known ones.
        longest: characters of a part.
    """

    def __init__(self, vocabulary: Vocabulary, parts: Vocabulary, longest: int) -> None:
        self._ids = {word: i for i, word in enumerate(vocabulary.words)}
        self._parts = {part: i for i, part in enumerate(parts.words)}
        self._longest = longest
        self._ids.pop(UNKNOWN_WORD)
        self._parts.pop(UNKNOWN_WORD)

    def __call__(self, words: Sequence[bytes]) -> Lexicon:
        """Return the lexicon of distinct words, unescaped."""
        ids = np.fromiter((self._ids.get(word, UNKNOWN) for word in words), np.int64, len(words))
        if not self._longest:
            return Lexicon(ids, Phrases(np.zeros(len(words) + 1, np.int64), np.zeros(0, np.int32)))
        known = self._parts
        parts = [[known[part] for part in word_parts(word, self._longest) if part in known] for word in words]
        return Lexicon(ids, Phrases.from_lists(parts))


class WordInputs(nn.Module):
    """Words of one language as vectors: that of the word, plus the mean of those of its parts.

    Args:
        words: initial vectors, shape (V, w), the unknown word's first.
        parts: initial vectors, shape (P, w); row 0 stands for no part and is never read.
    """

    def __init__(self, words: FloatArray, parts: FloatArray) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.from_numpy(words.copy()))
        self.parts = nn.Parameter(torch.from_numpy(parts.copy()))
        # Words that are read as unknown in training, so that parts learn to stand alone.
        self.hidden_share = 0.0
        self.generator: torch.Generator | None = None

    def forward(self, texts: Phrases, lexicon: Lexicon) -> Tensor:
        """The vectors of the words of some texts, one after another; shape (T, w).

        Args:
            texts: in numbers of the lexicon's words, T words.
            lexicon: of `LexiconMaker`.
        """
        device = self.words.device
        distinct, which = np.unique(texts.words, return_inverse=True)
        ids = torch.from_numpy(lexicon.ids[distinct]).to(device)
        if self.training and self.hidden_share:
            drawn = torch.rand(len(ids), generator=self.generator).to(device)
            ids = torch.where(drawn < self.hidden_share, UNKNOWN, ids)
        vectors = functional.embedding(ids, self.words)
        if len(lexicon.parts.words):
            parts = lexicon.parts.select(distinct)
            numbers = torch.from_numpy(parts.words.astype(np.int64)).to(device)
            offsets = torch.from_numpy(parts.offsets[:-1].copy()).to(device)
            vectors = vectors + functional.embedding_bag(numbers, self.parts, offsets, mode="mean")
        return vectors.index_select(0, torch.from_numpy(which.astype(np.int64)).to(device))


def random_vectors(rng: np.random.Generator, words: int, units: int) -> FloatArray:
    """Vectors to start from: normal, with components of 0.1; float32, shape (words, units)."""
    drawn: Any = rng.normal(0, 0.1, (words, units))
    return np.asarray(drawn, np.float32)


# Source and target as numbers, in arguments of this room.
SOURCE, TARGET = 0, 1


class TokenInputs(Protocol):
    """Reads sentences as vectors; a `torch.nn.Module`.

    `lexicon` describes distinct words, and is passed back with texts in numbers of these words.
    """

    def lexicon(self, side: int, words: Sequence[bytes]) -> Any:
        """Return a description of distinct words of one language, unescaped."""

    def vectors(self, side: int, texts: Phrases, lexicon: Any) -> tuple[Tensor, Int64Array]:
        """The vectors of all texts, one after another, shape (T, w), and how many each has, at least 1, shape (N,)."""

    def keep(self, side: int, texts: Phrases, lexicon: Any) -> None:
        """These texts will be read again and again, with this lexicon: what takes time and never changes is kept."""

    def forget(self) -> None:
        """Release kept vectors, which are not needed any more."""

    def known(self, side: int, texts: Phrases, lexicon: Any) -> Mask:
        """In which texts something is known; bool, shape (N,)."""

    def seed(self, seed: int) -> None:
        """Make what training draws from here on a matter of this seed alone."""

    def layers(self) -> list[nn.Parameter]:
        """Layers of a pretrained network that are trained, apart from tables of vectors."""


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
        """Return the lexicon of distinct words of one language."""
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
        """Return which texts have a known word, bool."""
        counts = prefix_sums(lexicon.known[texts.words])
        return np.asarray(counts[texts.offsets[1:]] > counts[texts.offsets[:-1]])

    def seed(self, seed: int) -> None:
        """Set the seeds of both languages."""
        self.source.generator = torch.Generator().manual_seed(seed)
        self.target.generator = torch.Generator().manual_seed(seed + 1)

    def layers(self) -> list[nn.Parameter]:
        """See `TokenInputs`: none."""
        return []
