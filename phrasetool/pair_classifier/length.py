"""The length of a sentence as a vector, joined with the sentence's own (Mao et al. 2021, Eq. 2 and 3).

The sign between the two is unreadable in the paper: it may join them side by side, or add them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.pair_classifier.architecture import SiameseArchitecture

# Words of a sentence; longer ones have the vector of this length.
LONGEST_LENGTH = 100


class LengthEmbedding(nn.Module):
    """Joins sentence vectors with vectors of their lengths.

    Args:
        architecture: says how.
        rng: draws the initial vectors.
    """

    def __init__(self, architecture: SiameseArchitecture, rng: np.random.Generator) -> None:
        super().__init__()
        self.way = architecture.length
        size = architecture.dimension if self.way == "add" else architecture.length_units
        tables = {"none": 0, "shared": 1}.get(self.way, 2)
        drawn = rng.normal(0, 0.1, (tables, LONGEST_LENGTH + 1, size)).astype(np.float32)
        self.tables = nn.Parameter(torch.from_numpy(drawn)) if tables else None

    def forward(self, vectors: Tensor, lengths: Tensor, side: int) -> Tensor:
        """Sentence vectors (N, n) of one side (0 or 1) with their lengths in words, int64, shape (N,)."""
        if self.tables is None:
            return vectors
        found = functional.embedding(lengths.clamp(max=LONGEST_LENGTH), self.tables[min(side, len(self.tables) - 1)])
        return vectors + found if self.way == "add" else torch.cat([vectors, found], 1)
