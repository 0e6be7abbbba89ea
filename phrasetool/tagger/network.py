"""The tagger network for training: sums of feature vectors, a bidirectional LSTM, a distribution over tags."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.nn.layers import SeededDropout
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.tagger.settings import TaggerShape


class TaggerNetwork(nn.Module):
    """Computes a logit for each tag of each word.

    Args:
        shape: dimensions of the tagger.
        seed: seed of the initial values.
        dropout: share of components that are dropped before and after the LSTM in training.

    Attributes:
        features: one vector per row, initially zero, so that features unseen in training have no effect.
    """

    def __init__(self, shape: TaggerShape, seed: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.features = nn.EmbeddingBag(
            shape.buckets, shape.word_units, mode="sum", sparse=True, padding_idx=0,
            _weight=torch.zeros(shape.buckets, shape.word_units),
        )  # fmt: skip
        self.lstm = nn.LSTM(shape.word_units, shape.units, shape.lstm_layers, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * shape.units, shape.tags)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in (*self.lstm.parameters(), *self.output.parameters()):
                bound = shape.units**-0.5
                parameter.uniform_(-bound, bound, generator=generator)
        self.dropout = SeededDropout(dropout)

    def seed_dropout(self, seed: int) -> None:
        """Set the seed of the dropout masks of the following calls."""
        self.dropout.seed(seed)

    def forward(self, rows: Tensor, lengths: Int64Array) -> Tensor:
        """Return the logits of the words of B sentences, concatenated, shape (sum of lengths, tags).

        Args:
            rows: features of the words, int64, shape (sum of lengths, F).
            lengths: number of words of each sentence, int64, shape (B,).
        """
        parts = torch.split(self.dropout(self.features(rows)), lengths.tolist())
        packed = nn.utils.rnn.pack_sequence(list(parts), enforce_sorted=False)
        states, _ = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        inside = torch.from_numpy(np.arange(padded.shape[1])[None] < lengths[:, None]).to(padded.device)
        logits: Tensor = self.output(self.dropout(padded[inside]))
        return logits

    def arrays(self) -> dict[str, FloatArray]:
        """Parameters by name, float32."""
        return {
            name: np.ascontiguousarray(value.detach().cpu().numpy(), np.float32)
            for name, value in self.named_parameters()
        }
