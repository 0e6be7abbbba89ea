"""Vectors of words that a classifier learns: one for each word, and one for each part of words."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.pair_classifier.lexicon import Lexicon
from phrasetool.phrases import FloatArray, Phrases
from phrasetool.vocabulary import UNKNOWN


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
