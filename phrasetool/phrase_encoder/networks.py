"""The gated mean-max encoder and the mean of word vectors for training, batched and differentiable."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.nn.layers import (
    AttentionBlock,
    LengthGroups,
    SeededDropout,
    joined_groups,
    max_pooled,
    mean_pooled,
    split_groups,
)
from phrasetool.nn.positions import LONGEST, positions
from phrasetool.phrase_encoder.parameters import MeanMaxParameters, MeanParameters
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import UNKNOWN


class MeanMaxEncoder(nn.Module):
    """The mean-max encoder of one language with its transformation, as a trainable module.

    Args:
        parameters: initial values.
        heads: h.
        dropout: share of components dropped in training from the input and from the output of each layer.
        fixed: whether the layers between the words and the phrase are not trained.
    """

    positions: Tensor

    def __init__(self, parameters: MeanMaxParameters, heads: int, dropout: float, *, fixed: bool = False) -> None:
        super().__init__()
        arrays = parameters.arrays()
        for name in ("word_vectors", "end", "transform", "transform_bias"):
            self.register_parameter(name, nn.Parameter(torch.from_numpy(arrays[name].copy())))
        self.dropout = SeededDropout(dropout)
        self.block = AttentionBlock(arrays, heads, self.dropout).requires_grad_(not fixed)
        encodings = torch.from_numpy(positions(LONGEST + 1, parameters.word_vectors.shape[1]))
        self.register_buffer("positions", encodings, persistent=False)

    word_vectors: nn.Parameter
    end: nn.Parameter
    transform: nn.Parameter
    transform_bias: nn.Parameter

    def seed_dropout(self, seed: int) -> None:
        """Set the seed of the dropout masks of the following calls."""
        self.dropout.seed(seed)

    def forward(self, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Encode B phrases.

        Returns:
            Phrase vectors, shape (B, n), zero for a phrase without words; and zeros, shape (B,), for the
            reconstruction errors that this encoder does not have.

        Raises:
            LengthError: a phrase has more words than `LONGEST`.
        """
        batch = LengthGroups.from_phrases(phrases, self.word_vectors.device)
        empty = batch.groups[0][0] if batch.groups and not batch.groups[0][1] else 0
        rows = [self.transform_bias.new_zeros(empty, len(self.transform_bias))]
        if empty < len(phrases):
            rows.append(self._encode(batch.words, batch.groups[1:] if empty else batch.groups))
        return batch.restored(torch.cat(rows)), self.transform_bias.new_zeros(len(phrases))

    def _encode(self, words: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        inputs = []
        for part in split_groups(functional.embedding(words, self.word_vectors), groups):
            with_end = torch.cat([part, self.end.expand(len(part), 1, -1)], 1)
            inputs.append(with_end + self.positions[: with_end.shape[1]])
        groups = [(count, length + 1) for count, length in groups]
        hidden = self.block(self.dropout(joined_groups(inputs)), groups)
        return torch.cat([max_pooled(hidden, groups), mean_pooled(hidden, groups)], 1)

    def transformed(self, vectors: Tensor) -> Tensor:
        """Return tanh(Wl z + bl), shape (B, n): the vectors in the other language's space."""
        return torch.tanh(functional.linear(vectors, self.transform, self.transform_bias))

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """Return every trained parameter once: of the words and the end, of the encoder, of the transformation."""
        return {
            "words": [self.word_vectors, self.end],
            "rec": [parameter for parameter in self.block.parameters() if parameter.requires_grad],
            "sem": [self.transform, self.transform_bias],
        }

    def numpy(self) -> MeanMaxParameters:
        """Return the current values."""
        values = {name.rpartition(".")[2]: value.detach() for name, value in self.named_parameters()}
        return MeanMaxParameters(**{name: value.cpu().numpy().copy() for name, value in values.items()})


class MeanEncoder(nn.Module):
    """The mean of the word vectors of one language with its transformation, as a trainable module.

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
        """Do nothing, because nothing is dropped."""

    def forward(self, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Return the vectors of B phrases, shape (B, n), zero without known words; and zeros, shape (B,)."""
        device = self.word_vectors.device
        words = torch.from_numpy(phrases.words.astype(np.int64)).to(device)
        offsets = torch.from_numpy(np.ascontiguousarray(phrases.offsets[:-1])).to(device)
        known = (words != UNKNOWN).to(self.word_vectors.dtype)
        sums = functional.embedding_bag(words, self.word_vectors, offsets, mode="sum", per_sample_weights=known)
        counts = functional.embedding_bag(words, torch.ones_like(self.word_vectors[:, :1]), offsets, mode="sum",
                                          per_sample_weights=known)  # fmt: skip
        return sums / counts.clamp(min=1), sums.new_zeros(len(phrases))

    def transformed(self, vectors: Tensor) -> Tensor:
        """Return Wl z + bl, shape (B, n): the vectors in the other language's space."""
        return functional.linear(vectors, self.transform, self.transform_bias)

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """Return the trained parameters: those of the transformation."""
        return {"words": [], "rec": [], "sem": [self.transform, self.transform_bias]}

    def numpy(self) -> MeanParameters:
        """Return the current values."""
        arrays = self.word_vectors, self.transform, self.transform_bias
        return MeanParameters(*(array.detach().cpu().numpy().copy() for array in arrays))
