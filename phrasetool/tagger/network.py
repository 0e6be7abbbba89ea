"""The tagger as it is trained: sums of feature vectors, a bidirectional LSTM, a distribution over tags."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.nn.layers import SeededDropout
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.tagger.tagger_shape import TaggerShape


class TaggerNetwork(nn.Module):
    """Gives a logit for each tag of each word.

    Args:
        shape: its dimensions.
        seed: of initial values.
        dropout: share of components that are dropped before and behind the LSTM in training.

    Attributes:
        features: a vector a row, zeros at first, so that what training has not seen says nothing.
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
        """What follows drops what this seed says."""
        self.dropout.seed(seed)

    def forward(self, rows: Tensor, lengths: Int64Array) -> Tensor:
        """Logits of the words of B sentences, one sentence after another, shape (sum of lengths, tags).

        Args:
            rows: of features, int64, shape (sum of lengths, F).
            lengths: words of each sentence, int64, shape (B,).
        """
        parts = torch.split(self.dropout(self.features(rows)), lengths.tolist())
        packed = nn.utils.rnn.pack_sequence(list(parts), enforce_sorted=False)
        states, _ = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        inside = torch.from_numpy(np.arange(padded.shape[1])[None] < lengths[:, None]).to(padded.device)
        found: Tensor = self.output(self.dropout(padded[inside]))
        return found

    def arrays(self) -> dict[str, FloatArray]:
        """Parameters by name, float32."""
        return {
            name: np.ascontiguousarray(value.detach().cpu().numpy(), np.float32)
            for name, value in self.named_parameters()
        }

    @classmethod
    def from_arrays(cls, shape: TaggerShape, arrays: Mapping[str, FloatArray]) -> TaggerNetwork:
        """With the parameters that `arrays` gave."""
        made = cls(shape)
        made.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
        return made
