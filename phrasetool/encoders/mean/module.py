"""The mean of fixed word vectors for training: its transformation alone learns."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.encoders.mean.parameters import MeanParameters
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import UNKNOWN


class MeanEncoder(nn.Module):
    """The mean of the vectors of one language with its transformation, as a trainable module.

    Args:
        parameters: initial values.
    """

    word_vectors: Tensor

    def __init__(self, parameters: MeanParameters) -> None:
        super().__init__()
        self.register_buffer("word_vectors", torch.from_numpy(parameters.word_vectors.copy()))
        self.transform = nn.Parameter(torch.from_numpy(parameters.transform.copy()))
        self.transform_bias = nn.Parameter(torch.from_numpy(parameters.transform_bias.copy()))

    def seed_dropout(self, seed: int) -> None:
        """Nothing is dropped."""

    def forward(self, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Encode B phrases: their vectors, shape (B, n), zero without known words; and zeros, shape (B,)."""
        device = self.word_vectors.device
        words = torch.from_numpy(phrases.words.astype(np.int64)).to(device)
        offsets = torch.from_numpy(np.ascontiguousarray(phrases.offsets[:-1])).to(device)
        known = (words != UNKNOWN).to(self.word_vectors.dtype)
        sums = functional.embedding_bag(words, self.word_vectors, offsets, mode="sum", per_sample_weights=known)
        counts = functional.embedding_bag(words, torch.ones_like(self.word_vectors[:, :1]), offsets, mode="sum",
                                          per_sample_weights=known)  # fmt: skip
        return sums / counts.clamp(min=1), sums.new_zeros(len(phrases))

    def transformed(self, vectors: Tensor) -> Tensor:
        """Wl z + bl, shape (B, n): the vectors in the other language's space."""
        return functional.linear(vectors, self.transform, self.transform_bias)

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """What learns: the transformation."""
        return {"words": [], "rec": [], "sem": [self.transform, self.transform_bias]}

    def numpy(self) -> MeanParameters:
        """The current values."""
        arrays = self.word_vectors, self.transform, self.transform_bias
        return MeanParameters(*(array.detach().cpu().numpy().copy() for array in arrays))
