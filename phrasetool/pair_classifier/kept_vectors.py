"""Vectors of texts that training reads in every epoch and that never change: each is computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phrasetool.phrases import Phrases
from phrasetool.unique_phrases import distinct_phrases

# The pieces of a text, and the places of those that stand for text.
Pieces = tuple[list[int], list[int]]


class KeptVectors:
    """Of the texts of one language.

    Texts of about one length are computed together, in groups that do not depend on when they are asked for: the last
    bits of a vector depend on what is computed beside it, and an interrupted training goes on with the same bits.

    Args:
        texts: that will be read again.
        lexicon: of their words.
        pieces: of each distinct one, in the order in which they first occur.
        read: gives the vectors of some texts, one text after another.
        together: texts of a group.
        most: vectors that are kept at most; the longest texts go without.
    """

    def __init__(
        self,
        texts: Phrases,
        lexicon: Any,
        pieces: Callable[[Phrases], list[Pieces]],
        read: Callable[[Sequence[Pieces]], Tensor],
        together: int,
        most: int,
    ) -> None:
        self.lexicon, self._read, self._together = lexicon, read, together
        distinct = distinct_phrases(texts)[1]
        found = pieces(distinct)
        order = np.argsort([len(ids) for ids, _ in found], kind="stable")
        within = np.cumsum([len(found[text][1]) for text in order.tolist()]) <= most
        kept = order[within].tolist()
        self._pieces = [found[text] for text in kept]
        self._places = {distinct[text].tobytes(): place for place, text in enumerate(kept)}
        self._vectors: list[Tensor | None] = [None] * len(kept)

    def of(self, text: Any) -> Tensor | None:
        """The vectors of a text's pieces; None if it is none of those that are kept."""
        place = self._places.get(text.tobytes())
        if place is None:
            return None
        if self._vectors[place] is None:
            first = place - place % self._together
            group = self._pieces[first : first + self._together]
            counts = [len(kept) for _, kept in group]
            self._vectors[first : first + self._together] = torch.split(self._read(group), counts)
        return self._vectors[place]
